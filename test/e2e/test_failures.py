# SPDX-License-Identifier: GPL-3.0-or-later
"""Failures of a machine and their consequences.

GC_STOPPED sets for how many seconds a process is stopped.
"""

import os
import time
from collections.abc import Callable

import psutil
import pytest
from harness.emacs import Emacs
from harness.gemini import CONNECTED
from harness.model import say, write_file
from harness.scratch import Scratch
from harness.wait import eventually
from harness.world import World

pytestmark = pytest.mark.once

STOPPED = float(os.environ.get("GC_STOPPED") or 3)


def the_server(emacs: Emacs, scratch: Scratch) -> int:
    return scratch.servers()[0].pid


def the_cli(emacs: Emacs, scratch: Scratch) -> int:
    return scratch.processes("gemini -m")[0].pid


def the_editor(emacs: Emacs, scratch: Scratch) -> int:
    return emacs.pid


@pytest.mark.shared("server")
@pytest.mark.parametrize("whose", [the_server, the_cli, the_editor])
def test_a_stopped_process_continues(
    world: World, whose: Callable[[Emacs, Scratch], int]
) -> None:
    file, emacs, reviews, cli = world.review("one\n", "uno\n", say("first done"))
    process = psutil.Process(whose(emacs, world.scratch))
    # It continues a stopped process at once.
    tmux = psutil.Process(world.tmux.pid)

    tmux.suspend()
    process.suspend()
    try:
        time.sleep(STOPPED)  # suspending a laptop is only a long time
        assert process.status() == psutil.STATUS_STOPPED
    finally:
        process.resume()
        tmux.resume()

    reviews.accept()
    cli.wait_for("first done")
    assert file.read_text() == "uno\n"
    reviews.proposed(cli, file, write_file(file, "due\n"), say("second done"))
    reviews.accept()
    cli.wait_for("second done")
    assert file.read_text() == "due\n"
    assert CONNECTED in cli.ide_status()


def test_a_cli_connects_from_a_project_that_is_opened_later(world: World) -> None:
    emacs = world.emacs(world.file("a.txt", "one\n"))
    (world.scratch.root / "other").mkdir()
    file = world.scratch.root / "other" / "c.txt"
    file.write_text("three\n")
    cli = world.gemini(directory=file.parent, connects=False)
    cli.wait_for("Type your message")
    assert "Disconnected" in cli.ide_status()

    (found,) = world.scratch.discovery_files()
    before = found.read_text()
    emacs.eval(f'(progn (find-file "{file}") nil)')

    eventually(lambda: found.read_text() != before, "the roots are shared")
    cli.ide("enable")
    cli.wait_for(CONNECTED)
    assert world.scratch.discovery_files() == [found]


def test_each_of_two_emacsen_has_the_cli_of_its_terminal(world: World) -> None:
    file = world.file("a.txt", "one\n")
    first, second = world.emacs(file, name="first"), world.emacs(file, name="second")
    sessions = "(length (gemini-companion-sessions))"

    world.gemini_inside(first, "(term %s)", "*terminal*")
    first.becomes(sessions, 1)
    second.becomes(sessions, 0)

    world.gemini_inside(second, "(term %s)", "*terminal*")
    second.becomes(sessions, 1)
    first.becomes(sessions, 1)
