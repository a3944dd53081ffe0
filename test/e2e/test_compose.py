# SPDX-License-Identifier: GPL-3.0-or-later
"""Prompts that are written in Emacs reach the model, as nothing but text."""

from __future__ import annotations

from random import Random

import pytest
from harness.emacs import STATE, Emacs, lisp
from harness.gemini import Gemini
from harness.model import say
from harness.needs import VTERM, needs_vterm
from harness.qwen import Qwen
from harness.world import World
from test_state import configure, start

PIECES = [
    "\x1b[201~", "\x1b[200~", "\x1b]0;x\x07", "\x1b", "\x03", "\x04", "\x1a",
    "\r\n", "\n", "\t", "\x9b201~", "\x7f", "@", "/quit\n", "!ls\n", "?", "größe ",
    "大小", "😀", "'", '"', "\\", "$(ls)", "`ls`", "```\n", "word ",
]  # fmt: skip


def submit(emacs: Emacs, text: str) -> None:
    """Write ``text`` as a prompt, and submit it by the key."""
    emacs.command("gemini-companion-compose")
    emacs.holds('(string-prefix-p "*prompt" (buffer-name (window-buffer)))')
    emacs.eval(f"(with-current-buffer (window-buffer) (insert {lisp(text)}) nil)")
    emacs.keys("C-c", "C-c")


def last_message(cli: Gemini) -> str:
    """Return the texts of the last message of the user that the model was sent."""
    request = cli.model.requests[-1]
    parts = (
        request["messages"][-1]["content"]
        if "messages" in request
        else request["contents"][-1]["parts"]
    )
    return parts if isinstance(parts, str) else "".join(part["text"] for part in parts)


def visible(text: str) -> str:
    """Return what a terminal may display of ``text``, without spaces."""
    return "".join(
        character
        for character in text
        if character.isprintable() and not character.isspace()
    )


@pytest.mark.once
@pytest.mark.parametrize(
    ("kind", "name", "terminal"),
    [
        pytest.param(Gemini, "gemini", "term", id="gemini"),
        pytest.param(Qwen, "qwen", "vterm", marks=needs_vterm, id="qwen"),
    ],
)
def test_prompts_are_nothing_but_text(
    world: World, kind: type[Gemini], name: str, terminal: str
) -> None:
    configure(world)
    emacs = world.emacs(
        world.file("a.txt", "one\n"), extra=f"(add-to-list 'load-path {lisp(VTERM)})"
    )
    cli = start(world, emacs, kind, name, terminal)
    emacs.holds(f"(eq 'ready {STATE})")

    random = Random(7)
    texts = ["".join(random.choices(PIECES, k=12)) for _ in range(4)]
    texts.append("\n".join(f"line {number}" for number in range(100)))
    for number, text in enumerate(texts):
        prompt = f"prompt {number} please {text} end {number}"
        asked = len(cli.model.requests)
        cli.model.script(say(f"answer {number}"))
        submit(emacs, prompt)
        cli.wait_for(f"answer {number}")
        emacs.holds(f"(eq 'ready {STATE})")
        assert len(cli.model.requests) == asked + 1
        assert visible(prompt) in visible(last_message(cli))
        assert "\x1b" not in last_message(cli)

    # A prompt that is submitted while it works is queued.
    cli.model.answers.clear()
    cli.model.script(say("first done"), say("second done"))
    submit(emacs, "prompt 8 please")
    emacs.holds(f"(eq 'working {STATE})")
    submit(emacs, "prompt 9 please")
    cli.terminal.wait_for("prompt 9 please")
    cli.model.answers.set()
    cli.wait_for("second done")
    assert "prompt 9 please" in last_message(cli)
