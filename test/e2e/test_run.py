# SPDX-License-Identifier: GPL-3.0-or-later
"""M-x gemini-companion-run starts the CLI in a terminal, and it connects."""

from __future__ import annotations

import json

import pytest
from harness import gemini
from harness.emacs import lisp
from harness.gemini import CONNECTED
from harness.needs import VTERM, needs_eat, needs_vterm
from harness.wait import eventually
from harness.world import World

BUFFER = "*gemini: project*"
TERMINALS = [
    pytest.param("term", "", id="term"),
    pytest.param("eat", "", marks=[needs_eat, pytest.mark.once], id="eat"),
    pytest.param(
        "vterm",
        f"(add-to-list 'load-path {lisp(VTERM)})",
        marks=[needs_vterm, pytest.mark.once],
        id="vterm",
    ),
]


@pytest.mark.parametrize(("terminal", "load"), TERMINALS)
def test_run_turns_the_mode_on_and_connects_and_a_key_starts_again(
    world: World, terminal: str, load: str
) -> None:
    emacs = world.emacs(
        mode=False,
        extra=f"{load} (setq gemini-companion-terminal '{terminal})"
        f" (dired {lisp(world.project)})",
    )

    cli = world.run(emacs)

    emacs.holds("(gemini-companion-sessions)", "a session")
    assert CONNECTED in cli.ide_status()
    emacs.keys("M-x")
    emacs.holds("(active-minibuffer-window)", "M-x is for Emacs")
    emacs.keys("C-g")
    emacs.holds("(not (active-minibuffer-window))")

    cli.type(
        "/quit", lambda: "Gemini CLI: finished; g restarts" in emacs.terminal.screen()
    )
    emacs.holds("(null (gemini-companion-sessions))", "the session is gone")
    emacs.keys("g")

    emacs.holds("(gemini-companion-sessions)", "connected again")


ASKS = r"""#!/bin/sh
stty raw -echo
printf '\033]11;?\033\\'
head -c 25 >answer.new
mv answer.new answer
exec cat
"""


@pytest.mark.parametrize(("terminal", "load"), TERMINALS)
def test_cli_is_sent_the_background_color(
    world: World, terminal: str, load: str
) -> None:
    extra = f"{load} (setq gemini-companion-terminal '{terminal})"
    emacs = world.emacs(world.file("a.txt"), extra=extra)
    program = world.file("asks", ASKS)
    program.chmod(0o700)

    emacs.act('(set-face-background \'default "#ffffff")')
    emacs.act(
        f"""(progn (setq gemini-companion-run-commands
                         '(("gemini" . {lisp(program)})))
                   (gemini-companion-run))"""
    )

    answer = world.project / "answer"
    eventually(answer.exists, "the background color")
    assert answer.read_bytes() == b"\x1b]11;rgb:ffff/ffff/ffff\x1b\\"


@pytest.mark.once
def test_cli_whose_ide_integration_is_off_gets_an_offer_and_then_a_hint(
    world: World,
) -> None:
    emacs = world.emacs(
        world.file("a.txt"), extra="(setq gemini-companion-terminal 'term)"
    )
    settings = world.home / ".gemini" / "settings.json"
    disabled = {**gemini.SETTINGS, "ide": {"enabled": False, "hasSeenNudge": True}}
    settings.write_text(json.dumps(disabled), encoding="utf-8")
    question = "Enable IDE integration in Gemini CLI? (y or n)"
    cli = world.run(emacs, question=question, key="n")

    emacs.wait_for("is not connected; run /ide enable there")
    emacs.eval("(gemini-companion-status)")
    emacs.wait_for("Not connected: IDE integration is off in Gemini CLI")
    emacs.eval(f"(select-window (get-buffer-window {lisp(BUFFER)}))")
    cli.ide("enable")

    emacs.wait_for("Connected: 1 Gemini CLI")


@pytest.mark.once
def test_keys_of_an_ended_cli_work_with_evil(world: World) -> None:
    emacs = world.emacs(
        world.file("a.txt"),
        extra="(setq gemini-companion-terminal 'term)"
        ' (when (locate-library "evil") (require \'evil) (evil-mode))',
    )
    if emacs.eval("(featurep 'evil)") == "nil":
        pytest.skip("evil is not installed")
    process = f"(get-buffer-process {lisp(BUFFER)})"
    emacs.eval('(setq gemini-companion-run-commands \'(("gemini" "sleep" "1000")))')
    emacs.eval("(progn (gemini-companion-run) nil)")
    emacs.holds(process)

    emacs.eval(f"(with-current-buffer {lisp(BUFFER)} (evil-normal-state))")
    emacs.eval(f"(signal-process {process} 'SIGTERM)")
    emacs.wait_for("g restarts it")
    emacs.keys("g")

    emacs.holds(f"(process-live-p {process})")
