# SPDX-License-Identifier: GPL-3.0-or-later
"""The harness acts on a CLI only when that is ready, however late it is."""

from concurrent.futures import ThreadPoolExecutor, wait
from threading import Event
from typing import Any
from urllib.request import urlopen

import pytest
from harness.gemini import NO_COMMAND
from harness.model import Model, say
from harness.wait import BOUND, eventually
from harness.world import World


@pytest.mark.shared("review")
def test_command_is_given_until_the_cli_has_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    emacs, _, cli = world.pair(world.file("a.txt", "one\n"))
    read = cli.terminal.screen
    refused: list[str] = []

    def screen() -> str:
        """Turn the mode off when the CLI, which is connected, has refused a command."""
        shown = read()
        if NO_COMMAND in shown and not refused:
            refused.append(shown)
            emacs.eval("(gemini-companion-mode -1)")
        return shown

    monkeypatch.setattr(cli.terminal, "screen", screen)
    # On a busy machine, the CLI has the command for a moment after it has connected.
    eventually(lambda: cli.ide("enable") == "Disconnected", "it has lost Emacs")
    assert refused
    emacs.turn_on()
    cli.enable()


def test_a_failure_is_reported_though_tmux_was_killed(world: World) -> None:
    world.tmux.start("sleeper", ["sleep", "600"], world.project, {}, (80, 24))
    for process in world.scratch.processes("tmux -S"):
        process.kill()
    eventually(lambda: "tmux has exited" in world.report(), "a report")


class Late(list[dict[str, Any]]):
    """A list of requests in which what appends one stays until it may go on."""

    def __init__(self) -> None:
        self.goes_on = Event()

    def append(self, request: dict[str, Any]) -> None:
        super().append(request)
        self.goes_on.wait(BOUND)


def test_a_request_that_is_there_is_answered_even_if_it_does_not_wait_yet() -> None:
    model = Model()
    model.requests = requests = Late()
    model.answers.clear()
    model.script(say("first said"), say("second said"))

    def asked() -> bytes:
        with urlopen(f"{model.url}/:streamGenerateContent", b"{}") as answer:
            return bytes(answer.read())

    with ThreadPoolExecutor() as pool:
        try:
            first = pool.submit(asked)
            eventually(lambda: len(model.requests) == 1, "the first is there")
            model.answer_those()
            requests.goes_on.set()
            assert b"first said" in first.result(BOUND)
            second = pool.submit(asked)
            assert not wait([second], 0.5).done
            model.answer_those()
            assert b"second said" in second.result(BOUND)
        finally:
            model.close()
