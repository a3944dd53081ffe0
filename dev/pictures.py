# SPDX-License-Identifier: GPL-3.0-or-later
"""Photograph Emacs and the real Gemini CLI, for README.org and for developers."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from dataclasses import replace as changed
from pathlib import Path

from harness import gemini
from harness.emacs import Emacs, Reviews, TerminalBuffer, lisp
from harness.gemini import QUESTION, Gemini
from harness.model import replace, say, write_file
from harness.needs import VTERM
from harness.tools import ROOT, Tools
from harness.wait import eventually
from harness.world import World

SIZE = (112, 34)
# As most users have it: a light frame, without a tool bar.
SETTINGS = f"""
(progn
  (tool-bar-mode -1)
  (menu-bar-mode -1)
  (scroll-bar-mode -1)
  (set-frame-font "DejaVu Sans Mono-11" t)
  (global-set-key (kbd "C-c g") 'gemini-companion-command-map)
  (setq gemini-companion-arrival-pause 10
        ;; Where this checkout is does not concern readers of README.org.
        directory-abbrev-alist '(({lisp(ROOT)} . "~/gemini-companion")))
  (add-to-list 'load-path {lisp(VTERM)})
  (setq gemini-companion-terminal 'vterm))
"""
OLD = 'def greeting() -> str:\n    return "Hello, world"\n'
NEW = (
    'def greeting(name: str = "world") -> str:\n'
    '    """Return a greeting for ``name``."""\n'
    '    return f"Hello, {name}!"\n'
)
TEST = """from hello import greeting


def test_greeting() -> None:
    assert greeting("Emacs") == "Hello, Emacs!"
"""
CHECKED = f"""
(setq python-flymake-command '({lisp(sys.executable)} "-m" "pyflakes"))
(add-hook 'python-mode-hook #'flymake-mode)
"""

#### Pictures of README.org


@dataclass
class Studio:
    """A world whose Emacs has a frame on ``display``."""

    world: World
    display: str

    def emacs(self, file: Path, size: tuple[int, int] = SIZE, extra: str = "") -> Emacs:
        """Return an Emacs of ``size`` that displays ``file``."""
        extra = SETTINGS + extra
        return self.world.emacs(file, size=size, extra=extra, display=self.display)

    def hello(self) -> Path:
        """Return the example file, in the project."""
        file = self.world.scratch.project / "hello.py"
        shutil.copy(ROOT / "examples" / "hello" / "hello.py", file)
        return file

    def take(self, emacs: Emacs, picture: Path) -> None:
        """Write ``picture`` of the frame of ``emacs``."""
        settle(emacs)
        take(self.display, frame(emacs), picture)


def unified(studio: Studio, picture: Path) -> None:
    """Write ``picture`` of a review in the window of its file, and of the CLI."""
    file = studio.hello()
    emacs = studio.emacs(file, (150, 32))
    reviews, cli = Reviews(emacs), start_inside(studio.world, emacs)
    cli.model.script(replace(file, OLD, NEW), say("done"))
    cli.type("Let the greeting take a name.", lambda: bool(cli.model.requests))
    reviews.shown(file.name)
    cli.wait_for(QUESTION)
    press(emacs, "C-c g r")
    studio.take(emacs, picture)


def review(studio: Studio, picture: Path) -> None:
    """Write ``picture`` of a review in Ediff."""
    file = studio.hello()
    emacs = studio.emacs(file, (170, 32))
    reviews, cli = Reviews(emacs), studio.world.gemini()
    reviews.proposed(cli, file, replace(file, OLD, NEW), say("done"))
    press(emacs, "C-c g r v")
    studio.take(emacs, picture)


def edits(studio: Studio, picture: Path) -> None:
    """Write ``picture`` of a turn in the list: a file accepted, one with a comment."""
    file = studio.hello()
    emacs = studio.emacs(file)
    # The prompt is known then.
    link(studio.world, emacs)
    reviews, cli = Reviews(emacs), studio.world.gemini()
    test = write_file(file.with_name("test_hello.py"), TEST)
    cli.model.script(replace(file, OLD, NEW), test, say("done"))
    cli.type(
        "Let the greeting take a name, and test it.",
        lambda: bool(cli.model.requests),
    )
    reviews.shown(file.name)
    emacs.eval("(setq gemini-companion-review-arrival 'notify)")
    reviews.accept()
    emacs.holds(
        "(seq-some (lambda (diff) (string-search"
        ' "test_" (gemini-companion-edit-file diff)))'
        " (gemini-companion-edits-open))"
    )
    emacs.eval("(progn (gemini-companion-list) (delete-other-windows) nil)")
    press(emacs, "TAB")
    in_window(emacs, '(search-forward "def test_greeting" nil t)')
    press(emacs, "n C-n C-n C-n C-n c", "test the default, too", "RET")
    in_window(emacs, '(search-forward ">> test the default" nil t)')
    press(emacs, "M-< n n TAB")
    in_window(emacs, '(search-forward "def greeting" nil t)')
    studio.take(emacs, picture)


def status(studio: Studio, picture: Path) -> None:
    """Write ``picture`` of a problem and its remedy."""
    world = studio.world
    settings = world.scratch.home / ".gemini" / "settings.json"
    settings.write_text(
        json.dumps({**gemini.SETTINGS, "ide": {"enabled": False}}), encoding="utf-8"
    )
    commands = f'(("gemini" . {lisp(world.tools.gemini)}))'
    # The version of the CLI is found by the real name of its directory.
    extra = f"""(setq directory-abbrev-alist nil
                      gemini-companion-run-commands '{commands})"""
    emacs = studio.emacs(world.scratch.file("hello.py", OLD), (100, 24), extra)
    # CLIs that others run on this machine do not concern readers.
    emacs.eval(
        "(progn (require 'gemini-companion-status)"
        ' (setf (alist-get "Running CLIs" gemini-companion-status-checks nil nil'
        " #'equal) #'ignore) (gemini-companion-status) (delete-other-windows) nil)"
    )
    in_window(emacs, '(not (string-search "Asking" (buffer-string)))')
    studio.take(emacs, picture)


def changes(studio: Studio, picture: Path) -> None:
    """Write ``picture`` of a file with the changes of a turn."""
    file = studio.world.scratch.file("bill.py", BEFORE)
    emacs = studio.emacs(file, (90, 30))
    emacs.eval("(setq gemini-companion-review-arrival 'notify)")
    reviews, cli = Reviews(emacs), studio.world.gemini()
    cli.model.script(write_file(file, AFTER), say("done"))
    cli.prompt()
    reviews.wait_until(1)
    reviews.accept()
    cli.wait_for("done")
    press(emacs, "C-c g n n =")
    studio.take(emacs, picture)


def errors(studio: Studio, picture: Path) -> None:
    """Write ``picture`` of an edit, and of its result as the model is sent it."""
    file = studio.world.scratch.file("hello.py", OLD)
    os.utime(file, (1e9, 1e9))
    emacs = studio.emacs(file, (100, 22), CHECKED)
    link(studio.world, emacs)
    reviews, cli = Reviews(emacs), studio.world.gemini()
    edit = write_file(file, NEW.replace("{name}", "{nmae}"))
    reviews.proposed(cli, file, edit, say("done"))
    reviews.accept()
    cli.wait_for("done")
    result = cli.model.results()[-1]
    assert "error: undefined name 'nmae'" in result
    emacs.eval(
        f"""(with-current-buffer (get-buffer-create "*result of the edit*")
              (insert {lisp(result.replace(f"{file.parent}/", ""))})
              (goto-char (point-min))
              (delete-other-windows)
              (set-window-buffer (split-window nil 6) (current-buffer)))"""
    )
    studio.take(emacs, picture)


def link(world: World, emacs: Emacs) -> None:
    """Link the CLI to ``emacs``."""
    emacs.eval(
        f"""(progn (require 'gemini-companion-tools)
                  (setq gemini-companion-run-commands
                        '(("gemini" . {lisp(world.tools.gemini)})))
                  (gemini-companion-tools--write-extension)
                  (gemini-companion-tools--run "link" '("gemini") #'ignore)
                  (gemini-companion-part-ready 'tools 'started))"""
    )
    emacs.holds('(gemini-companion-tools-linked-p "gemini")')


#### The animated picture

PRICE = """\"\"\"Prices of a shop.\"\"\"

RATE = 19


def gross(net: float) -> float:
    \"\"\"Return the price with the tax.\"\"\"
    return net + net * RATE / 100


def label(net: float) -> str:
    \"\"\"Return the text on the label.\"\"\"
    return "%.2f EUR" % gross(net)
"""
NEW_PRICE = (
    PRICE.replace("RATE = 19\n", "RATE = 20  # since January\n")
    .replace("gross(net: float)", "gross(net: float, discount: float = 0)")
    .replace("    return net + net * RATE / 100", "    net -= net * discont / 100\n"
             "    return net + net * RATE / 100")
)  # fmt: skip
PRICE_TEST = """from price import gross


def test_discount() -> None:
    assert gross(100, discount=10) == 107.1
"""
PRICE_README = "# Shop\n\n`gross(net, discount)` is the price with the tax.\n"
PROMPT = ("Let gross take ", "a discount, with ", "a test and a line ", "in README.md")
DEMO_SIZE = (136, 30)


class Film:
    """Frames of an animated picture, with what happens below each."""

    def __init__(self, emacs: Emacs, display: str, directory: Path):
        self._emacs = emacs
        self._display = display
        self._directory = directory
        self._frames: list[str] = []

    def take(self, seconds: float, caption: str) -> None:
        """Add a frame of ``seconds`` with ``caption``."""
        settle(self._emacs)
        file = self._directory / f"{len(self._frames) // 4:02}.png"
        take(self._display, frame(self._emacs), file)
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


def demo(studio: Studio, picture: Path) -> None:
    """Write ``picture``, an animated one of a turn with an error."""
    world = studio.world
    file = world.scratch.file("price.py", PRICE)
    os.utime(file, (1e9, 1e9))
    emacs = studio.emacs(file, DEMO_SIZE, CHECKED)
    link(world, emacs)
    cli = start_inside(world, emacs)
    film = Film(emacs, studio.display, world.scratch.root)
    play(film, emacs, cli, file)
    film.write(picture)


def play(film: Film, emacs: Emacs, cli: Gemini, file: Path) -> None:
    """Go through a turn of three files, with an error and its correction."""
    reviews = Reviews(emacs)
    test, readme = file.with_name("test_price.py"), file.with_name("README.md")
    cli.model.script(
        write_file(file, NEW_PRICE),
        replace(file, "net * discont", "net * discount"),
        write_file(test, PRICE_TEST),
        write_file(readme, PRICE_README),
        say("gross takes a discount, tested and described."),
    )
    film.take(1.5, "A file in Emacs, and Gemini CLI in a terminal beside it")
    for words in PROMPT:
        cli.terminal.text(words)
        film.take(0.4, "A prompt")
    cli.type("".join(PROMPT), lambda: bool(cli.model.requests))
    reviews.shown(file.name)
    cli.wait_for(QUESTION)
    film.take(2.5, "The first edit takes the window of its file when you pause")
    press(emacs, "C-c g r x")
    film.take(2.5, "C-c g r selects the review, x excludes a hunk: the rate stays")
    press(emacs, "a")
    reviews.shown(file.name)
    cli.wait_for(QUESTION)
    film.take(3, "a accepts. Emacs reported a new error, and the model corrects it")
    for written in (test, readme):
        press(emacs, "a")
        reviews.shown(written.name)
        cli.wait_for(QUESTION)
        film.take(1.8, "a accepts, and the next file takes its place")
    press(emacs, "a")
    cli.wait_for("tested and described")
    emacs.says("done: 3 files")
    film.take(2.5, "a: done, three files")
    press(emacs, "C-c g n")
    film.take(2, "C-c g n goes to the first change, which is marked in the fringe")
    press(emacs, "n")
    film.take(1.5, "n goes to the next one")
    press(emacs, "u")
    film.take(2.5, "u undoes it")


#### Pictures of a whole turn

SIZES = ((80, 24), (100, 30), (140, 42), (160, 45), (200, 50))


@dataclass(frozen=True)
class Look:
    """The colors of an Emacs, and those of its terminal, unless it is graphical."""

    settings: str
    terminal: tuple[str, str] | None = None


LOOKS = {
    "dark": Look("(setq frame-background-mode 'dark)", ("black", "gray90")),
    "operandi": Look("(tool-bar-mode -1) (load-theme 'modus-operandi t)"),
    "vivendi": Look("(tool-bar-mode -1) (load-theme 'modus-vivendi t)"),
}

# Red-green color blindness: Machado, Oliveira and Fernandes 2009, severity 1, in
# linear RGB.
BLINDNESS = {
    "deuteranopia": "0.367322 0.860646 -0.227968 0.280085 0.672501 0.047413"
    " -0.011820 0.042940 0.968881",
    "protanopia": "0.152286 1.052583 -0.204868 0.114503 0.786281 0.099216"
    " -0.003882 -0.048116 1.051998",
}

# Of a graphical frame.
SHOWN = """(prin1-to-string
  (list (input-pending-p) (current-message)
        (mapcar (lambda (window)
                  (with-selected-window window
                    (list (buffer-name) (window-edges)
                          (buffer-substring-no-properties
                           (window-start) (window-end window t))
                          (format-mode-line header-line-format))))
                (window-list))))"""

BEFORE = '''"""Compute the bill of an order."""

from dataclasses import dataclass


@dataclass
class Item:
    """An item of an order."""

    name: str
    price: float
    count: int = 1


def total(items):
    """Return the sum of ``items``."""
    sum = 0
    for item in items:
        sum = sum + item.price * item.count
    return sum


def discount(sum, percent):
    """Return ``sum`` less ``percent``."""
    return sum - sum * percent / 100


def line(item):
    """Return the line of ``item`` in the bill."""
    return "%s  %d x %.2f" % (item.name, item.count, item.price)


def bill(items, percent=0):
    """Return the bill for ``items``, a text."""
    lines = []
    for item in items:
        lines.append(line(item))
    lines.append("-" * 30)
    lines.append("Total: %.2f" % discount(total(items), percent))
    return "\\n".join(lines)
'''
AFTER = (
    BEFORE.replace(
        """    sum = 0
    for item in items:
        sum = sum + item.price * item.count
    return sum
""",
        """    return sum(item.price * item.count for item in items)
""",
    )
    .replace("    price: float\n", "    price: Decimal\n")
    .replace("import dataclass\n", "import dataclass\nfrom decimal import Decimal\n")
    .replace(
        """    lines = []
    for item in items:
        lines.append(line(item))
    lines.append("-" * 30)
""",
        """    lines = [line(item) for item in items]
    lines.append("-" * 30)  # as wide as the longest line of the form on which it is \
printed
""",
    )
)
TURN_TEST = """from decimal import Decimal

from app.bill import Item, bill, total


def test_total() -> None:
    assert total([Item("tea", Decimal("2.50"), 2)]) == Decimal("5.00")


def test_bill() -> None:
    assert bill([Item("tea", Decimal("2.50"))]).endswith("Total: 2.50")
"""


class Inside(TerminalBuffer):
    """A CLI in a terminal buffer of Emacs, also where that is not displayed."""

    def keys(self, *keys: str) -> None:
        """Press ``keys``: "Enter", "BSpace", or characters."""
        names = {"Enter": "(string ?\\r)", "BSpace": "(string ?\\d)"}
        for key in keys:
            self._send(names.get(key) or lisp(key))

    def text(self, text: str) -> None:
        """Type ``text`` literally."""
        self._send(lisp(text))

    def _send(self, code: str) -> None:
        process = f"(get-buffer-process {lisp(self.name)})"
        self._emacs.eval(f"(process-send-string {process} {code})")


def start_inside(world: World, emacs: Emacs) -> Gemini:
    """Start the CLI in a terminal of ``emacs``, beside the file in use."""
    model = world.model()
    program = gemini.script(world.tools, world.scratch, model, "inside")
    emacs.eval(
        "(progn (setq gemini-companion-run-commands"
        f' \'(("gemini" . {lisp(program)}))) (gemini-companion-run) nil)'
    )
    cli = Gemini(Inside(emacs, f"*gemini: {world.project.name}*"), model)
    cli.wait_for("Type your message")
    cli.wait_until_connected()
    return cli


def turn(emacs: Emacs, cli: Gemini, file: Path) -> Iterator[str]:
    """Go through a turn with two proposals; yield the name of each screen."""
    reviews = Reviews(emacs)
    test = file.with_name("test_bill.py")
    cli.model.script(write_file(file, AFTER), write_file(test, TURN_TEST), say("done"))
    cli.prompt()
    reviews.shown(file.name)
    yield "1-arrival"
    reviews.select()
    yield "2-review"
    press(emacs, "n x n")
    yield "3-excluded"
    press(emacs, "v")
    yield "4-other-view"
    press(emacs, "?")
    yield "5-menu"
    press(emacs, "C-g a")
    reviews.shown(test.name)
    yield "6-new-file"
    emacs.eval("(progn (call-interactively #'gemini-companion-list) nil)")
    press(emacs, "TAB")
    in_window(emacs, '(search-forward "def test_total" nil t)')
    press(emacs, "c", "name the function first", "RET")
    in_window(emacs, '(search-forward ">> name" nil t)')
    yield "7-list"
    emacs.eval("(progn (call-interactively #'gemini-companion-status) nil)")
    in_window(emacs, '(not (string-search "Asking" (buffer-string)))')
    yield "8-status"


def in_window(emacs: Emacs, code: str) -> None:
    """Wait until ``code`` is true in the selected window."""
    emacs.holds(f"(with-selected-window (selected-window) {code})")


def take_all(directory: Path, looks: list[str]) -> None:
    """Write pictures of a turn in all sizes, and all or some looks."""
    directory.mkdir(parents=True, exist_ok=True)
    with screen() as display:
        for name in looks or LOOKS:
            tools = Tools.find() if LOOKS[name].terminal else graphical()
            for size in SIZES:
                world = World(tools)
                prefix = directory / f"{name}-{size[0]}x{size[1]}"
                try:
                    take_turn(world, LOOKS[name], size, display, prefix)
                except AssertionError:
                    print(world.report())
                    raise
                finally:
                    world.close()


def take_turn(
    world: World, look: Look, size: tuple[int, int], display: str, prefix: Path
) -> None:
    """Write pictures of a turn; their names begin with ``prefix``."""
    colors(world)
    file = world.scratch.file("app/bill.py", BEFORE)
    emacs = world.emacs(
        file,
        size=size,
        extra=look.settings,
        display="" if look.terminal else display,
    )
    cli = start_inside(world, emacs)
    for scene in turn(emacs, cli, file):
        picture = Path(f"{prefix}-{scene}.png")
        print(picture, flush=True)
        if look.terminal:
            take_terminal(world, emacs, size, display, picture, look.terminal)
        else:
            settle(emacs)
            take(display, frame(emacs), picture)
        simulate(picture)


def simulate(picture: Path) -> None:
    """Write ``picture`` as it is seen without red or green, in other directories."""
    for name, matrix in BLINDNESS.items():
        seen = picture.parent / name / picture.name
        seen.parent.mkdir(exist_ok=True)
        change = ["-colorspace", "RGB", "-color-matrix", matrix, "-colorspace", "sRGB"]
        subprocess.run(["convert", str(picture), *change, str(seen)], check=True)


#### Screens


def press(emacs: Emacs, keys: str, text: str = "", more: str = "") -> None:
    """Press ``keys``, type ``text`` and press ``more``, in the notation of `kbd`."""
    code = f"(vconcat (kbd {lisp(keys)}) {lisp(text)} (kbd {lisp(more)}))"
    emacs.eval(
        "(setq unread-command-events"
        f" (append unread-command-events (listify-key-sequence {code})))"
    )
    emacs.holds("(null unread-command-events)")


def colors(world: World) -> None:
    """Set 256 colors for the programs that start in a terminal from now on."""
    world.tmux.start("first", ["cat"], world.scratch.project, {}, SIZE)
    world.tmux.call("set-option", "-g", "default-terminal", "xterm-256color")
    world.tmux.call("set-option", "-g", "status", "off")


@contextmanager
def screen() -> Iterator[str]:
    """Start a virtual display, and yield its name."""
    size = ("-screen", "0", "2200x1400x24")
    xvfb = subprocess.Popen(
        ["Xvfb", "-displayfd", "1", "-noreset", *size],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert xvfb.stdout
        yield f":{xvfb.stdout.readline().strip()}"
    finally:
        xvfb.terminate()
        xvfb.wait()


@contextmanager
def attached(
    world: World,
    emacs: Emacs,
    size: tuple[int, int],
    display: str,
    terminal_colors: tuple[str, str] = ("white", "black"),
    font_size: int = 11,
) -> Iterator[str]:
    """Show the terminal of ``emacs``, of ``size``, and yield its window."""
    window = world.scratch.root / "window"
    window.unlink(missing_ok=True)
    attach = f"echo $WINDOWID > {window}; exec tmux -u -S {world.scratch.run}/tmux"
    terminal = subprocess.Popen(
        [
            *("xterm", "-display", display, "-tn", "xterm-256color"),
            *("-fa", "DejaVu Sans Mono", "-fs", str(font_size), "-b", "0", "+sb"),
            # Most terminals do not draw bold text in another color.
            *("-xrm", "XTerm*boldColors: false"),
            *("-bg", terminal_colors[0], "-fg", terminal_colors[1]),
            *("-geometry", f"{size[0]}x{size[1]}+0+0"),
            *("-e", "sh", "-c", f"{attach} attach -t {emacs.name}"),
        ],
        env={**world.scratch.environment, "TERM": "xterm-256color"},
    )
    try:
        eventually(
            lambda: window.exists() and world.tmux.call("list-clients"),
            "the terminal",
        )
        yield window.read_text(encoding="utf-8").strip()
    finally:
        terminal.terminate()
        terminal.wait()


def take_terminal(
    world: World,
    emacs: Emacs,
    size: tuple[int, int],
    display: str,
    picture: Path,
    terminal_colors: tuple[str, str] = ("white", "black"),
) -> None:
    """Write ``picture`` of the terminal of ``emacs``, of ``size``."""
    with attached(world, emacs, size, display, terminal_colors) as window:
        settle(emacs)
        take(display, window, picture)


def frame(emacs: Emacs) -> str:
    """Return the window of the graphical frame of ``emacs``."""
    return str(emacs.value("(frame-parameter nil 'outer-window-id)"))


def take(display: str, window: str, picture: Path) -> None:
    """Write ``picture`` of ``window``."""
    command = ["import", "-display", display, "-window", window]
    subprocess.run([*command, str(picture)], check=True)


def settle(emacs: Emacs) -> None:
    """Wait until the screen stays as it is."""
    last = [""]

    def is_still() -> bool:
        shown = emacs.screen().strip() or emacs.eval(SHOWN)
        is_same, last[0] = shown == last[0], shown
        return is_same and bool(shown)

    for _ in range(5):
        eventually(is_still, "the screen stands still")


def graphical() -> Tools:
    """Return the tools of the tests with an Emacs that has frames."""
    emacs = os.environ.get("GC_X_EMACS", "emacs-lucid")
    return changed(Tools.find(), emacs=emacs)


def main() -> None:
    """Make the pictures that are named on the command line, or all."""
    if sys.argv[1:2] == ["--all"]:
        take_all(Path(sys.argv[2]), sys.argv[3:])
        return
    pictures = {
        "demo": demo,
        "unified": unified,
        "review": review,
        "list": edits,
        "status": status,
        "errors": errors,
        "changes": changes,
    }
    with screen() as display:
        for name in sys.argv[1:] or pictures:
            picture = ROOT / "doc" / f"{name}.{'gif' if name == 'demo' else 'png'}"
            print(picture, flush=True)
            world = World(graphical())
            scratch = world.scratch
            scratch.project = scratch.project.rename(scratch.home / "shop")
            try:
                pictures[name](Studio(world, display), picture)
            finally:
                world.close()


if __name__ == "__main__":
    main()
