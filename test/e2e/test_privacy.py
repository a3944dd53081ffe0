# SPDX-License-Identifier: GPL-3.0-or-later
"""Nothing that the user excludes reaches the model."""

import re

import pytest
from harness.model import write_file
from harness.world import World
from test_context import active
from test_restart import restart

pytestmark = pytest.mark.shared("review")

SHARED = "(mapcar (lambda (f) (plist-get f :path)) (gemini-companion-shared))"


def test_no_file_is_active_while_a_secret_one_is_selected(world: World) -> None:
    plain = world.file("a.txt", "one two\n")
    secret = world.file(".env.local", "PASSWORD=hunter2\n")
    lone = world.scratch.root / "elsewhere" / "id_ed25519"
    lone.parent.mkdir()
    lone.write_text("KEY")
    log = f'(setq gemini-companion-log-file "{world.scratch.root}/server.log")'
    emacs, reviews, cli = world.pair(plain, extra=log)
    # The next server logs all messages.
    restart(emacs, world.scratch)
    cli.has_context(active(plain))

    emacs.act(f'(find-file "{secret}")')
    emacs.act("(progn (push-mark (point-min) t t) (goto-char (point-max)))")
    cli.has_context({"otherOpenFiles": [str(plain)]})
    emacs.act(f'(find-file "{lone}")')
    cli.has_context({"otherOpenFiles": [str(plain)]})
    emacs.act('(switch-to-buffer "*scratch*")')
    cli.has_context({"otherOpenFiles": [str(plain)]})
    emacs.becomes(SHARED, [str(plain)])
    secrets = re.compile("hunter2|env.local|elsewhere")
    for request in cli.model.requests:
        for message in request["contents"]:
            for part in message["parts"]:
                text = part.get("text", "")
                # The CLI itself sends the names in its directory to the model.
                assert "editor context" not in text or not secrets.search(text)
    for file in *world.scratch.discovery_files(), world.scratch.root / "server.log":
        assert not secrets.search(file.read_text())

    emacs.act(f'(find-file "{plain}")')
    cli.has_context(active(plain))
    reviews.proposed(cli, secret, write_file(secret, "new\n"))
    reviews.reject()
    cli.wait_for("Request cancelled")


def test_pause_withdraws_everything_at_once(world: World) -> None:
    file = world.file("a.txt", "one\n")
    emacs, reviews, cli = world.pair(file)
    cli.has_context(active(file))

    emacs.command("gemini-companion-pause")
    emacs.wait_for("paused Gemini:1")
    emacs.act("(forward-char)")
    cli.has_context({})
    assert emacs.value(SHARED) is None

    emacs.eval("(gemini-companion-restart)")
    emacs.says("was restarted")
    cli.has_context({})
    reviews.proposed(cli, file, write_file(file, "uno\n"))
    reviews.reject()
    # Before that, typed text is the answer to the question.
    cli.wait_for("Request cancelled")

    emacs.eval("(gemini-companion-pause)")
    emacs.act("(forward-line)")
    emacs.holds(SHARED)
    cli.has_context(active(file, 2))
