# SPDX-License-Identifier: GPL-3.0-or-later
"""The CLI understands what is sent to its prompt."""

import pytest
from harness.emacs import Emacs, lisp
from harness.gemini import Gemini
from harness.model import say
from harness.world import World

pytestmark = [pytest.mark.shared("context"), pytest.mark.once]

ODD = "src/it's (odd), #1 größe & co..txt"

FLYMAKE = """
(progn
  (require 'flymake)
  (setq flymake-start-on-flymake-mode t)
  (add-hook 'flymake-diagnostic-functions
            (lambda (report &rest _)
              (funcall report
                       (list (flymake-make-diagnostic
                              (current-buffer) 5 8 :error
                              "`two' is not a number"))))
            nil t)
  (flymake-mode)
  (flymake-start)
  (goto-char 6))
"""


def call(emacs: Emacs, buffer: str, code: str) -> None:
    """Run ``code`` in ``buffer``, in its window."""
    emacs.eval(f"(progn (pop-to-buffer {lisp(buffer)}) {code} nil)")


def sent(emacs: Emacs, cli: Gemini) -> str:
    """Complete and send the prompt; return the texts in the request."""
    cli.model.script(say("all done"))
    emacs.eval(
        '(gemini-companion-send-type (car (gemini-companion-sessions)) "fix it" t)'
    )
    cli.wait_for("all done")
    return "".join(
        part.get("text", "")
        for message in cli.model.requests[-1]["contents"]
        for part in message["parts"]
    )


@pytest.mark.shared("inside")
def test_references_are_read_by_the_cli(world: World) -> None:
    file = world.file(ODD, "one\ntwo\nthree\n")
    emacs, _, cli = world.pair_inside(file)

    region = "(set-mark 5) (goto-char 14) (activate-mark) (gemini-companion-send)"
    call(emacs, file.name, region)
    cli.wait_for("(lines 2-3)")
    call(emacs, file.name, f"(deactivate-mark) {FLYMAKE}")
    emacs.holds(f"(with-current-buffer {lisp(file.name)} (flymake-diagnostics))")
    call(emacs, file.name, "(gemini-companion-send)")
    cli.wait_for("is not a number")
    asked = sent(emacs, cli)

    assert "(lines 2-3)" in asked
    assert "(line 2): `two' is not a number" in asked
    assert "one\ntwo\nthree\n" in asked


def test_a_prompt_elsewhere_is_offered_for_pasting(world: World) -> None:
    file = world.file("a.txt", "one\n")
    emacs, _, cli = world.pair(file)

    emacs.command("gemini-companion-send")
    emacs.says("does not run in an Emacs terminal")
    emacs.becomes("(current-kill 0)", "@a.txt (line 1) ")
    assert "@a.txt" not in cli.screen()
