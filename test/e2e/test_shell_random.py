# SPDX-License-Identifier: GPL-3.0-or-later
"""Random turns of two CLIs and the user: no line of the user is lost or changed.

In a turn, a CLI writes files by its edit tool or by commands; then the user keeps,
undoes and takes back by keys, in the overview or in a file, and runs git.  During a
turn, the user also types and saves, and a formatter changes lines at the save or after
it.  The hooks are run as the CLIs run them; the server and Emacs are real.

Each line has a first word that no other line has, which formatters leave, and which
says who has written it.  After each step, Emacs must have the text of each file, and
mark the lines of CLIs that nobody has reviewed, and no others.  A key may change only
what it should: an undo removes lines of CLIs, and brings back what these have removed,
as displayed; a keep changes no text; C-/ brings back all as it was.

GC_SHELL_TURNS sets the number of turns, and GC_SHELL_SEED repeats the choices: that of
a failed test with 25 turns repeats that test.
"""

import os
import random
import subprocess
from collections import Counter
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from harness.emacs import Emacs, lisp
from harness.wait import eventually
from harness.world import World
from test_shell import extension, git, hook

SECRET = "SECRET"
TURNS = int(os.environ.get("GC_SHELL_TURNS") or 10)
# The number of turns in a project; then a new Emacs begins with a new one.
LONGEST = 25

# Each file with its lines, each with 1 if a change has it, 2 if as another's, or 0.
LINES = """
(progn
  (run-hook-with-args 'gemini-companion-watch-turned-functions nil)
  (mapcar
   (lambda (record)
     (gemini-companion-changes-update record)
     (let* ((seen (gemini-companion-changes-look record))
            (others (when seen
                      (gemini-companion-record-of-others
                       (gemini-companion-changes-seen-look seen))))
            (n -1))
       (vector (file-name-nondirectory (gemini-companion-changes-file-name record))
             (mapcar
              (lambda (line)
                (setq n (1+ n))
                (vector line
                      (cond ((not (seq-some
                                   (lambda (change)
                                     (and (<= (gemini-companion-hunk-new change)
                                              n
                                              (1- (gemini-companion-hunk-new-end
                                                   change)))
                                          ;; Others may have restored the middle.
                                          (not (member line (gemini-companion-hunk-lines
                                                             change)))))
                                   (gemini-companion-changes-file-known record)))
                             0)
                            ((memq n others) 2)
                            (t 1))))
              (gemini-companion-lines-split
               (or (gemini-companion-changes-text record) ""))))))
   (gemini-companion-changes-files 'all)))
"""
# The user goes to a line of the buffer, which has followed the CLI.
VISIT = """
(let ((file {}))
  (gemini-companion-revert-now file)
  (find-file file)
  (delete-other-windows)
  (goto-char (point-min))
  (forward-line {})
  (when (and (eobp) (not (bolp))) (insert "\\n"))
  nil)
"""
# The keys of the mode, and a formatter.
SETUP = """
(progn
  (random "{}")
  (global-set-key (kbd "C-c g") 'gemini-companion-command-map)
  (setq make-backup-files nil
        save-silently t)
  (defvar e2e-formats nil "Odds of a line to be formatted when a file is saved.")
  (add-hook 'before-save-hook
            (lambda ()
              (when e2e-formats
                (save-excursion
                  (goto-char (point-min))
                  (while (not (eobp))
                    (when (= 0 (random e2e-formats))
                      (end-of-line)
                      (insert " ;"))
                    (forward-line)))))))
"""
# The overview with point on the row or change of a number, and what is displayed there:
# the state of the change, or nil, and its lines, each with its sign.
GO = """
(let ((number {}) (places nil))
  (gemini-companion-turn-page)
  (deactivate-mark)
  (delete-other-windows)
  (gemini-companion-page-refresh)
  (goto-char (point-min))
  (while (not (eobp))
    (when (and (not (invisible-p (point)))
               (or (gemini-companion-overview-page-change-id)
                   (and (gemini-companion-overview-page-on-heading-p)
                        (memq (gemini-companion-overview-page-kind)
                              '(cli turn reviewed file)))))
      (push (point) places))
    (forward-line))
  (when places
    (goto-char (nth (% number (length places)) places))
    (set-window-point nil (point))
    ;; A key that was typed before the overview is displayed is ignored.
    (redisplay t)
    (let ((change (gemini-companion-overview-page-change)))
      (vector
       (buffer-substring-no-properties (line-beginning-position) (line-end-position))
       (cond ((null change) nil)
             ((gemini-companion-record-decided-p change)
              (symbol-name (gemini-companion-record-decided-state change)))
             (t "left"))
       (let ((mark (gemini-companion-overview-page-change-id))
             (bounds (gemini-companion-page-section
                      (list 'body (gemini-companion-overview-row-key
                                   (gemini-companion-overview-page-row)))))
             (shown nil))
         (when mark
           (save-excursion
             (goto-char (car bounds))
             (while (< (point) (cdr bounds))
               (let ((prefix (get-text-property (point) 'line-prefix)))
                 ;; A line of a hunk without a prefix is one of a comment.
                 (when (and (equal mark (gemini-companion-overview-page-change-id))
                            (or prefix
                                (null (get-text-property
                                       (point) 'gemini-companion-hunk))))
                   (push (concat (substring (or prefix " ") -1)
                                 (buffer-substring-no-properties
                                  (point) (line-end-position)))
                         shown)))
               (forward-line))))
         (vconcat (nreverse shown)))))))
"""
# What a question in the minibuffer asks, or nil.
ASKED = """
(when-let* ((window (active-minibuffer-window)))
  (with-current-buffer (window-buffer window) (buffer-string)))
"""
# What is asked before lines of others are undone.
OTHERS = "maybe yours"
# What is said of a file that was renamed, and stays.
RENAMED = ", which must be created again first"
# The files of which Emacs says that they were moved here, without marks.
MOVED = """
(vconcat (seq-mapcat (lambda (edit)
                       (cddr (assq 'moved (gemini-companion-unmarked-others edit))))
                     (seq-filter #'gemini-companion-unmarked-p
                                 (gemini-companion-edits))))
"""
# The last message.
SAID = """
(with-current-buffer "*Messages*"
  (goto-char (point-max))
  (buffer-substring-no-properties (line-beginning-position 0) (line-end-position 0)))
"""
REVERT = "(mapc #'gemini-companion-revert-now (list {}))"
Lines = dict[str, list[tuple[str, int]]]


def word(line: str) -> str:
    """Return what a formatter leaves of ``line``."""
    return line.split()[0]


class Turns:
    """The CLIs, the user, and their files."""

    def __init__(self, world: World, emacs: Emacs, seed: int) -> None:
        self.random = random.Random(seed)
        self.world = world
        self.emacs = emacs
        self.project = world.project
        self.numbers = count()
        # The words of lines of CLIs that the user has kept, and that were committed,
        # and of lines that CLIs have removed.
        self.kept: set[str] = set()
        self.committed: set[str] = set()
        self.removed: set[str] = set()
        # Those in files that a command has renamed and changed: these are only named.
        self.moved: set[str] = set()
        # The new names of files that the command has renamed.
        self.renamed: set[Path] = set()
        self.log: list[str] = []
        self.said = ""
        # Whether a command of a CLI runs.
        self.runs = False

    def hook(self, client: str, option: str, **event: Any) -> None:
        hook(self.world, client, option, **event)

    def one_of(self, *steps: tuple[int, Callable[[], None]]) -> None:
        """Do one of ``steps``, by their weights."""
        weights, functions = zip(*steps, strict=True)
        self.random.choices(functions, weights)[0]()

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
            self.removed.update(map(word, lines[at : at + removed]))
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
        self.log.append("  command begins")
        self.runs = True
        texts = {file: file.read_text() for file in self.files()}
        self.renamed.clear()
        if self.random.random() < 0.1:
            # No lines are marked then.
            self.many()
        else:
            for _ in range(self.random.randint(1, 3)):
                self.one_of(
                    (3, self.rewrite),
                    (1, self.create),
                    (1, self.delete),
                    (1, self.rename),
                    (1, self.exclude),
                    (2, self.save),
                )
        self.hook(client, "--hook", hook_event_name=end, **call)
        self.log.append("  command ends")
        self.runs = False
        named = set(self.emacs.value(MOVED) or [])
        for file in self.renamed.intersection(self.files()):
            text = file.read_text()
            if text not in texts.values() and file.name in named:
                self.log.append(f"  {file.name} was moved here")
                self.moved.update(map(word, text.splitlines()))

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
            self.removed.update(map(word, file.read_text().splitlines()))
            file.unlink()

    def rename(self) -> None:
        """Rename a file without lines of the user, which would be new ones there."""
        for file in self.files():
            text = file.read_text()
            if "user-" not in text and "base-" not in text:
                self.log.append(f"  command renames {file.name}")
                self.removed.update(map(word, text.splitlines()))
                self.renamed.add(file.rename(self.new_name()))
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
        """Let the user type a line in a file, save it, and take that back or not."""
        file = self.random.choice(self.files())
        before = self.seen()
        at = self.random.randint(0, len(file.read_text().splitlines()))
        line = self.line("user")
        odds = self.random.choice(("nil", "nil", "5"))
        # What a program writes while a command runs is that of the command.
        after = not self.runs and self.random.random() < 0.2
        self.log.append(f"  user saves {file.name}: {line.strip()}, {odds}, {after}")
        self.emacs.eval(VISIT.format(lisp(file), at))
        self.emacs.eval(f"(setq e2e-formats {odds})")
        self.emacs.eval(f"(kill-new {lisp(line)})")
        self.emacs.keys("C-y", "C-x", "C-s")
        if after:
            self.format(file)
        elif odds == "nil" and self.random.random() < 0.3:
            self.log.append("  C-/")
            self.emacs.keys("C-/", "C-x", "C-s")
            self.same(before, self.seen())

    def format(self, file: Path) -> None:
        """Let a program format ``file``, and Emacs revert it."""
        lines = file.read_text().splitlines()
        text = "".join(
            line + self.random.choice(("", "", "", " ,")) + "\n" for line in lines
        )
        file.write_text(text)
        self.emacs.eval(REVERT.format(lisp(file)))

    def git(self) -> None:
        """Let the user run git, while no tool is running."""
        self.one_of(
            (3, self.commit), (1, self.branch), (1, self.stash), (1, self.checkout)
        )

    def commit(self) -> None:
        self.log.append("user: git commit")
        git(self.world, "add", "-A")
        git(self.world, "commit", "-q", "--allow-empty", "-m", "x")
        # These count as kept.
        for file in self.files():
            lines = file.read_text().splitlines()
            self.committed.update(
                word(line) for line in lines if line.startswith("cli-")
            )

    def branch(self) -> None:
        self.log.append("user: git branch")
        git(self.world, "checkout", "-q", "-b", f"b{next(self.numbers)}")

    def stash(self) -> None:
        """Let the user stash all changes and get them back."""
        git(self.world, "add", "-A")
        if git(self.world, "status", "--short"):
            self.log.append("user: git stash")
            before = self.seen()
            git(self.world, "stash", "-q")
            self.reverted()
            self.judge()
            git(self.world, "stash", "pop", "-q", "--index")
            self.reverted()
            self.same(before, self.seen())

    def checkout(self) -> None:
        """Let the user check a file out, as it was in the last commit."""
        committed = git(self.world, "ls-tree", "--name-only", "HEAD").split()
        file = self.random.choice(self.files())
        if file.name in committed:
            self.log.append(f"user: git checkout {file.name}")
            git(self.world, "checkout", "-q", "HEAD", "--", file.name)
            self.reverted()

    def reverted(self) -> None:
        """Let Emacs notice what git has written."""
        self.emacs.eval(REVERT.format(" ".join(map(lisp, self.files()))))

    def decide(self) -> None:
        """Keep or undo something by keys, and take that back or not."""
        before = self.seen()
        place = self.emacs.value(GO.format(self.random.randrange(10**6)))
        if not place:
            return
        line, state, shown = place
        keys = self.random.choice(("u", "u", "U", "k", "K", "region u", "region k"))
        is_region = keys.startswith("region")
        self.log.append(f"user: {keys} at {line!r}, {state}, {shown}")
        if is_region:
            keys = keys[-1]
            self.emacs.keys("C-Space", *["C-n"] * self.random.randint(1, 4))
        asked = self.press(keys)
        # A file that was renamed stays until its old name has its text again.
        stays = RENAMED in self.said
        at_change = keys in "uk" and not is_region and not stays
        self.judge_keys(
            keys,
            before,
            state if at_change else None,
            shown,
            # What goes is displayed, or the user has agreed.
            is_seen=is_region or (at_change and bool(state)) or OTHERS in asked,
        )

    def press(self, *keys: str) -> str:
        """Press ``keys``, and answer yes to all questions; return these."""
        self.emacs.keys(*keys)
        asked = ""
        while question := self.emacs.value(ASKED):
            asked += question
            self.log.append(f"  {question}")
            self.emacs.keys("y")
        self.said = self.emacs.value(SAID)
        self.log.append(f"  {self.said}")
        return asked

    def walk(self) -> None:
        """Keep or undo a change in its file by keys, and take that back or not."""
        before = self.seen()
        if self.marked(before):
            file = self.random.choice(self.files())
            keys = self.random.choice("uk")
            self.log.append(f"user: walks from {file.name}, {keys}")
            self.emacs.eval(VISIT.format(lisp(file), self.random.randrange(12)))
            self.press("C-c", "g", "n", keys)
            self.judge_keys(keys, before, None, [], is_seen=True)

    def judge_keys(
        self,
        keys: str,
        before: Lines,
        state: str | None,
        shown: list[str],
        *,
        is_seen: bool,
    ) -> None:
        """Check what ``keys`` did to a change in ``state``; take that back or not.

        If the keys were not for one change, ``state`` is None.  For ``is_seen``, see
        `undoes`.
        """
        after = self.seen()
        kept = set(self.kept)
        if keys in "kK":
            self.keeps(before, after, state, shown)
        else:
            self.undoes(before, after, state, shown, is_seen)
        if before != after and self.random.random() < 0.5:
            self.log.append("user: C-/")
            self.press("C-/")
            self.same(before, self.seen())
            self.kept = kept

    # What the keys may do

    def seen(self) -> Lines:
        """Return the lines of each file, and whether they are marked."""
        return eventually(self.looked, "Emacs has the texts of all files")

    def looked(self) -> Lines | None:
        """Return what `seen` does, or None if Emacs has the text of a file not yet."""
        recorded = dict(self.emacs.value(LINES) or [])
        seen = {}
        for file in self.files():
            text = file.read_text().splitlines(keepends=True)
            known = recorded.get(file.name, [(line, 0) for line in text]) or []
            if [line for line, _ in known] != text:
                return None
            # What others wrote in a change is theirs.
            seen[file.name] = [
                (line, 0 if mark == 2 and line[:4] != "cli-" else mark)
                for line, mark in known
            ]
        return seen

    def right(self, is_right: bool, what: str) -> None:
        assert is_right, "\n".join((what, *self.log))

    def same(self, before: Lines, after: Lines) -> None:
        """Check that nothing differs; what was committed may be kept meanwhile."""
        for name in before | after:
            old, new = (
                [
                    (line, 0 if word(line) in self.committed else mark)
                    for line, mark in seen.get(name, [])
                ]
                for seen in (before, after)
            )
            self.right(old == new, f"{name} was {old}\nand is {new}")

    def marks(self, line: str) -> tuple[int, ...]:
        """Return which marks ``line`` may have."""
        if not line.startswith("cli-"):
            return (0,)
        if word(line) in self.kept | self.committed | self.moved:
            return (0, 1, 2)
        # A line that was formatted is drawn as of others, in the change of the CLI.
        return (1,) if line.strip() == word(line) else (1, 2)

    @staticmethod
    def marked(seen: Lines) -> set[str]:
        return {word(line) for lines in seen.values() for line, mark in lines if mark}

    def keeps(
        self, before: Lines, after: Lines, state: str | None, shown: list[str]
    ) -> None:
        """Check that no text has changed, and that the lines ``shown`` are kept."""
        for name in before | after:
            old = [line for line, _ in before.get(name, [])]
            new = [line for line, _ in after.get(name, [])]
            self.right(old == new, f"a keep has changed {name}: {old}\n{new}")
        kept = self.marked(before) - self.marked(after)
        left = self.marked(after) - self.marked(before)
        self.right(left <= self.kept | self.committed, f"left now: {left}")
        if state == "left":
            added = {word(line[1:]) for line in shown if line[0] != "-"}
            self.right(added <= kept, f"kept {kept}, not {added}")
        # What CLIs have added and removed again is kept with that.
        there = {word(line) for lines in after.values() for line, _ in lines}
        self.kept |= kept | (self.removed - there)
        self.kept -= left

    def undoes(
        self,
        before: Lines,
        after: Lines,
        state: str | None,
        shown: list[str],
        is_seen: bool,
    ) -> None:
        """Check that only lines of CLIs have gone, and what they removed is back.

        A line of the user that has replaced one of a CLI may go only if it ``is_seen``,
        and goes to the kill ring.
        """
        gone_all: list[str] = []
        back_all: list[str] = []
        for name in before | after:
            old = [line for line, _ in before.get(name, [])]
            new = [line for line, _ in after.get(name, [])]
            gone = [line for line in old if line not in new]
            back = [line for line in new if line not in old]
            self.right(
                [line for line in old if line not in gone]
                == [line for line in new if line not in back],
                f"{name}: other lines have changed\n{old}\n{new}",
            )
            # A line that was checked out may also come back as it was formatted.
            plain = [line for line in new if line.strip() == word(line)]
            self.right(len(set(plain)) == len(plain), f"{name}: twice in {new}")
            marked = {line for line, mark in before.get(name, []) if mark}
            clis = {line for line in gone if line.startswith("cli-")}
            self.right(clis <= marked or state == "kept", f"{name}: lost {clis}")
            if users := set(gone) - clis:
                killed = "".join(self.emacs.value("(vconcat kill-ring)"))
                is_killed = users <= set(killed.splitlines(keepends=True))
                self.right(is_seen and is_killed, f"{name}: lost {users}")
            self.right(
                {word(line) for line in back} <= self.removed | set(map(word, gone)),
                f"{name}: nobody had removed {back}",
            )
            gone_all += gone
            back_all += back
        if state in ("left", "kept"):
            # A line that was restored by a part may be on both sides.
            minus = Counter(line[1:] for line in shown if line[0] == "-")
            plus = Counter(line[1:] for line in shown if line[0] != "-")
            self.right(
                plus - minus == Counter(line.rstrip("\n") for line in gone_all)
                and minus - plus == Counter(line.rstrip("\n") for line in back_all),
                f"shown {shown}, gone {gone_all}, back {back_all}",
            )

    # Turns

    def turn(self) -> None:
        client = self.random.choice(("gemini", "qwen"))
        self.log.append(f"turn of {client}")
        event = "BeforeAgent" if client == "gemini" else "UserPromptSubmit"
        self.hook(client, "--prompt", hook_event_name=event, prompt="Do it")
        for _ in range(self.random.randint(1, 3)):
            self.one_of(
                (2, lambda: self.edit(client)),
                (1, lambda: self.shell(client)),
                (1, self.save),
            )
        event = "AfterAgent" if client == "gemini" else "Stop"
        self.hook(client, "--hook", hook_event_name=event)
        self.judge()
        for step, chance in (self.git, 0.3), (self.decide, 0.6), (self.walk, 0.3):
            while self.random.random() < chance:
                step()
                self.judge()

    def judge(self) -> None:
        """Check that each line is of who has written it."""
        wrong = [
            f"{name}: {line.strip()} has mark {mark} in {lines}"
            for name, lines in self.seen().items()
            for line, mark in lines
            if mark not in self.marks(line)
        ]
        self.right(not wrong, "\n".join(wrong))

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


# On a busy machine, a CLI would go on without a snapshot, and nothing be known.
PATIENT = r"""
(with-eval-after-load 'gemini-companion-server
  (advice-add
   'gemini-companion-server--settings :filter-return
   (lambda (settings)
     `(:call_limit 30 :after_limit 80 :edit_limit 80 :addition_limit 16
       :review_limit 100 :notice_limit 4 ,@settings))))
(with-eval-after-load 'gemini-companion-tools
  (advice-add
   'gemini-companion-tools--write-extension :after
   (lambda ()
     (write-region "import bridge

for name in [name for name in vars(bridge) if name.endswith('_SECONDS')]:
    setattr(bridge, name, 20 * getattr(bridge, name))
bridge.main()
" nil
                   (expand-file-name "__main__.py"
                                     (gemini-companion-install-extension-directory))
                   nil 'silent))))
"""


@pytest.mark.parametrize("begin", range(0, TURNS, LONGEST))
def test_each_line_is_of_who_has_written_it(world: World, begin: int) -> None:
    seed = begin + int(os.environ.get("GC_SHELL_SEED") or random.randrange(10**6))
    print(f"GC_SHELL_SEED={seed}")
    (world.scratch.home / ".qwen").mkdir(exist_ok=True)
    file = world.file("a.txt", "".join(f"base-{n}\n" for n in range(9)))
    emacs = world.emacs(file, extra=PATIENT)
    extension(emacs)
    for name in ("b.txt", "c.txt", "d.txt"):
        world.file(name, "".join(f"base-{name}-{n}\n" for n in range(12)))
    world.file(".env", f"{SECRET}\n")
    git(world, "add", "-A")
    git(world, "commit", "-qm", "x")
    emacs.eval(SETUP.format(seed))
    turns = Turns(world, emacs, seed)
    for _ in range(begin, min(begin + LONGEST, TURNS)):
        turns.turn()
        turns.judge()
    stored = turns.stored()
    assert b"cli-" in stored
    assert SECRET.encode() not in stored
