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
from harness.qwen import Qwen, stays_connected
from harness.world import World
from test_tools import link

SERVER = Path(sys.executable).parent / "pylsp"
# With longer limits, for a busy machine.
EGLOT = f"""
;; Keys are typed at once here.
(setq gemini-companion-overview-busy-seconds 0
      gemini-companion-overview-page-seconds 0)
(setq gemini-companion-words-seconds 60
      gemini-companion-rename--patience 180
      gemini-companion-errors-timeout 60
      gemini-companion-rename--errors-seconds 60)
(with-eval-after-load 'eglot
  (setq eglot-server-programs '((python-mode {lisp(SERVER)}))))
(when (require 'eglot nil t)
  (add-hook 'python-mode-hook #'eglot-ensure))
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
OPEN = "(gemini-companion-rename--all-open)"


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
        link(world, self.emacs)
        self.cli = self.start(world)

    def start(self, world: World) -> Gemini:
        return world.gemini()

    def texts(self) -> dict[str, str]:
        return {name: (self.project / name).read_text() for name in TEXTS}

    def ask(self, said: str, *, appears: bool = False) -> None:
        """Let the model ask for the rename, which appears in the overview.

        It ``appears`` by itself while the overview is not displayed.
        A CLI that ``asks`` for permission in its terminal gets it.
        """
        arguments = {"file": "a.py", "symbol": "one", "new_name": "uno"}
        self.cli.model.script(call(self.tool, **arguments), say(said))
        self.cli.prompt()
        if self.asks:
            self.cli.answer("once")
        self.emacs.holds(f"(and {OPEN} t)", "the rename is open")
        if not appears:
            self.go()
        self.emacs.wait_for("rename one")

    def go(self, text: str = "rename one") -> None:
        """Select the overview, and go to the line with ``text``."""
        self.emacs.command("gemini-companion-list")
        self.emacs.holds("(derived-mode-p 'gemini-companion-overview-mode)")
        self.emacs.eval(
            f"(progn (goto-char (point-min)) (search-forward {lisp(text)})"
            " (beginning-of-line) nil)"
        )

    def accept(self, question: str, *keys: str) -> None:
        self.emacs.keys("a")
        self.emacs.wait_for(question)
        self.emacs.keys(*keys)


class RenamedByQwen(Renamed):
    """The same, where the model of Qwen Code asks."""

    tool = "mcp__emacs__rename_symbol"
    asks = True

    def __init__(self, world: World) -> None:
        world.home.joinpath(".qwen").mkdir()
        super().__init__(world)

    def start(self, world: World) -> Qwen:
        cli = world.qwen()
        stays_connected(self.emacs, cli)
        return cli


def reviews(renamed: Renamed) -> None:
    """Refuse the rename, write all of it, and exclude a place."""
    emacs, cli = renamed.emacs, renamed.cli
    renamed.ask("said no")
    # Three files, and one request.
    assert emacs.value("(length (gemini-companion-requests))") == 1
    assert emacs.value("(length (gemini-companion-edits-open))") == 3
    renamed.go()
    emacs.keys("r")
    cli.wait_for("said no")
    assert "the user refused" in cli.model.last_message()
    assert renamed.texts() == TEXTS

    renamed.ask("said yes")
    renamed.go()
    renamed.accept("Write rename one", "y")
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
    renamed.ask("said in part")
    emacs.becomes(f"(length (gemini-companion-rename-errors (car {OPEN})))", 3)
    renamed.go("x = uno")
    emacs.keys("x")
    emacs.wait_for("1 excluded")
    renamed.accept("1 excluded", "yes", "Enter")
    cli.wait_for("said in part")
    answer = cli.model.last_message()
    assert "excluded by the user, unchanged: 10" in answer
    assert "10: error: undefined name 'one'" in answer
    excluded = RENAMED["b.py"].replace("x = uno", "x = one")
    assert renamed.texts() == {**RENAMED, "b.py": excluded}


def is_interrupted(renamed: Renamed) -> None:
    """Ask for the rename, and type Escape in the terminal while it is reviewed."""
    renamed.ask("never said", appears=True)
    renamed.cli.interrupt("Escape", "esc to cancel")


def nothing_is_open(renamed: Renamed) -> None:
    renamed.emacs.holds(f"(null (or {OPEN} (gemini-companion-edits-open)))")
    assert renamed.texts() == TEXTS


def test_a_rename_of_the_model_is_reviewed_and_written_as_one(world: World) -> None:
    renamed = Renamed(world)
    is_interrupted(renamed)
    # Gemini CLI does not report that.
    renamed.cli.is_free()
    nothing_is_open(renamed)
    reviews(renamed)


def test_a_rename_is_written_as_reviewed_or_not_at_all(world: World) -> None:
    renamed = Renamed(world)
    emacs, cli = renamed.emacs, renamed.cli
    renamed.ask("said after restart")
    restart = "(eglot-reconnect (eglot-current-server))"
    emacs.eval(f'(with-current-buffer "a.py" {restart} nil)')
    emacs.holds(HAS_SERVER)
    renamed.go()
    renamed.accept("Write rename one", "y")
    cli.wait_for("said after restart")
    assert renamed.texts() == RENAMED
    for name, text in TEXTS.items():
        world.file(name, text)
    emacs.eval('(with-current-buffer "a.py" (revert-buffer t t) nil)')

    renamed.ask("said changed")
    world.file("c.py", "import a\n")
    cli.wait_for("said changed")
    assert "a file has changed meanwhile" in cli.model.last_message()
    assert renamed.texts() == {**TEXTS, "c.py": "import a\n"}

    renamed.ask("said lost")
    os.kill(emacs.pid, signal.SIGKILL)
    cli.wait_for("said lost")
    assert "not known whether anything was renamed" in cli.model.last_message()
    assert renamed.texts() == {**TEXTS, "c.py": "import a\n"}


@needs_qwen
def test_a_rename_of_the_model_of_qwen_is_reviewed(world: World) -> None:
    renamed = RenamedByQwen(world)
    is_interrupted(renamed)
    nothing_is_open(renamed)
    reviews(renamed)
