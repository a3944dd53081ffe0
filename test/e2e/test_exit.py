# SPDX-License-Identifier: GPL-3.0-or-later
"""The CLI is free after Emacs exits, or the mode ends, during a review."""

import os
import signal
from collections.abc import Callable

import pytest
from harness.emacs import Emacs
from harness.wait import eventually
from harness.world import World


def by_keys(emacs: Emacs) -> None:
    emacs.terminal.keys("C-x", "C-c")
    emacs.wait_until_exited()


def by_force(emacs: Emacs) -> None:
    os.kill(emacs.pid, signal.SIGKILL)
    emacs.wait_until_exited()


def by_mode(emacs: Emacs) -> None:
    emacs.eval("(gemini-companion-mode -1)")
    emacs.holds('(not (get-process "gemini-companion"))', "Emacs knows that")


@pytest.mark.parametrize("leave", [by_keys, by_force, by_mode])
@pytest.mark.once
def test_cli_is_free_after_emacs_or_its_mode_has_ended(
    world: World, leave: Callable[[Emacs], None]
) -> None:
    file, emacs, _, cli = world.review("one\n", "uno\n")

    leave(emacs)

    cli.wait_for("Rejected")
    eventually(lambda: not world.scratch.servers(), "the server is gone")
    eventually(lambda: not world.scratch.discovery_files(), "no discovery file")
    assert file.read_text() == "one\n"
    if leave is not by_force:
        eventually(lambda: not world.scratch.temporary_files(), "no temporary file")
    cli.is_free()
