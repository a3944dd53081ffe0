# SPDX-License-Identifier: GPL-3.0-or-later
"""Photograph a graphical Emacs and the real Gemini CLI in it, for README.org."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from harness import gemini
from harness.display import screen, spelled, xdotool
from harness.emacs import STATE, Reviews, TerminalBuffer, lisp
from harness.gemini import QUESTION, Gemini
from harness.model import Part, replace, say, write_file
from harness.needs import VTERM
from harness.tools import ROOT, Tools
from harness.wait import eventually
from harness.world import World

SIZE = (128, 36)
# Columns of 10 pixels.
FONT = "DejaVu Sans Mono 12"
SETTINGS = """
(menu-bar-mode -1) (tool-bar-mode -1) (scroll-bar-mode -1) (blink-cursor-mode -1)
(global-eldoc-mode -1)
(set-frame-font {font}) (set-frame-size nil {columns} {rows})
(setq mode-line-compact t)  ; all of it is seen beside a terminal
(global-set-key (kbd "C-c g") 'gemini-companion-command-map)
(add-to-list 'load-path {vterm})
(setq gemini-companion-terminal 'vterm
      ;; A scripted turn takes less than one that is announced.
      gemini-companion-notify-turn-seconds 0
      gemini-companion-run-commands '(("gemini" . {program})))
(setq python-flymake-command '({python} "-m" "pyflakes"))
(add-hook 'python-mode-hook #'flymake-mode)
;; vterm, too, may lose a character whose bytes come apart.
(advice-add 'vterm--filter :filter-args #'e2e-hold)
"""
# Flymake has checked the last text, and the mode line shows that.
CHECKED = """(with-current-buffer "price.py"
  (force-mode-line-update)
  (null (seq-difference (flymake-running-backends) (flymake-reporting-backends))))"""
# What makes a picture ready: all keys are handled, and the text is as before.
SHOWN = """(progn (redisplay t) (prin1-to-string
  (list (input-pending-p) (current-message)
        (mapcar (lambda (window)
                  (with-selected-window window
                    (list (buffer-name) (window-edges)
                          (buffer-substring-no-properties
                           (window-start) (window-end window t))
                          (format-mode-line header-line-format)
                          (format-mode-line mode-line-format))))
                (window-list)))))"""

#### The example

PRICE = '''"""Prices of a shop."""

RATE = 19


def label(net):
    """Return the text on the label."""
    return "%.2f EUR" % gross(net)


def gross(net):
    """Return the price with the tax."""
    return net * (100 + RATE) / 100
'''
NEW_PRICE = '''"""Prices of a shop."""

RATE = 20  # since January


def label(net):
    """Return the text on the label."""
    return f"{gross(net):.2f} EUR"


def gross(net, discount=0):
    """Return the price with the tax."""
    net -= net * discont / 100
    return net * (100 + RATE) / 100
'''
RIGHT_PRICE = NEW_PRICE.replace("discont", "discount")
PRICE_TEST = """from price import gross


def test_discount():
    assert gross(100, discount=10) == 107.1
"""
README = "# Shop\n\n`gross(net)` is the price with the tax.\n"
NEW_README = README.replace("net)", "net, discount)")
PROMPT = "Let gross take a discount, with a test and a line in README.md"


class Scene:
    """Emacs with a file of ~/shop, on a virtual display."""

    def __init__(
        self, world: World, display: str, size: tuple[int, int], extra: str = ""
    ) -> None:
        # No other directory is visible in a picture.
        scratch = world.scratch
        scratch.project = scratch.project.rename(scratch.home / "shop")
        self.file = scratch.file("price.py", PRICE)
        self.test = self.file.with_name("test_price.py")
        self.readme = scratch.file("README.md", README)
        for file in (self.file, self.readme):
            os.utime(file, (1e9, 1e9))
        self.world = world
        self._display = display
        model = world.model()
        settings = SETTINGS.format(
            font=lisp(FONT),
            columns=size[0],
            rows=size[1],
            vterm=lisp(VTERM),
            program=lisp(gemini.script(world.tools, scratch, model, "gemini")),
            python=lisp(sys.executable),
        )
        self.emacs = world.emacs(
            self.file, size=size, extra=settings + extra, display=display
        )
        self.reviews = Reviews(self.emacs)
        self.cli = Gemini(TerminalBuffer(self.emacs, "*gemini: shop*"), model)
        self._window = str(self.emacs.value("(frame-parameter nil 'outer-window-id)"))
        self.focus()
        self._xdotool("mousemove", "2199", "1399")

    def link(self) -> None:
        """Link the CLI to Emacs."""
        commands = f'(("gemini" . {lisp(self.world.tools.gemini)}))'
        self.emacs.eval(
            f"""(let ((gemini-companion-run-commands '{commands}))
                  (require 'gemini-companion-tools)
                  (gemini-companion-tools--write-extension)
                  (gemini-companion-tools--run "link" '("gemini") #'ignore)
                  (gemini-companion-part-ready 'tools 'started))"""
        )
        self.emacs.holds('(gemini-companion-tools-linked-p "gemini")')

    def start(self) -> None:
        """Start the CLI beside the file."""
        self.press("C-c g g")
        self.emacs.holds(f"(get-buffer {lisp(self.cli.terminal.name)})")
        self.cli.wait_for(self.cli.placeholder)
        self.cli.wait_until_connected()
        self.wait_until_still()

    def ask(self, *turns: Part) -> None:
        """Send the prompt, which the model is to answer by ``turns``."""
        self.cli.model.script(*turns)
        self.type(PROMPT)
        self.send()

    def send(self) -> None:
        """Press RET after a prompt."""
        self.cli.wait_for(PROMPT.split()[-1])
        gemini.pause_before_enter()
        self.press("RET")

    def arrive(self, file: Path) -> None:
        """Wait for the review of ``file``, until it takes keys."""
        self.reviews.shown(file.name)
        self.cli.wait_for(QUESTION)

    def accept(self, file: Path) -> None:
        """Accept the review, and wait for the next one, that of ``file``."""
        request_count = len(self.cli.model.requests)
        self.press("C-c C-c")
        eventually(
            lambda: len(self.cli.model.requests) > request_count, "the model is asked"
        )
        self.arrive(file)

    def write(self, text: str) -> None:
        """Have a linked CLI write ``text`` to the file, after its review."""
        self.link()
        self.start()
        self.ask(write_file(self.file, text), say("All done."))
        self.arrive(self.file)
        self.press("C-c g r C-c C-c")
        self.finish("All done.")

    def finish(self, text: str) -> None:
        """Wait until the turn has ended, with ``text``, and no review is left."""
        self.cli.wait_for(text)
        self.cli.terminal.wait_until_gone("Executing Hook")
        self.emacs.becomes("(e2e-windows)", f"price.py {self.cli.terminal.name}")
        self.emacs.holds(f"(not (memq {STATE} '(working waiting)))")
        self.emacs.holds(CHECKED)

    def focus(self, window: str = "") -> None:
        """Select ``window``, or that of Emacs."""
        self._xdotool("windowfocus", window or self._window)

    def press(self, keys: str) -> None:
        """Press ``keys``, in the notation of `kbd`."""
        for key in keys.split():
            self._xdotool("key", spelled(key))

    def type(self, text: str) -> None:
        """Type ``text``."""
        self._xdotool("type", "--delay", "20", text)

    def wait_until_still(self) -> None:
        """Wait until the screen stays as it is."""
        last = [""]

        def is_still() -> bool:
            shown = self.emacs.eval(SHOWN)
            is_same, last[0] = shown == last[0], shown
            return is_same

        for _ in range(5):
            eventually(is_still, "the screen stands still")

    def take(self, picture: Path) -> None:
        """Write ``picture``."""
        self.wait_until_still()
        command = ["import", "-display", self._display, "-window", self._window]
        subprocess.run([*command, str(picture)], check=True)

    def _xdotool(self, *arguments: str) -> None:
        xdotool(self._display, *arguments)


#### Pictures of README.org


def ediff(scene: Scene, picture: Path) -> None:
    """Write ``picture`` of a review in Ediff."""
    scene.start()
    scene.cli.model.answers.clear()
    scene.ask(write_file(scene.file, RIGHT_PRICE), say("done"))
    scene.press("C-x o C-x 1")
    scene.cli.model.answers.set()
    scene.arrive(scene.file)
    scene.press("C-c g r n n")
    scene.take(picture)


def waiting(scene: Scene, picture: Path) -> None:
    """Write ``picture`` of what waits: a proposal with a comment, a file accepted."""
    # The prompt is known then.
    scene.link()
    scene.start()
    test = write_file(scene.test, PRICE_TEST)
    scene.ask(write_file(scene.file, RIGHT_PRICE), test, say("done"))
    scene.arrive(scene.file)
    scene.press("C-c g r C-c C-c")
    scene.reviews.shown(scene.test.name)
    scene.press("C-c g l C-x 1")
    scene.wait_until_still()
    scene.press("n c")
    scene.type("test the default as well")
    scene.press("RET")
    scene.take(picture)


def errors(scene: Scene, picture: Path) -> None:
    """Write ``picture`` of an edit, and of its result as the model is sent it."""
    scene.write(NEW_PRICE)
    result = scene.cli.model.results()[-1]
    assert "error: undefined name 'discont'" in result
    scene.emacs.eval(
        f"""(let ((buffer (get-buffer-create "*result of the edit*")))
              (delete-other-windows (get-buffer-window "price.py"))
              (set-window-buffer (split-window nil -13) buffer)
              (with-selected-window (get-buffer-window buffer)
                (insert {lisp(result.replace(f"{scene.file.parent}/", ""))})
                (recenter -1)))"""
    )
    scene.take(picture)


def status(scene: Scene, picture: Path) -> None:
    """Write ``picture`` of a problem and its remedy."""
    # The version is found by the real name.  CLIs that others run on this machine
    # do not concern readers.
    program = scene.world.home / ".local" / "bin" / "gemini"
    program.parent.mkdir(parents=True)
    program.symlink_to(scene.world.tools.gemini)
    scene.emacs.eval(
        f"""(progn (require 'gemini-companion-status)
                   (setq gemini-companion-run-commands
                         '(("gemini" . {lisp(program)})))
                   (setf (alist-get "Running CLIs" gemini-companion-status-checks
                                    nil nil #'equal)
                         #'ignore))"""
    )
    settings = scene.world.home / ".gemini" / "settings.json"
    text = json.dumps({**gemini.SETTINGS, "ide": {"enabled": False}})
    settings.write_text(text, encoding="utf-8")
    scene.press("C-c g ? C-x 1")
    scene.take(picture)


def changes(scene: Scene, picture: Path) -> None:
    """Write ``picture`` of marked changes, in light and in dark."""
    scene.link()
    scene.start()
    scene.press("C-c g a y")
    scene.ask(write_file(scene.file, RIGHT_PRICE), say("All done."))
    scene.finish("All done.")
    scene.press("C-c g n C-x 1 C-c g n n n RET")
    scene.take(picture)
    dark = scene.world.scratch.root / "dark.png"
    scene.emacs.eval("(load-theme 'modus-vivendi t)")
    scene.take(dark)
    # Without +repage, the file says that it is as high as the first of the two, and
    # browsers show no more of it.
    both = [picture, dark, "-append", "+repage", picture]
    subprocess.run(["convert", *both], check=True)


def overview(scene: Scene, picture: Path) -> None:
    """Write ``picture`` of what a turn without reviews has left, with a comment."""
    scene.link()
    scene.start()
    scene.press("C-c g a y")
    scene.ask(
        write_file(scene.file, RIGHT_PRICE),
        write_file(scene.readme, NEW_README),
        write_file(scene.test, PRICE_TEST),
        say("All done."),
    )
    scene.finish("All done.")
    scene.press("C-c g d C-x 1")
    scene.wait_until_still()
    scene.press("k M-n c")
    scene.type("a discount is a percentage: name it so")
    scene.press("RET")
    scene.take(picture)


#### The animated picture


class Film:
    """Frames of an animated picture, with what happens below each."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._frames: list[str] = []

    def take(self, seconds: float, caption: str) -> None:
        """Add a frame of ``seconds`` with ``caption``."""
        file = self._scene.world.scratch.root / f"{len(self._frames) // 4:02}.png"
        self._scene.take(file)
        bar = ["-gravity", "south", "-background", "#303030", "-splice", "0x30"]
        text = ["-fill", "white", "-pointsize", "17", "-annotate", "+0+6", caption]
        font = ["-font", "DejaVu-Sans"]
        subprocess.run(["convert", file, *bar, *font, *text, file], check=True)
        hundredths = str(round(100 * seconds))
        self._frames += ["-delay", hundredths, str(file), "+repage"]

    def write(self, picture: Path) -> None:
        """Write ``picture``, which is shown again and again."""
        end = ["+dither", "-colors", "64", "-layers", "optimize", "-loop", "0"]
        subprocess.run(["convert", *self._frames, *end, str(picture)], check=True)


def demo(scene: Scene, picture: Path) -> None:
    """Write ``picture``, of a turn of three files with an error, and its changes."""
    film = Film(scene)
    scene.link()
    scene.start()
    scene.cli.model.script(
        write_file(scene.file, NEW_PRICE),
        replace(scene.file, "net * discont", "net * discount"),
        write_file(scene.readme, NEW_README),
        write_file(scene.test, PRICE_TEST),
        say("gross takes a discount, tested and described."),
    )
    # The film begins with a review.
    scene.type(PROMPT)
    scene.send()
    scene.arrive(scene.file)
    film.take(2.5, "You wait in the terminal: the review begins by itself")
    scene.press("C-c g r")
    film.take(1.2, "C-c g r: letters exclude and edit now")
    scene.press("x")
    film.take(2, "x: a hunk is excluded, the rate stays")
    scene.accept(scene.file)
    film.take(3, "C-c C-c: accepted. Emacs reports the new error, the model fixes it")
    scene.press("C-c g a y")
    film.take(1.8, "C-c g a y: the rest of the turn is written without review")
    # The review that is displayed awaits its answer.
    scene.press("C-c C-c")
    # What is done is announced to a user who looks at another program.
    scene.focus("0")
    scene.finish("tested and described")
    scene.emacs.says("is done: 3 files")
    film.take(2.5, "All three files are done")
    scene.focus()
    scene.press("C-c g n")
    film.take(2, "C-c g n: to what was written, marked in the fringe")
    scene.press("RET")
    film.take(2.2, "RET: what was there before")
    scene.press("C-c g d")
    # It stands for a while before the film begins again.
    film.take(
        5, "C-c g d: all that is left to review, in one buffer: k keeps, u undoes"
    )
    film.write(picture)


PICTURES: dict[str, tuple[Callable[[Scene, Path], None], tuple[int, int]]] = {
    "demo.gif": (demo, SIZE),
    "review.png": (ediff, (164, 30)),
    "waiting.png": (waiting, (100, 32)),
    "status.png": (status, (100, 20)),
    "errors.png": (errors, (100, 30)),
    "changes.png": (changes, (84, 18)),
    "overview.png": (overview, (100, 36)),
}


def main() -> None:
    """Make the pictures that are named on the command line, or all."""
    with screen() as display:
        for name in sys.argv[1:] or PICTURES:
            print(f"doc/{name}", flush=True)
            world = World(Tools.find())
            make, size = PICTURES[name]
            try:
                make(Scene(world, display, size), ROOT / "doc" / name)
            except AssertionError:
                print(world.report())
                raise
            finally:
                world.close()


if __name__ == "__main__":
    main()
