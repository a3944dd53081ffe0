# SPDX-License-Identifier: GPL-3.0-or-later
"""The model of who wrote which line of a file, against its judge."""

from collections.abc import Callable
from typing import Any

import pytest

import file_model


@pytest.mark.parametrize(
    "example",
    [
        file_model.examples,
        file_model.undone_stays_undone,
        file_model.reported_twice,
        file_model.back_in_order,
    ],
)
def test_examples(example: Callable[[], None]) -> None:
    example()


@pytest.mark.parametrize(
    ("count", "few", "settings"),
    [
        (60, "", {}),
        (20, "", {"away_writes": True}),
        (20, "", {"checks_out": True}),
        (20, "abcde", {}),
        (20, "ab", {}),
    ],
)
def test_nothing_is_wrong_in_any_sequence(
    count: int, few: str, settings: dict[str, Any]
) -> None:
    results, _ = file_model.judge(count, few, **settings)
    assert not {what for what in results if not what.startswith("right")}


def test_the_judge_finds_that_what_was_undone_is_removed_again() -> None:
    wrong = [
        mutation
        for mutation in file_model.mutations()
        if mutation[0].startswith(("what others remove", "a hunk is never back"))
    ]
    assert len(wrong) == 3
    assert file_model.run_mutations(20, wrong) == 0
