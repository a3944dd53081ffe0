# SPDX-License-Identifier: GPL-3.0-or-later
"""The CLI stays connected when the server crashes."""

import os
import signal
from pathlib import Path

import psutil
import pytest
from harness.emacs import Emacs, lisp
from harness.model import say, write_file
from harness.scratch import Scratch
from harness.wait import eventually
from harness.world import World

pytestmark = pytest.mark.shared("review")


def hold_next(emacs: Emacs, go: Path) -> None:
    """Let the next server of ``emacs`` start only once the file ``go`` exists."""
    wait = f'until [ -e {go} ]; do sleep 0.05; done; exec "$@"'
    emacs.eval(
        f"""(setq gemini-companion-server-command
              (append '("sh" "-c" {lisp(wait)} "sh")
                      gemini-companion-server-command))"""
    )


def hold_none(emacs: Emacs) -> None:
    """Let the next servers of ``emacs`` start at once again."""
    command = "gemini-companion-server-command"
    emacs.eval(f"(setq {command} (nthcdr 4 {command}))")


def has_followed(previous: psutil.Process, emacs: Emacs, scratch: Scratch) -> None:
    """Wait until ``emacs`` uses another server than ``previous``, the only one."""
    pid = "(plist-get (gemini-companion-server-info) :pid)"
    emacs.holds(
        f"(and (gemini-companion-server-ready-p) (/= {previous.pid} {pid}))",
        "Emacs uses another server",
    )
    eventually(lambda: len(scratch.servers()) == 1, "one server")


def restart(emacs: Emacs, scratch: Scratch) -> None:
    (server,) = scratch.servers()
    emacs.eval("(gemini-companion-restart)")
    has_followed(server, emacs, scratch)


MISSED = "IDE fetch failed"
WARNED = '(ignore-errors (with-current-buffer "*Warnings*" (buffer-string)))'


def test_crash_of_the_server_goes_unnoticed(world: World) -> None:
    file, emacs, reviews, cli = world.review("one\n", "due\n", say("first done"))
    (server,) = world.scratch.servers()
    log = world.scratch.root / "gemini.log"
    missed = log.read_text().count(MISSED)

    os.kill(server.pid, signal.SIGKILL)
    has_followed(server, emacs, world.scratch)

    def attempts() -> int:
        return log.read_text().count(MISSED) - missed

    # The CLI has given up, and has closed its diff.
    if not emacs.value("(and (gemini-companion-edits-open) t)"):
        pytest.skip("this machine starts no server within 2.5 seconds")
    reviews.accept()
    eventually(lambda: attempts() > 1 or "first done" in cli.screen(), "the outcome")
    if attempts() > 1:
        pytest.skip("this machine starts no server within 2.5 seconds")
    cli.finished("first done", file, "due\n")
    # Emacs may have noticed the end too late to warn.
    if emacs.value(WARNED) or attempts():
        pytest.skip("this machine starts no server within a second")
    reviews.proposed(cli, file, write_file(file, "uno\n"), say("second done"))
    reviews.edit("uno", "unum")
    cli.answer("once")
    cli.finished("second done", file, "unum\n")
    assert "Connected to Emacs" in cli.ide_status()


def test_crash_that_a_cli_has_missed_is_reported_with_the_remedy(world: World) -> None:
    turn = say("written at last")
    file, emacs, reviews, cli = world.review("one\n", "due\n", turn)
    (server,) = world.scratch.servers()
    log, go = (world.scratch.root / name for name in ("gemini.log", "go"))
    before = log.read_text().count(MISSED)

    def missed() -> int:
        return log.read_text().count(MISSED) - before

    hold_next(emacs, go)

    os.kill(server.pid, signal.SIGKILL)
    eventually(missed, "the CLI has missed the server")
    go.touch()

    emacs.holds(WARNED)
    has_followed(server, emacs, world.scratch)
    hold_none(emacs)
    if missed() > 1:
        pytest.skip("the CLI did not wait until this machine had started a server")
    reviews.accept()
    cli.finished("written at last", file, "due\n")
    assert "/ide enable" in emacs.value(WARNED)
    cli.enable()

    # One that is asked to end ends its reviews, in Emacs too.
    (server,) = world.scratch.servers()
    reviews.proposed(cli, file, write_file(file, "uno\n"))
    reviews.edit("uno", "dos")
    emacs.eval('(kill-buffer "*Warnings*")')
    os.kill(server.pid, signal.SIGTERM)

    cli.wait_for("Rejected")
    reviews.wait_until(0)
    emacs.holds('(get-buffer "*Warnings*")')
    assert reviews.kept() == "dos\n"
    has_followed(server, emacs, world.scratch)
