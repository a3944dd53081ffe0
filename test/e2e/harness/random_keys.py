# SPDX-License-Identifier: GPL-3.0-or-later
"""Keys at random, and a CLI that keeps some edits open meanwhile."""

import threading
from pathlib import Path
from random import Random

from fake_cli import FakeCli

from .emacs import lisp
from .tools import ROOT

# Edits that are open at a time.
OPEN = 3
FILES = 12
OLD = "".join(f"line {number}, as any other\n" for number in range(1, 61))
# The keys below, and functions to end what asks.
SETUP = f"(load {lisp(ROOT / 'test' / 'soak' / 'keys.el')})"
# Garbage is collected after each command that changes windows, whose strings are freed
# then.  A message for each collection would be a string of the test that is freed.
COLLECT = """
(progn
  (defvar e2e-collected nil "The windows at the last collection.")
  (defun e2e-collect ()
    (let ((windows (mapcar (lambda (window)
                             (cons (window-buffer window) (window-edges window)))
                           (window-list nil t (frame-first-window)))))
      (unless (or (active-minibuffer-window) (equal windows e2e-collected))
        (setq e2e-collected windows)
        (garbage-collect))))
  (add-hook 'post-command-hook #'e2e-collect 100))
"""

# Keys of the package, with their weights; each is a tuple of keys, as tmux spells them.
OURS = {
    ("F5",): 30,
    ("C-c", "C-c"): 16,
    ("C-c", "C-k"): 10,
    ("F6",): 10,
    ("F7",): 6,
    ("F8",): 3,
    ("a",): 6,
    ("r",): 6,
    ("n",): 10,
    ("p",): 6,
    ("x",): 6,
    ("r", "b"): 3,
    ("|",): 3,
    ("!",): 3,
    ("?",): 2,
    ("~",): 1,
    ("v",): 6,
    ("e",): 4,
    ("u",): 3,
    ("k",): 2,
    ("q",): 5,
    ("l",): 3,
    ("y",): 4,
    ("Enter",): 5,
    ("Tab",): 5,
    ("C-c", "C-v"): 4,
    ("C-c", "C-e"): 4,
    ("C-c", "C-x"): 3,
    ("C-c", "C-n"): 3,
    ("C-c", "C-r"): 1,
    ("F9",): 2,
}
# Keys of Emacs.
OTHERS = {
    ("C-g",): 8,
    ("C-x", "1"): 8,
    ("C-x", "2"): 6,
    ("C-x", "3"): 6,
    ("C-x", "0"): 5,
    ("C-x", "o"): 8,
    ("C-x", "b", "Enter"): 6,
    ("C-x", "k", "Enter"): 2,
    ("C-x", "4", "0"): 1,
    ("C-x", "5", "2"): 1,
    ("C-x", "5", "0"): 2,
    ("C-x", "5", "o"): 1,
    ("C-x", "t", "2"): 1,
    ("C-x", "t", "0"): 2,
    ("C-x", "t", "o"): 1,
    ("C-v",): 2,
    ("M-v",): 2,
    ("C-n",): 3,
    ("C-/",): 2,
    ("M-<",): 1,
    ("w", "o", "r", "d"): 2,
    ("C-x", "C-s"): 1,
}


class Cli(threading.Thread):
    """A CLI that keeps some edits open, and writes those that are accepted."""

    def __init__(self, fake: FakeCli, files: list[Path], random: Random) -> None:
        super().__init__()
        self._fake = fake
        self._random = random
        self._waiting = list(files)
        self._lock = threading.Lock()
        self._open: set[Path] = set()
        self._rests = self._stops = False
        self.proposed = 0
        self.ended: dict[str, int] = {}
        self.problems: list[str] = []
        self.start()

    def run(self) -> None:
        try:
            events = self._fake.connect()
            while not self._stops:
                self._propose()
                if events.nothing_yet():
                    continue
                event = events.next()
                method = event["method"].removeprefix("ide/diff")
                if method in ("Accepted", "Rejected"):
                    self._end(method, event["params"])
            self._fake.close()
        except Exception as error:
            self.problems.append(f"the CLI has failed: {error!r}")

    def rest(self, rests: bool) -> None:
        """Propose nothing from now on if it ``rests``."""
        with self._lock:
            self._rests = rests

    def stop(self) -> None:
        self._stops = True
        self.join()

    def count(self) -> int:
        return sum(self.ended.values())

    def _propose(self) -> None:
        with self._lock:
            while not self._rests and len(self._open) < OPEN:
                file = self._waiting.pop(0)
                self._open.add(file)
                self.proposed += 1
                self._fake.open_diff(str(file), self._text(file))

    def _text(self, file: Path) -> str:
        lines = file.read_text().splitlines(keepends=True)
        for _ in range(self._random.randrange(1, 6)):
            place = self._random.randrange(len(lines))
            lines[place : place + self._random.randrange(2)] = [
                f"edit {self.proposed}, {self._random.random()}\n"
            ]
        return "".join(lines[:200]) or "empty\n"

    def _end(self, how: str, params: dict[str, str]) -> None:
        path = Path(params["filePath"])
        self.ended[how] = self.ended.get(how, 0) + 1
        if how == "Accepted":
            path.write_text(params["content"] or OLD)
        with self._lock:
            if path in self._open:
                self._open.remove(path)
                self._waiting.append(path)
