# SPDX-License-Identifier: GPL-3.0-or-later
"""The harness acts on a CLI only when that is ready, however late it is."""

import pytest
from harness.gemini import NO_COMMAND
from harness.world import World


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
    assert cli.ide("enable") == "Disconnected"
    assert refused
    emacs.turn_on()
    cli.enable()
