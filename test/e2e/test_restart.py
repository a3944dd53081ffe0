# SPDX-License-Identifier: GPL-3.0-or-later
"""The server is restarted, or dies, and the CLI works on."""

import os
import signal

from harness.model import say, write_file
from harness.scratch import Scratch
from harness.wait import eventually
from harness.world import World


def test_restart_keeps_the_cli_and_its_review(world: World, scratch: Scratch) -> None:
    file = scratch.file("a.txt", "one\n")
    emacs, reviews, cli = world.pair(file)
    reviews.proposed(cli, file, write_file(file, "uno\n"), say("first done"))
    before = [server.pid for server in scratch.servers()]

    emacs.eval("(gemini-companion-restart)")
    eventually(
        lambda: (
            [server.pid for server in scratch.servers()] not in ([], before)
            and len(scratch.servers()) == 1
        ),
        "one new server",
    )

    reviews.accept()
    cli.wait_for("first done")
    assert file.read_text() == "uno\n"

    reviews.proposed(cli, file, write_file(file, "due\n"), say("second done"))
    reviews.edit("due", "dos")
    reviews.accept()
    cli.wait_for("second done")
    assert file.read_text() == "dos\n"
    assert "Connected to Emacs" in cli.ide_status()


def test_killed_server_is_replaced_and_the_person_is_told(
    world: World, scratch: Scratch
) -> None:
    file = scratch.file("a.txt", "one\n")
    emacs, reviews, cli = world.pair(file)
    (server,) = scratch.servers()
    reviews.proposed(cli, file, write_file(file, "due\n"), say("written at last"))

    os.kill(server.pid, signal.SIGKILL)

    emacs.holds('(get-buffer "*Warnings*")')
    reviews.accept()
    cli.wait_for("written at last")
    assert file.read_text() == "due\n"
    assert "/ide enable" in emacs.value(
        '(with-current-buffer "*Warnings*" (buffer-string))'
    )
    (other,) = eventually(scratch.servers, "a new server")
    assert other.pid != server.pid
    cli.type("/ide enable")
    cli.wait_for("Connected to Emacs")
    reviews.proposed(cli, file, write_file(file, "uno\n"), say("all done"))
    reviews.accept()
    cli.wait_for("all done")
    assert file.read_text() == "uno\n"
