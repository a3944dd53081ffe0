# SPDX-License-Identifier: GPL-3.0-or-later
"""Failures of a machine and their consequences.

GC_STOPPED sets for how many seconds processes are stopped.
"""

import os
import time

import psutil
import pytest
from harness.gemini import CONNECTED
from harness.model import say, write_file
from harness.world import World

pytestmark = pytest.mark.once

STOPPED = float(os.environ.get("GC_STOPPED") or 3)


@pytest.mark.shared("server")
def test_stopped_processes_continue(world: World) -> None:
    file, emacs, reviews, cli = world.review("one\n", "uno\n", say("first done"))
    stopped = [
        # It continues a stopped process at once.
        psutil.Process(world.tmux.pid),
        psutil.Process(emacs.pid),
        *world.scratch.processes("gemini -m"),
        *world.scratch.servers(),
    ]

    for process in stopped:
        process.suspend()
    try:
        time.sleep(STOPPED)  # suspending a laptop is only a long time
        assert {one.status() for one in stopped} == {psutil.STATUS_STOPPED}
    finally:
        for process in stopped:
            process.resume()

    reviews.accept()
    cli.wait_for("first done")
    assert file.read_text() == "uno\n"
    reviews.proposed(cli, file, write_file(file, "due\n"), say("second done"))
    reviews.accept()
    cli.wait_for("second done")
    assert file.read_text() == "due\n"
    assert CONNECTED in cli.ide_status()


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
