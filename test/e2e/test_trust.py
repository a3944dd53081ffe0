# SPDX-License-Identifier: GPL-3.0-or-later
"""Gemini CLI decides about trust, unless the option is set."""

import json

import pytest
from harness import gemini, qwen
from harness.emacs import lisp
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
    world.emacs(
        world.file("a.txt", "1\n"),
        extra=f"(setq gemini-companion-is-trusted '{value})",
    )

    if value == "nil":
        cli = world.gemini()
        cli.is_free()
        assert RESTART not in cli.screen()
    else:
        cli = world.gemini(connects=False)
        cli.wait_for(RESTART)


@pytest.mark.parametrize("client", ["gemini", "qwen"])
def test_cli_has_the_command_that_the_status_names(world: World, client: str) -> None:
    directory = world.home / f".{client}"
    directory.mkdir(exist_ok=True)
    settings = gemini.SETTINGS if client == "gemini" else qwen.SETTINGS
    trust = {**settings["security"], "folderTrust": {"enabled": True}}
    directory.joinpath("trustedFolders.json").write_text(
        json.dumps({str(world.project): "DO_NOT_TRUST"})
    )
    emacs = world.emacs(world.file("a.txt", "1\n"))
    if client == "gemini":
        directory.joinpath("settings.json").write_text(
            json.dumps({**settings, "security": trust})
        )
        cli = world.gemini()
    else:
        cli = world.qwen(security=trust)
    command = emacs.value(f"(gemini-companion-clients-get {lisp(client)} :trust)")
    cli.type(str(command), lambda: "Modify Trust Level" in cli.screen())
