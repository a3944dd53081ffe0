# SPDX-License-Identifier: GPL-3.0-or-later
"""Random turns of two CLIs and the user: each line is of who has written it.

The hooks are run as the CLIs run them; the server and Emacs are real.  GC_SHELL_TURNS
sets the number of turns, and GC_SHELL_SEED repeats the choices of a run.
"""

import os
import random
import subprocess
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from harness.emacs import Emacs, lisp
from harness.world import World
from test_shell import git, hook
from test_tools import link

SECRET = "SECRET"

# Each file with its lines; a line is marked if a change has it, and not as another's.
LINES = """
(progn
  (gemini-companion-changes--compare-all)
  (mapcar
   (lambda (record)
     (gemini-companion-changes-update record)
     (let ((others (gemini-companion-changes-of-others record))
           (n -1))
       (vector (file-name-nondirectory (gemini-companion-changes-file-name record))
             (mapcar
              (lambda (line)
                (setq n (1+ n))
                (vector line
                      (if (and (not (memq n others))
                               (seq-some
                                (lambda (change)
                                  (<= (gemini-companion-hunk-new change)
                                      n
                                      (1- (gemini-companion-hunk-new-end change))))
                                (gemini-companion-changes-file-known record)))
                          1 0)))
              (gemini-companion-lines-split
               (or (gemini-companion-changes-text record) ""))))))
   (gemini-companion-changes-files 'all)))
"""
# The user types in the buffer, which has followed the CLI.
SAVE = """
(let ((file {}))
  (gemini-companion-revert-now file)
  (with-current-buffer (find-file-noselect file)
    (goto-char (point-min))
    (forward-line {})
    (unless (bolp) (insert "\\n"))
    (insert {})
    (let ((save-silently t)) (save-buffer))
    nil))
"""


class Turns:
    """The CLIs, the user, and their files."""

    def __init__(self, world: World, emacs: Emacs, seed: int) -> None:
        self.random = random.Random(seed)
        self.world = world
        self.emacs = emacs
        self.project = world.project
        self.numbers = count()
        self.committed: set[str] = set()
        self.log: list[str] = []

    def hook(self, client: str, option: str, **event: Any) -> None:
        hook(self.world, client, option, **event)

    # Files

    def line(self, author: str) -> str:
        return f"{author}-{next(self.numbers)}\n"

    def files(self) -> list[Path]:
        return sorted(self.project.glob("*.txt"))

    def changed(self, file: Path) -> str:
        """Return the text of ``file`` as a CLI changes it: some lines more or less."""
        lines = file.read_text().splitlines(keepends=True)
        for _ in range(self.random.randint(1, 3)):
            at = self.random.randint(0, len(lines))
            removed = self.random.choice((0, 0, 1, 2))
            new = [self.line("cli") for _ in range(self.random.randint(1, 3))]
            lines[at : at + removed] = new
        return "".join(lines)

    def new_name(self) -> Path:
        return self.project / f"new{next(self.numbers)}.txt"

    # What the CLIs do

    def edit(self, client: str) -> None:
        """Let an edit tool write a file, and report that."""
        file = self.random.choice(self.files())
        before, after = file.read_text(), self.changed(file)
        file.write_text(after)
        self.log.append(f"{client} edits {file.name}")
        self.hook(
            client,
            "--hook",
            hook_event_name="AfterTool" if client == "gemini" else "PostToolUse",
            tool_name="write_file",
            tool_input={"file_path": str(file)},
            tool_response={
                "returnDisplay": {
                    "filePath": str(file),
                    "originalContent": before,
                    "newContent": after,
                }
            },
        )

    def shell(self, client: str) -> None:
        """Let a shell command write some files, while the user may save one."""
        begin, end = {
            "gemini": ("BeforeTool", "AfterTool"),
            "qwen": ("PreToolUse", "PostToolUse"),
        }[client]
        call = {
            "tool_name": "run_shell_command",
            "tool_input": {"command": f"make {next(self.numbers)}"},
        }
        self.hook(client, "--call", hook_event_name=begin, **call)
        if self.random.random() < 0.1:
            # No lines are marked then.
            self.many()
        else:
            for _ in range(self.random.randint(1, 3)):
                step = self.random.choice(
                    (self.rewrite, self.rewrite, self.rewrite, self.create, self.delete,
                     self.rename, self.exclude, self.save, self.save)
                )  # fmt: skip
                step()
        self.hook(client, "--hook", hook_event_name=end, **call)

    def rewrite(self) -> None:
        file = self.random.choice(self.files())
        self.log.append(f"  command rewrites {file.name}")
        file.write_text(self.changed(file))

    def create(self) -> None:
        file = self.new_name()
        self.log.append(f"  command creates {file.name}")
        file.write_text("".join(self.line("cli") for _ in range(3)))

    def delete(self) -> None:
        if len(self.files()) > 3:
            file = self.random.choice(self.files())
            self.log.append(f"  command deletes {file.name}")
            file.unlink()

    def rename(self) -> None:
        """Rename a file without lines of the user, which would be new ones there."""
        for file in self.files():
            text = file.read_text()
            if "user-" not in text and "base-" not in text:
                self.log.append(f"  command renames {file.name}")
                file.rename(self.new_name())
                return

    def many(self) -> None:
        directory = self.project / f"many{next(self.numbers)}"
        self.log.append(f"  command writes many files in {directory.name}")
        directory.mkdir()
        for number in range(25):
            (directory / f"{number}.c").write_text(f"many-{number}\n")

    def exclude(self) -> None:
        (self.project / ".env").write_text(f"{SECRET}-{next(self.numbers)}\n")

    # What the user does

    def save(self) -> None:
        """Let the user type a line in a file in Emacs, and save."""
        file = self.random.choice(self.files())
        at = self.random.randint(0, len(file.read_text().splitlines()))
        self.log.append(f"  user saves {file.name}")
        self.emacs.eval(SAVE.format(lisp(file), at, lisp(self.line("user"))))

    def git(self) -> None:
        """Let the user run git, while no tool is running."""
        kind = self.random.choice(("commit", "stash", "branch"))
        self.log.append(f"user: git {kind}")
        git(self.world, "add", "-A")
        if kind == "commit":
            git(self.world, "commit", "-q", "--allow-empty", "-m", "x")
            # These count as kept.
            for file in self.files():
                lines = file.read_text().splitlines(keepends=True)
                self.committed.update(line for line in lines if line.startswith("cli-"))
        elif kind == "branch":
            git(self.world, "checkout", "-q", "-b", f"b{next(self.numbers)}")
        elif git(self.world, "status", "--short"):
            git(self.world, "stash", "-q")
            git(self.world, "stash", "pop", "-q", "--index")

    # Turns

    def turn(self) -> None:
        client = self.random.choice(("gemini", "qwen"))
        self.log.append(f"turn of {client}")
        event = "BeforeAgent" if client == "gemini" else "UserPromptSubmit"
        self.hook(client, "--prompt", hook_event_name=event, prompt="Do it")
        for _ in range(self.random.randint(1, 3)):
            step: Callable[[], None] = self.random.choice(
                (
                    lambda: self.edit(client),
                    lambda: self.shell(client),
                    lambda: self.shell(client),
                    self.save,
                )
            )
            step()
        event = "AfterAgent" if client == "gemini" else "Stop"
        self.hook(client, "--hook", hook_event_name=event)
        if self.random.random() < 0.3:
            self.git()

    def judge(self) -> None:
        """Check that each line is of who has written it."""
        recorded: dict[str, list[tuple[str, int]]] = dict(self.emacs.value(LINES) or [])
        wrong = []
        for file in self.files():
            lines = recorded.get(
                file.name,
                [(line, 0) for line in file.read_text().splitlines(keepends=True)],
            )
            text = "".join(line for line, _ in lines)
            assert text == file.read_text(), file.name
            wrong += [
                f"{file.name}: {line.strip()} is {'' if is_marked else 'not '}marked"
                for line, is_marked in lines
                if is_marked != line.startswith("cli-") and line not in self.committed
            ]
        assert not wrong, "\n".join((*wrong, *self.log))

    def stored(self) -> bytes:
        """Return everything in the stores of the snapshots."""
        contents = b""
        for store in self.world.scratch.root.rglob("info/attributes"):
            directory = store.parent.parent
            if (directory / "objects").is_dir() and directory.name != ".git":
                process = subprocess.run(
                    ["git", f"--git-dir={directory}", "cat-file", "--batch",
                     "--batch-all-objects"],
                    check=True,
                    capture_output=True,
                )  # fmt: skip
                contents += process.stdout
        return contents


def test_each_line_is_of_who_has_written_it(world: World) -> None:
    seed = int(os.environ.get("GC_SHELL_SEED") or random.randrange(10**6))
    print(f"GC_SHELL_SEED={seed}")
    (world.scratch.home / ".qwen").mkdir(exist_ok=True)
    emacs = world.emacs(world.file("a.txt", "".join(f"base-{n}\n" for n in range(9))))
    link(world, emacs)
    for name in ("b.txt", "c.txt", "d.txt"):
        world.file(name, "".join(f"base-{name}-{n}\n" for n in range(12)))
    world.file(".env", f"{SECRET}\n")
    git(world, "add", "-A")
    git(world, "commit", "-qm", "x")
    turns = Turns(world, emacs, seed)
    for _ in range(int(os.environ.get("GC_SHELL_TURNS") or 10)):
        turns.turn()
        turns.judge()
    stored = turns.stored()
    assert b"cli-" in stored
    assert SECRET.encode() not in stored
