# SPDX-License-Identifier: GPL-3.0-or-later
"""Several CLIs work with one Emacs."""

import pytest
from harness.model import say, write_file
from harness.scratch import Scratch
from harness.world import World

pytestmark = [pytest.mark.shared("two"), pytest.mark.once]


def test_each_cli_gets_its_own_answer(world: World, scratch: Scratch) -> None:
    first, second = scratch.file("a.txt", "one\n"), scratch.file("b.txt", "two\n")
    _, reviews, one = world.pair(first)
    two = world.second()
    one.model.script(write_file(first, "uno\n"), say("all done"))
    two.model.script(write_file(second, "due\n"), say("all done"))
    one.ask()
    two.ask()
    reviews.wait_until(2)

    reviews.edit("due", "dos", reviews.place("b.txt"))
    reviews.accept(reviews.place("b.txt"))
    two.wait_for("all done")
    reviews.reject(reviews.place("a.txt"))
    one.wait_for("Rejected")

    assert (first.read_text(), second.read_text()) == ("one\n", "dos\n")
    one.is_free()
    two.is_free()
