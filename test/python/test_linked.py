# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of linking CLIs."""

import asyncio
from pathlib import Path

import pytest

from gemini_companion_epc.config import Config
from gemini_companion_epc.linked import Linked
from scene import Rig


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            'Traceback:\n  File "a"\nValueError: x\x07\ngemini --hook: exit status 1\n',
            "gemini --hook: exit status 1: ValueError: x",
        ),
        ("qwen --call: exit status 137\n", "qwen --call: exit status 137"),
        (
            "a --hook: exit status 1\nb --hook: exit status 2\n",
            "b --hook: exit status 2",
        ),
        ("x" * 9000 + "\na --hook: exit status 1\n", "a --hook: exit status 1: xxx"),
    ],
)
async def test_the_user_is_told_once_of_a_hook_that_fails(
    rig: Rig, tmp_path: Path, text: str, expected: str
) -> None:
    config = Config("secret", 1, failure_check=0.01)
    linked = Linked(config, rig.emacs, lambda pids, directory: None)
    file = tmp_path / "failures"
    linked.turn(True, str(file))
    for _ in range(2):
        # A hook that does not fail also opens it.
        file.touch()
        draft = tmp_path / "draft"
        draft.write_text(text)
        draft.rename(file)
        while file.exists():  # noqa: ASYNC110 - a file has no event
            await asyncio.sleep(0.01)
    linked.turn(False)
    (warning,) = rig.emacs.warnings
    assert expected in warning
    assert "\x07" not in warning
