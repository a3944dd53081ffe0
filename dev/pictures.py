# SPDX-License-Identifier: GPL-3.0-or-later
"""Photograph Emacs and the real Gemini CLI in a terminal, for the manual."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.emacs import Emacs, Reviews
from harness.gemini import Gemini
from harness.model import replace, say, write_file
from harness.tools import ROOT, Tools
from harness.wait import eventually
from harness.world import World

SIZE = (112, 34)
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
Scene = Callable[[Emacs, Reviews], None]


def review(emacs: Emacs, reviews: Reviews) -> None:
    """Show the review in Ediff."""


def unified(emacs: Emacs, reviews: Reviews) -> None:
    """Show the review as a unified diff."""
    reviews.select()
    emacs.keys("C-c", "C-v")


def list_of_reviews(emacs: Emacs, reviews: Reviews) -> None:
    """Show the list: a file that was accepted, and one with a comment."""
    emacs.eval("(setq gemini-companion-review-arrival 'notify)")
    reviews.accept()
    emacs.holds(
        "(seq-some (lambda (diff) (string-search"
        ' "test_" (gemini-companion-diff-file-path diff)))'
        " (gemini-companion-diffs))"
    )
    emacs.eval("(progn (gemini-companion-list) (delete-other-windows) nil)")
    emacs.keys("Tab")
    emacs.terminal.wait_for("+def test_greeting")
    emacs.keys("n", "C-n", "C-n", "C-n", "C-n", "c")
    emacs.terminal.wait_for("Comment on line 5:")
    emacs.terminal.text("test the default, too")
    emacs.keys("Enter")
    emacs.terminal.wait_for(">> test the default")
    emacs.keys("M-<", "n", "Tab")
    emacs.terminal.wait_for("+def greeting")


def status(emacs: Emacs, reviews: Reviews) -> None:
    """Show the status buffer."""
    emacs.eval("(progn (gemini-companion-status) (delete-other-windows) nil)")


SCENES: dict[str, Scene] = {
    "review": review,
    "unified": unified,
    "list": list_of_reviews,
    "status": status,
}


def main() -> None:
    """Make the pictures that are named on the command line, or all."""
    for name in sys.argv[1:] or SCENES:
        print(f"doc/{name}.png", flush=True)
        world = World(Tools.find())
        try:
            photograph(world, SCENES[name], ROOT / "doc" / f"{name}.png")
        finally:
            world.close()


def photograph(world: World, scene: Scene, picture: Path) -> None:
    """Write ``picture`` of ``scene``, with a proposal of a real CLI."""
    file = world.scratch.project / "hello.py"
    shutil.copy(ROOT / "examples" / "hello" / "hello.py", file)
    colors(world)
    emacs = world.emacs(file, size=SIZE, extra="(load-theme 'modus-operandi t)")
    reviews, cli = Reviews(emacs), world.gemini()
    propose(cli, reviews, file)
    scene(emacs, reviews)
    with screen(world, emacs) as display:
        settle(emacs)
        command = ["import", "-display", display, "-window", "root", "-trim"]
        subprocess.run([*command, str(picture)], check=True)


def colors(world: World) -> None:
    """Have what starts in a terminal from now on find 256 colors."""
    world.tmux.start("first", ["cat"], world.scratch.project, {}, SIZE)
    world.tmux.call("set-option", "-g", "default-terminal", "xterm-256color")


def propose(cli: Gemini, reviews: Reviews, file: Path) -> None:
    """Have the ``cli`` propose an edit of ``file``, and wait for its review."""
    text = file.read_text(encoding="utf-8")
    old = OLD if OLD in text else text.splitlines()[0]
    test = write_file(file.with_name("test_hello.py"), TEST)
    reviews.proposed(cli, file, replace(file, old, NEW), test, say("done"))


def settle(emacs: Emacs) -> None:
    """Wait until the screen stays as it is."""
    last = [""]

    def is_still() -> bool:
        screen = emacs.screen()
        is_same, last[0] = screen == last[0], screen
        return is_same and bool(screen.strip())

    for _ in range(5):
        eventually(is_still, "the screen stands still")


@contextmanager
def screen(world: World, emacs: Emacs) -> Iterator[str]:
    """Show the terminal of ``emacs`` on a virtual display, and yield its name."""
    display = f":{90 + os.getpid() % 10}"
    xvfb = subprocess.Popen(["Xvfb", display, "-screen", "0", "1500x1000x24"])
    try:
        socket = Path(f"/tmp/.X11-unix/X{display[1:]}")
        eventually(socket.exists, "the display")
        world.tmux.call("set-option", "-g", "status", "off")
        attach = ["tmux", "-u", "-S", str(world.scratch.run / "tmux"), "attach"]
        terminal = subprocess.Popen(
            [
                *("xterm", "-display", display, "-tn", "xterm-256color"),
                *("-fa", "DejaVu Sans Mono"),
                *("-fs", "11", "-bg", "white", "-fg", "black", "-b", "0", "+sb"),
                *("-geometry", f"{SIZE[0]}x{SIZE[1]}+0+0", "-e"),
                *attach,
                *("-t", emacs.name),
            ],
            env={**world.scratch.environment, "TERM": "xterm-256color"},
        )
        try:
            eventually(lambda: world.tmux.call("list-clients"), "the terminal")
            yield display
        finally:
            terminal.terminate()
            terminal.wait()
    finally:
        xvfb.terminate()
        xvfb.wait()


if __name__ == "__main__":
    main()
