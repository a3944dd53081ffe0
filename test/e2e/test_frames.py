# SPDX-License-Identifier: GPL-3.0-or-later
"""The active file is the one selected in the frame used last."""

import subprocess
from pathlib import Path

from harness.emacs import Emacs
from harness.scratch import Scratch
from harness.terminal import Terminal
from harness.wait import eventually
from harness.world import World

SNAPSHOT = """
(vconcat (mapcar (lambda (file)
                   (vector (if (plist-get file :active) "active" "open")
                           (file-name-nondirectory (plist-get file :path))))
                 (gemini-companion-context-snapshot)))"""


def shares(emacs: Emacs, active: str | None, *others: str) -> None:
    """Wait until ``active`` is the active file, and ``others`` the open ones."""
    expected = [["active", active]] if active else []
    expected += [["open", name] for name in others]
    eventually(
        lambda: emacs.value(SNAPSHOT) == expected,
        f"{expected} are shared",
    )


def frame(world: World, emacs: Emacs, file: Path) -> Terminal:
    """Open another frame of ``emacs`` in a terminal, with ``file`` in it."""
    visit = f'(find-file "{file}")'
    client = [world.tools.emacsclient, "-s", "emacs", "-nw", "--eval", visit]
    terminal = world.tmux.start("other", client, file.parent, {}, (80, 24))
    terminal.wait_for(file.name)
    return terminal


def test_the_frame_used_last_counts(world: World) -> None:
    one, two = world.file("one.txt", "1\n"), world.file("two.txt", "2\n")
    emacs = world.emacs(one)
    shares(emacs, "one.txt")
    other = frame(world, emacs, two)
    shares(emacs, "two.txt", "one.txt")

    emacs.keys("C-f")
    shares(emacs, "one.txt", "two.txt")
    other.keys("C-f")
    shares(emacs, "two.txt", "one.txt")
    other.keys("M-x")
    other.wait_for("M-x")
    shares(emacs, "two.txt", "one.txt")
    other.keys("C-g")
    other.wait_for("Quit")
    other.keys("C-x", "5", "0")
    shares(emacs, "one.txt", "two.txt")


def test_names_are_followed(world: World) -> None:
    one, two = world.file("one.txt", "1\n"), world.file("sub/two.txt", "2\n")
    world.file("sub/three.txt", "3\n")
    emacs = world.emacs(two, one)
    shares(emacs, "one.txt", "two.txt")

    emacs.eval(f"(progn (require 'dired-aux) (dired-rename-file {quoted(two)}"
               f" {quoted(two.parent / 'deux.txt')} nil))")  # fmt: skip
    shares(emacs, "one.txt", "deux.txt")
    emacs.eval(f"(dired-rename-file {quoted(two.parent)}"
               f" {quoted(world.project / 'below')} nil)")  # fmt: skip
    shares(emacs, "one.txt", "deux.txt")
    assert emacs.value('(plist-get (nth 1 (gemini-companion-context-snapshot)) :path)'
                       ) == str(world.project / "below/deux.txt")  # fmt: skip
    emacs.eval(
        f'(with-current-buffer "one.txt" (write-file {quoted(one.parent / "un.txt")}))'
    )
    shares(emacs, "un.txt", "deux.txt")
    emacs.eval("""(with-current-buffer "un.txt"
      (when (fboundp 'rename-visited-file) (rename-visited-file "uno.txt"))
      (unless (fboundp 'rename-visited-file) (write-file "uno.txt")))""")
    shares(emacs, "uno.txt", "deux.txt")
    commit(world.scratch)
    emacs.eval("""(let ((below (expand-file-name "below/")))
      (require 'vc)
      (vc-rename-file (concat below "deux.txt") (concat below "dos.txt")))""")
    shares(emacs, "uno.txt", "dos.txt")
    (world.project / "below/dos.txt").unlink()
    shares(emacs, "uno.txt")
    emacs.eval("""(with-current-buffer "uno.txt" (set-visited-file-name nil))""")
    shares(emacs, None)


def commit(scratch: Scratch) -> None:
    """Commit all files of the project."""
    for arguments in (["add", "."], ["commit", "-q", "-m", "All"]):
        subprocess.run(
            ["git", "-c", "user.name=x", "-c", "user.email=x@x", *arguments],
            cwd=scratch.project,
            env=scratch.environment,
            check=True,
        )


def quoted(path: Path) -> str:
    """Return ``path`` as a Lisp string."""
    return f'"{path}"'
