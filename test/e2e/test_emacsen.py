# SPDX-License-Identifier: GPL-3.0-or-later
"""Two Emacsen on one project."""

import pytest
from harness.world import World


@pytest.mark.contract("Gemini CLI: discovery")
@pytest.mark.once
def test_each_of_two_emacsen_has_the_cli_of_its_terminal(world: World) -> None:
    file = world.file("a.txt", "one\n")
    first, second = world.emacs(file, name="first"), world.emacs(file, name="second")
    sessions = "(length (gemini-companion-sessions))"

    world.gemini_inside(first)
    first.becomes(sessions, 1)
    second.becomes(sessions, 0)

    world.gemini_inside(second)
    second.becomes(sessions, 1)
    first.becomes(sessions, 1)
