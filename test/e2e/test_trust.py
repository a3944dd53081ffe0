# SPDX-License-Identifier: GPL-3.0-or-later
"""Gemini CLI decides about trust, unless the option is set."""

import json

import pytest
from harness import gemini, qwen
from harness.emacs import Emacs, lisp
from harness.gemini import Gemini
from harness.world import World

pytestmark = pytest.mark.once

RESTART = "Press 'r' to restart"


@pytest.mark.parametrize("value", ["untrusted", "nil"])
def test_trust_is_overridden_on_request_only(world: World, value: str) -> None:
    directory = world.home / ".gemini"
    settings = {**gemini.SETTINGS, "security": {**gemini.SETTINGS["security"]}}
    settings["security"]["folderTrust"] = {"enabled": True}
    directory.joinpath("settings.json").write_text(json.dumps(settings))
    directory.joinpath("trustedFolders.json").write_text(
        json.dumps({str(world.project): "TRUST_FOLDER"})
    )
    emacs = world.emacs(
        world.file("a.txt", "1\n"),
        extra=f"(setq gemini-companion-is-trusted '{value})",
    )

    if value == "nil":
        cli = world.gemini()
        cli.is_free()
        assert RESTART not in cli.screen()
        changes_trust(emacs, cli, "gemini")
    else:
        cli = world.gemini(connects=False)
        cli.wait_for(RESTART)


def changes_trust(emacs: Emacs, cli: Gemini, client: str) -> None:
    """Check that ``cli`` has the command that the status names."""
    command = emacs.value(f"(gemini-companion-clients-get {lisp(client)} :trust)")
    cli.type(str(command), lambda: "Modify Trust Level" in cli.screen())


def test_qwen_has_the_command_that_the_status_names(world: World) -> None:
    directory = world.home / ".qwen"
    directory.mkdir()
    trust = {**qwen.SETTINGS["security"], "folderTrust": {"enabled": True}}
    directory.joinpath("trustedFolders.json").write_text(
        json.dumps({str(world.project): "DO_NOT_TRUST"})
    )
    emacs = world.emacs(world.file("a.txt", "1\n"))
    changes_trust(emacs, world.qwen(security=trust), "qwen")
