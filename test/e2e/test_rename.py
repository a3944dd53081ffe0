# SPDX-License-Identifier: GPL-3.0-or-later
"""A rename that a model has a real language server compute, reviewed as one."""

import os
import signal
import sys
from pathlib import Path

import pytest
from harness.emacs import lisp
from harness.gemini import Gemini
from harness.model import call, say
from harness.needs import needs_qwen
from harness.qwen import Qwen
from harness.wait import eventually
from harness.world import World
from test_restart import MISSED
from test_rules import linked
from test_tools import linked_qwen

from test_permissions import BUFFER, OPEN, go_there

SERVER = Path(sys.executable).parent / "pylsp"
# With longer limits, for a busy machine.
EGLOT = f"""
;; Keys are typed at once here.
(setq gemini-companion-overview-busy-seconds 0
      gemini-companion-overview-page-seconds 0)
(setq gemini-companion-words-seconds 60
      gemini-companion-rename--patience 180)
(with-eval-after-load 'eglot
  (setq eglot-server-programs '((python-mode {lisp(SERVER)}))))
(when (require 'eglot nil t)
  (add-hook 'python-mode-hook #'eglot-ensure))
"""
WITHOUT_EGLOT = """
(setq gemini-companion-overview-busy-seconds 1
      gemini-companion-overview-page-seconds 1
      gemini-companion-words-seconds 1
      gemini-companion-rename--patience 30)
(eglot-shutdown-all)
"""
HAS_SERVER = """
(with-current-buffer "a.py"
  (and (eglot-current-server) (eglot--server-capable :renameProvider) t))
"""
TEXTS = {
    "a.py": "def one():\n    return 1\n",
    "b.py": "from a import one\n\n\ntwo = one() + one()\n\n\n\n\n\nx = one\n",
    "c.py": "import a\n\nprint(a.one())\n",
}
RENAMED = {name: text.replace("one", "uno") for name, text in TEXTS.items()}


class Renamed:
    """A project of three files, an Emacs with a language server, and a linked CLI."""

    tool = "mcp_emacs_rename_symbol"
    # Not with the policy.
    asks = False

    def __init__(self, world: World) -> None:
        self.project = world.project
        files = [world.file(name, text) for name, text in TEXTS.items()]
        for file in files:
            os.utime(file, (1e9, 1e9))
        self.emacs = world.emacs(files[0], extra=EGLOT)
        if not self.emacs.value("(featurep 'eglot)"):
            pytest.skip("No Eglot")
        self.emacs.keys("C-a")  # Eglot connects after a command
        self.emacs.holds(HAS_SERVER)
        self.cli = self.start(world)

    def start(self, world: World) -> Gemini:
        """Return a linked CLI, which asks about edits."""
        return linked(world, "default", "")[2]

    def texts(self) -> dict[str, str]:
        return {name: (self.project / name).read_text() for name in TEXTS}

    def ask(self, said: str) -> None:
        """Let the model ask for the rename, which appears by itself.

        A CLI that ``asks`` for permission in its terminal gets it.
        """
        arguments = {"file": "a.py", "symbol": "one", "new_name": "uno"}
        self.cli.model.script(call(self.tool, **arguments), say(said))
        self.cli.prompt()
        if self.asks:
            self.cli.answer("once")
        self.emacs.holds(f"(and {OPEN} {BUFFER} (get-buffer-window {BUFFER}) t)")

    def go(self, text: str) -> None:
        """Select the overview, and go to the line with ``text``."""
        self.emacs.command("gemini-companion-list")
        self.emacs.holds("(derived-mode-p 'gemini-companion-overview-mode)")
        self.emacs.eval(
            f"(progn (goto-char (point-min)) (search-forward {lisp(text)})"
            " (beginning-of-line) nil)"
        )

    def answer(self, *keys: str) -> None:
        go_there(self.emacs)
        self.emacs.keys(*keys)


class RenamedByQwen(Renamed):
    """The same, where the model of Qwen Code asks."""

    tool = "mcp__emacs__rename_symbol"
    asks = True

    def __init__(self, world: World) -> None:
        world.home.joinpath(".qwen").mkdir(exist_ok=True)
        super().__init__(world)

    def start(self, world: World) -> Qwen:
        _, _, cli = linked_qwen(world)
        return cli


def reviews(renamed: Renamed) -> None:
    """Refuse the rename, write all of it, and undo it in two ways."""
    emacs, cli = renamed.emacs, renamed.cli
    renamed.ask("said no")
    # Three files, and one request.
    assert emacs.value("(length (gemini-companion-requests))") == 1
    renamed.answer("R")
    emacs.wait_for("Reason for the model")
    emacs.text("It is public")
    emacs.keys("Enter")
    cli.wait_for("said no")
    answer = cli.model.last_message()
    assert "the user refused" in answer
    assert "It is public" in answer
    assert renamed.texts() == TEXTS

    renamed.ask("said yes")
    renamed.answer("C-c", "C-c")
    cli.wait_for("said yes")
    assert "Renamed one to uno and saved" in cli.model.last_message()
    assert renamed.texts() == RENAMED
    emacs.holds('(with-current-buffer "a.py" (search-forward "uno" nil t))')

    # Undone as one, on the row of one file.
    renamed.go("accepted")
    emacs.keys("u")
    emacs.wait_for("Undo rename one")
    emacs.keys("y")
    emacs.says("Undid 3 edits")
    assert renamed.texts() == TEXTS
    # Taken back, which renames again, and that as well.
    emacs.keys("C-/")
    emacs.says("Taken back: undo of rename one")
    assert renamed.texts() == RENAMED
    emacs.keys("C-/")
    emacs.says("Taken back: rename one")
    assert renamed.texts() == TEXTS


def is_interrupted(renamed: Renamed) -> None:
    """Ask for the rename, and type Escape in the terminal while it is reviewed."""
    renamed.ask("never said")
    renamed.cli.interrupt("Escape", "esc to cancel")


def is_interrupted_early(renamed: Renamed) -> None:
    """Type Escape while Emacs still waits for a second answer of the server."""
    emacs, cli = renamed.emacs, renamed.cli
    emacs.eval("(setq gemini-companion-rename--pause 3600)")
    arguments = {"file": "a.py", "symbol": "one", "new_name": "uno"}
    cli.model.script(call(renamed.tool, **arguments), say("never said"))
    cli.prompt()
    cli.wait_for("rename_symbol")
    cli.interrupt("Escape", "esc to cancel")
    emacs.eval("(setq gemini-companion-rename--pause 1)")


def nothing_is_open(renamed: Renamed) -> None:
    renamed.emacs.holds(f"(null {OPEN})")
    assert renamed.texts() == TEXTS


@pytest.mark.shared("yolo")
def test_a_rename_of_the_model_is_written_as_reviewed_or_not_at_all(
    world: World,
) -> None:
    renamed = Renamed(world)
    for interrupt in (is_interrupted, is_interrupted_early):
        interrupt(renamed)
        # Gemini CLI does not report that.
        renamed.cli.is_free()
        nothing_is_open(renamed)
    reviews(renamed)
    is_written_only_as_reviewed(world, renamed)


def is_written_only_as_reviewed(world: World, renamed: Renamed) -> None:
    """Let the language server, a file and Emacs change during a review."""
    emacs, cli = renamed.emacs, renamed.cli
    # The overview would show the rename instead of a window of its own.
    emacs.eval(
        '(progn (kill-buffer "*gemini*") (switch-to-buffer "a.py")'
        " (delete-other-windows) nil)"
    )
    renamed.ask("said after restart")
    restart = "(eglot-reconnect (eglot-current-server))"
    emacs.eval(f'(with-current-buffer "a.py" {restart} nil)')
    emacs.holds(HAS_SERVER)
    renamed.answer("C-c", "C-c")
    cli.wait_for("said after restart")
    assert renamed.texts() == RENAMED
    for name, text in TEXTS.items():
        world.file(name, text)
    emacs.eval('(with-current-buffer "a.py" (revert-buffer t t) nil)')

    renamed.ask("said changed")
    world.file("c.py", "import a\n")
    renamed.answer("C-c", "C-c")
    emacs.says("Nothing was renamed")
    cli.wait_for("said changed")
    assert "a file has changed meanwhile" in cli.model.last_message()
    assert renamed.texts() == {**TEXTS, "c.py": "import a\n"}

    renamed.ask("said lost")
    log = world.scratch.root / "gemini.log"
    missed = log.read_text().count(MISSED)
    os.kill(emacs.pid, signal.SIGKILL)
    cli.wait_for("said lost")
    assert "not known whether anything was renamed" in cli.model.last_message()
    assert renamed.texts() == {**TEXTS, "c.py": "import a\n"}
    # Its last attempt to open the lost connection again would end the next one, too.
    eventually(lambda: log.read_text().count(MISSED) - missed > 1, "it has given up")
    world.follows(emacs)


@needs_qwen
@pytest.mark.shared("linked-qwen")
def test_a_rename_of_the_model_of_qwen_is_reviewed(world: World) -> None:
    renamed = RenamedByQwen(world)
    is_interrupted(renamed)
    nothing_is_open(renamed)
    reviews(renamed)
    renamed.emacs.eval(f"(progn {WITHOUT_EGLOT} nil)")
