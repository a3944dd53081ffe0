# SPDX-License-Identifier: GPL-3.0-or-later
import pytest

from gemini_companion_epc.hooks import Edited, Reports, Step
from gemini_companion_epc.types import Facts, MalformedArgument

TEXTS = {"before": None, "after": "b"}


@pytest.mark.parametrize(
    ("event", "step"),
    [
        ({"event": "prompt", "prompt": "why?"}, Step("prompt", "why?")),
        ({"event": "end"}, Step("end")),
        ({"event": "edit", "file": "/a", **TEXTS}, Edited("/a", None, "b")),
        ({"event": "of a later version"}, None),
        ({}, None),
    ],
)
def test_an_extension_reports_prompts_edits_and_ends(
    event: Facts, step: Step | Edited | None
) -> None:
    assert Reports().read({"directory": "/", **event}) == step


@pytest.mark.parametrize(
    "event",
    [
        {"event": "prompt"},
        {"event": "edit", "before": 1, "file": "/a", "after": "b"},
        {"event": "edit", "before": "a", "file": "/a"},
        {"event": "edit", **TEXTS},
    ],
)
def test_a_report_of_a_wrong_shape_is_refused(event: Facts) -> None:
    with pytest.raises(MalformedArgument):
        Reports().read(event)


def test_an_extension_gets_the_new_errors_as_a_text() -> None:
    assert Reports().addition({}, "1 error") == {"text": "1 error"}
    assert Reports().directory({"directory": "/d"}) == "/d"
