# SPDX-License-Identifier: GPL-3.0-or-later
"""How often Emacs dies in a text terminal: crashes.py KEYS [SEED [80x24...]].

For each size, KEYS random keys are typed in the overview and in reviews of a scripted
CLI, and the same keys in an Emacs without the mode, which is the measure.  The frame
is resized now and then, and garbage is collected after each command, except while a
minibuffer is active.  After 250 keys, or when it has died, Emacs is started again.
"""

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from random import Random

sys.path.extend(
    str(Path(__file__).parents[1] / name) for name in ("e2e", "python", "../bench")
)

from editor import PACKAGE, build
from harness.emacs import Emacs, lisp
from harness.scratch import Scratch
from harness.terminal import Tmux
from harness.tools import DEPS, Tools
from keys import OLD, OTHERS, OURS, Cli

from fake_cli import FakeCli

HERE = Path(__file__).resolve().parent
SIZES = (80, 24), (100, 40), (200, 50)
FILES = 12
# Keys of the overview beside those of reviews, with their weights.
MORE = {
    ("F6",): 10,
    ("W",): 4,
    ("C-o",): 4,
    ("C-c", "C-g"): 1,
    ("d",): 3,
    ("g",): 3,
    ("M-n",): 4,
    ("M-p",): 2,
    ("3",): 2,
    ("K",): 2,
    ("U",): 2,
    ("c",): 2,
}
# A message for each collection would be a string of the rig that is freed.
COLLECT = """
(defun crashes-collect ()
  (unless (active-minibuffer-window)
    (garbage-collect)
    (garbage-collect)))
(add-hook 'post-command-hook #'crashes-collect 100)
"""


# Keys of windows alone, which ask nothing.
WINDOWS = {(key,): 1 for key in ("W", "q", "C-o", "F6", "F10", "n", "M-n", "3")}
ACCEPT = "(mapc #'gemini-companion-edit-accept (gemini-companion-edits-open))"


def rounds(random: Random) -> Iterator[tuple[list[str], bool, tuple[int, int]]]:
    """Yield keys, whether they are typed ahead, and a size, or (0, 0) for the last."""
    ours = {key: weight + OURS.get(key, 0) for key, weight in (OURS | MORE).items()}
    while True:
        keys: list[str] = []
        for _ in range(random.choice([1, 1, 2, 3, 5])):
            table = random.choices([ours, WINDOWS, OTHERS], [4, 3, 3])[0]
            keys += random.choices(list(table), list(table.values()))[0]
        ahead = random.random() < 0.4 and "C-g" not in keys
        change = random.choice(SIZES) if random.random() < 0.06 else (0, 0)
        yield keys, ahead, change


class Gone(Exception):
    """Emacs has died."""


@contextmanager
def emacs_of(tools: Tools, mode: bool, size: tuple[int, int]) -> Iterator[Emacs]:
    with ExitStack() as ends:
        scratch = Scratch(tools)
        ends.callback(scratch.remove)
        ends.callback(scratch.kill)
        tmux = Tmux(scratch)
        ends.callback(tmux.close)
        files = [scratch.file(f"{n}.txt", OLD) for n in range(FILES)]
        emacs = Emacs(
            tools,
            scratch,
            tmux,
            [*files[:3], scratch.file("mine.txt", "mine\n")],
            root=PACKAGE,
            mode=mode,
            extra=f"(load {lisp(HERE / 'keys.el')})",
            size=size,
        )
        emacs.eval(COLLECT)
        if mode:
            (path,) = scratch.discovery_files()
            facts = json.loads(path.read_text(encoding="utf-8"))
            cli = Cli(FakeCli(facts["port"], facts["authToken"]), files, Random(1))
            ends.callback(cli.stop)
            # So the overview has turns, files and changes.
            for _ in range(4):
                emacs.holds("(gemini-companion-edits-open)")
                emacs.eval(ACCEPT)
        yield emacs


def alive(emacs: Emacs, code: str = "t") -> None:
    try:
        emacs.eval(code)
    except (AssertionError, OSError) as problem:
        raise Gone from problem


def type_until(
    emacs: Emacs, source: Iterator[tuple[list[str], bool, tuple[int, int]]], count: int
) -> tuple[int, list[str], bool]:
    """Type up to ``count`` keys; return how many, the last ones, and if it died."""
    typed: list[str] = []
    try:
        while len(typed) < count:
            keys, ahead, change = next(source)
            typed += keys
            alive(emacs)
            if ahead:
                with suppress(AssertionError, OSError), emacs.busy():
                    emacs.terminal.keys(*keys)
                    emacs.terminal.written()
                alive(emacs)
            else:
                for key in keys:
                    emacs.terminal.keys(key)
                    emacs.terminal.written()
                    alive(emacs)
            if change != (0, 0):
                emacs.terminal.resize(change)
            if "C-g" in keys or len(typed) % 7 == 0:
                alive(emacs, "(soak-top-level)")
    except (Gone, AssertionError, OSError):
        return len(typed), typed[-40:], True
    return len(typed), typed, False


def judge(tools: Tools, mode: bool, size: tuple[int, int], keys: int, seed: int) -> int:
    """Type ``keys`` keys; print and return the number of deaths."""
    source = rounds(Random(seed))
    typed = deaths = tries = 0
    while typed < keys:
        tries += 1
        with emacs_of(tools, mode, size) as emacs:
            count, last, died = type_until(emacs, source, min(250, keys - typed))
        typed += count
        if died:
            deaths += 1
            print(f"    died after {count}: {' '.join(last)}", flush=True)
    what = "mode" if mode else "control"
    print(f"{what} {size[0]}x{size[1]}: {deaths} of {tries} tries, {typed} keys",
          flush=True)  # fmt: skip
    return deaths


def main() -> int:
    keys = int(sys.argv[1])
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    sizes = [size for size in SIZES if f"{size[0]}x{size[1]}" in sys.argv[3:]] or SIZES
    tools = Tools.find(str(DEPS / "emacs-30.1" / "bin" / "emacs"))
    build(tools)
    ours = control = 0
    for size in sizes:
        control += judge(tools, False, size, keys, seed)
        ours += judge(tools, True, size, keys, seed)
    print(f"deaths: {ours}, without the mode {control}")
    return ours > control


if __name__ == "__main__":
    sys.exit(main())
