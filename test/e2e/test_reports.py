# SPDX-License-Identifier: GPL-3.0-or-later
"""A CLI reports its state by the Program Status Protocol in each kind of terminal."""

from pathlib import Path

import pytest
from harness import copilot, played
from harness.emacs import STATE, TURN, Reviews, TerminalBuffer, lisp
from harness.gemini import write_program
from harness.needs import VTERM, needs_eat, needs_vterm
from harness.world import World

ENDS = """
(setq e2e-ends nil)
(defun e2e-end (&rest facts) (push facts e2e-ends))
(add-hook 'gemini-companion-turn-end-functions #'e2e-end)
"""


@pytest.mark.shared("reports")
@pytest.mark.parametrize(
    "terminal",
    [
        pytest.param("term", marks=[pytest.mark.differs("term.el")]),
        pytest.param("eat", marks=[needs_eat]),
        pytest.param("vterm", marks=[needs_vterm]),
    ],
)
def test_turns_of_a_copilot_that_reports_them_begin_and_end(
    world: World, terminal: str
) -> None:
    file = world.file("a.txt", "one\n")
    copilot.configure(world.scratch)
    root = Path(played.__file__).parents[3]
    program = write_program(
        world.scratch.root / "played",
        {"PYTHONPATH": f"{root}/test/python"},
        f"'{world.tools.python}' '{played.__file__}'",
    )
    load = f"(add-to-list 'load-path {lisp(VTERM)})"
    extra = f"{load} (setq gemini-companion-terminal '{terminal}) {ENDS}"
    emacs = world.emacs(file, extra=extra)
    emacs.eval(
        '(setq gemini-companion-run-client "copilot" gemini-companion-run-commands'
        f' \'(("copilot" . {lisp(program)})))'
    )
    emacs.command("gemini-companion-run")
    buffer = "*copilot: project*"
    emacs.holds(f"(eq 'ready {STATE})", "it has its answer, and is connected")
    cli, reviews = TerminalBuffer(emacs, buffer), Reviews(emacs)

    def reports(state: str, expected: str) -> None:
        """Let the CLI report ``state``, with which it is in the ``expected`` one."""
        emacs.eval(f'(process-send-string {lisp(buffer)} "{state}\\n")')
        emacs.holds(f"(eq '{expected} {STATE})", f"{state} is {expected}")
        # Nothing of a report is displayed.
        assert f"{state} reported" in cli.wait_for(f"{state} reported")

    reports("working", "working")
    emacs.holds(f"(and {TURN} (not (gemini-companion-turn-ended {TURN})))")
    reports("blocked", "waiting")
    reports("done", "ready")
    emacs.holds(f"(gemini-companion-turn-ended {TURN})")
    emacs.becomes("(length e2e-ends)", 1)

    reports("working", "working")
    emacs.eval(f'(process-send-string {lisp(buffer)} "edit {file}\\n")')
    reviews.wait_until(1)
    reports("done", "waiting")
    emacs.says("Copilot CLI (project) has finished, but its")
    emacs.becomes("(length e2e-ends)", 2)
    assert reviews.paths() == [str(file)]
    reviews.reject()
    emacs.holds(f"(eq 'ready {STATE})")
    assert emacs.value("(length e2e-ends)") == 2
    assert "7501" not in cli.screen()
    emacs.eval(
        f"(let ((kill-buffer-query-functions nil)) (kill-buffer {lisp(buffer)}))"
    )
    emacs.holds("(null (gemini-companion-sessions))", "it has ended")
