# SPDX-License-Identifier: GPL-3.0-or-later
"""Questions before commands, while the server, Emacs and the CLIs do anything.

Run by hand: python test/soak/permissions.py CLI COUNT [SEED].  CLI is "hooks" for the
real hook program, started by processes in the place of CLIs (asker.py), which is fast;
"plans" for the same with plans and questions of the model in place of commands, of
which none may be allowed; "qwen" for the real CLI.  The server, Emacs and
the terminals are real.

At random, the user allows or refuses by keys in Emacs, types in bursts, or answers in
the terminal, while the server, Emacs or a CLI is killed, stopped or restarted, or
sharing is paused.  The commands are tricky, and some differ by one character.

It prints a line for each thing that was done, and at last the figures.  A problem is a
command that ran without exactly one yes for exactly that text, one that was allowed and
has not run, and a dialog that came too late.  The records of all keys, screens, hooks
and runs stay in the directory that it names.
"""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from threading import Lock, Thread
from typing import Any

sys.path.extend(str(Path(__file__).parents[1] / name) for name in ("e2e", "python"))

import psutil
from harness.emacs import Emacs, lisp
from harness.gemini import Gemini, pause_before_enter
from harness.model import Part, call, say, together
from harness.tools import DEPS, Tools
from harness.world import World
from ledger import ALLOW, Ledger, Question, Record, escaped
from recorder import record

from test_permissions import link_qwen

HERE = Path(__file__).resolve().parent
DIALOG = "Allow execution of"
WORKS = "esc to cancel"
# What the CLI has to do in a second, a busy machine may do in this many.
PATIENCE = 60.0
# Seconds after which a CLI must ask, if Emacs or the server gives no sign of life:
# 5 s, two signs in 2 s each, and what a busy machine takes to start a process.
HUNG_LIMIT = 12.0
GONE_LIMIT = 8.0


def tricks(token: str) -> dict[str, str]:
    """Return commands that write ``token``, which is at their end, too, by kind."""
    begin, end = f"echo {token} >> ran.txt", f"true {token}"
    lines = "\n".join(f"true line {n}" for n in range(39))
    dialog = "│ Allow execution of [Shell]?\n│\n│ ● 1. Allow once"
    return {
        "plain": f"{begin}; {end}",
        "quotes": f"{begin}; true \"quo'te\" 'a  b' \\\"  \\\\u202e %s $'x'; {end}",
        "right-to-left": f"{begin}; true '\u202e )(' '\u05d0\u05d1'; {end}",
        "zero-width": f"{begin}; true 'ä 日本 \u200b\u2060'; {end}",
        "41 lines": f"{begin}\n{lines}\n{end}",
        "long line": f"{begin}; true {'x' * 3000}; {end}",
        "a dialog": f"{begin}; true '{dialog}'; {end}",
        "control": f"{begin}; true '\x1b[2J\t\x07'; {end}",
        "blanks": f"{begin};   true  a   b; {end}",
    }


def twin(command: str) -> str:
    """Return ``command`` with one character more, a blank or a letter."""
    if "  " in command:
        return command.replace("  ", " ", 1)
    return command.replace("true ", "true  ", 1)


class Cli(ABC):
    """What asks: a CLI, or a process in its place."""

    name: str
    pid: int

    def __init__(self, judge: "Judge", name: str) -> None:
        self.judge, self.name = judge, name
        self.mine: list[Question] = []
        """The questions of its turn."""
        self.start()

    @abstractmethod
    def start(self) -> None:
        """Start it, again if it was killed."""

    @abstractmethod
    def is_idle(self) -> bool:
        """Return whether no turn is in progress."""

    @abstractmethod
    def keep_asking(self) -> None:
        """Begin another turn if none is in progress."""

    @abstractmethod
    def dialog(self) -> list[Question]:
        """Return the questions that may be those of the dialog it shows, or []."""

    @abstractmethod
    def type(self, key: str) -> None:
        """Type the key for "yes", "no" or "escape" in its terminal."""

    def key(self, key: str, shown: Sequence[Question] = ()) -> None:
        """Type ``key``, while the dialog of ``shown`` is there."""
        if key != "yes":  # it ends the turn
            self.excuse()
        self.judge.note_key(shown, where=self.name, key=key, screen=self.shown())
        self.type(key)
        record("typed", where=self.name, key=key, screen=self.shown())
        if key == "escape":  # which ends a hook that waits
            self.judge.ledger.drop_hooks(self.mine)

    def shown(self) -> str:
        """Return the end of its screen."""
        return ""

    def excuse(self) -> None:
        """Record that what was allowed in this turn may not run."""
        for question in self.mine:
            question.is_excused = True

    def is_alive(self) -> bool:
        return has_process(self.pid)

    def kill(self) -> None:
        self.excuse()
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)


def has_process(pid: int) -> bool:
    with suppress(psutil.Error):
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    return False


class Asker(Cli):
    """A process in the place of Qwen Code, see asker.py."""

    def start(self) -> None:
        scratch = self.judge.world.scratch
        manifest = scratch.home.joinpath(
            ".emacs.d", "gemini-companion", "extension", "qwen-extension.json"
        )
        (hooks,) = json.loads(manifest.read_text())["hooks"]["PermissionRequest"]
        hook = hooks["hooks"][0]["command"]
        self._shown = ""
        self._is_idle = True
        self._process = subprocess.Popen(
            [sys.executable, HERE / "asker.py", hook, scratch.project, self.judge.kind],
            env={**scratch.environment, "JUDGE_RECORDS": os.environ["JUDGE_RECORDS"]},
            cwd=scratch.project,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # of hooks that outlive it
            text=True,
        )
        self.pid = self._process.pid
        Thread(target=self._read, args=(self._process,), daemon=True).start()

    def _read(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout
        for line in process.stdout:
            message = json.loads(line)
            if process is self._process:
                self._shown = message.get("dialog", "")
                self._is_idle = "idle" in message

    def is_idle(self) -> bool:
        return self._is_idle

    def keep_asking(self) -> None:
        if self._is_idle:
            self.mine = self.judge.new_questions()
            if self.mine:
                self._is_idle = False
                self._send(ask=[question.command for question in self.mine])

    def dialog(self) -> list[Question]:
        shown = self._shown
        return [self.judge.ledger.questions[shown]] if shown else []

    def type(self, key: str) -> None:
        self._shown = ""
        self._send(key=key)

    def _send(self, **message: object) -> None:
        assert self._process.stdin
        with suppress(OSError):
            self._process.stdin.write(json.dumps(message) + "\n")
            self._process.stdin.flush()

    def is_alive(self) -> bool:
        return self._process.poll() is None


class RealQwen(Cli):
    """Qwen Code in a terminal of its own, whose model has a turn of several answers."""

    cli: Gemini
    labels: Mapping[str, str] = {"yes": "Yes, allow once", "no": "No, suggest"}
    answers = 12
    """Answers of the model in a turn."""
    starts = 0

    def start(self) -> None:
        RealQwen.starts += 1
        world = self.judge.world
        cli = world.qwen(name=f"qwen{RealQwen.starts}")
        self.pid = int(
            world.tmux.call(
                "display-message", "-p", "-t", f"={cli.terminal.name}:", "#{pane_pid}"
            )
        )
        self.connect(cli)

    def connect(self, cli: Gemini) -> None:
        self.cli = cli
        self._zeros = 0
        self._answer = 0
        # The model calls this in place of its script.
        cli.model._next = self._next  # type: ignore[method-assign]

    def _next(self, request: Record) -> Part:
        self._answer += 1
        questions = self.judge.new_questions() if self._answer <= self.answers else []
        if not questions:
            return say("that was all")
        self.mine = [*self.mine, *questions][-6:]
        return together(*(shell(question.command) for question in questions))

    def is_idle(self) -> bool:
        """Return whether it takes prompts, in four looks as it may be drawing."""
        for _ in range(4):
            screen = self.shown()
            works = self.asks(screen) or WORKS in screen
            if works or self.cli.placeholder not in screen:
                return False
            time.sleep(0.15)
        return True

    def shown(self) -> str:
        """Return the end of its screen, without what it may have drawn over."""
        return "\n".join(self.cli.screen().rstrip().split("\n")[-44:])

    def keep_asking(self) -> None:
        """Type a prompt and Enter, if it is certain that they meet no dialog.

        The prompt has no digit but 0, as a digit would answer a dialog.
        """
        if self.judge.is_done() or not self.is_idle():
            return
        self._zeros += 1
        text = f"prompt {'0' * self._zeros} please"
        self._answer = 0
        self.cli.terminal.text(text)
        if not wait(lambda: text in self.shown(), 10):
            self.judge.count("prompt not taken")
            return
        pause_before_enter()
        if self.asks(self.shown()):
            return
        self.judge.note_key([], where=self.name, key="Enter", screen=self.shown())
        self.cli.terminal.keys("Enter")
        if not wait(lambda: self._answer, 20):
            self.judge.count("prompt not taken")
        if self._zeros == 20:
            self._zeros = 0
            self.kill()

    def asks(self, screen: str) -> bool:
        is_waiting = "Waiting for user confirmation" in screen
        return is_waiting and f"\n{DIALOG}" in re.sub("[│ ]+A", "A", screen)

    def dialog(self) -> list[Question]:
        """Return the questions that may be those of the rows above the last DIALOG."""
        screen = self.shown()
        if not self.asks(screen):
            return []
        above = screen.rpartition(DIALOG)[0].rstrip("│ \n").split("\n")
        rows = [*takewhile(lambda row: row.strip(" █"), reversed(above))]
        return self.judge.ledger.asked_on("\n".join(rows))

    def type(self, key: str) -> None:
        if key == "escape":
            self.cli.terminal.keys("Escape")
        else:
            options = self.shown().rpartition(DIALOG)[2]
            number = re.search(rf"(\d)\. {self.labels[key]}", options)
            if number:
                self.cli.terminal.keys(number[1])
        wait(lambda: not self.asks(self.shown()), 3)


def shell(command: str) -> Part:
    return call("run_shell_command", command=command, description="Do it",
                is_background=False)  # fmt: skip


def wait(condition: Callable[[], object], limit: float = PATIENCE) -> bool:
    """Return whether ``condition`` holds within ``limit`` seconds."""
    end = time.monotonic() + limit
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


KINDS: dict[str, Callable[["Judge", str], Cli]] = {
    "hooks": Asker,
    "plans": Asker,
    "qwen": RealQwen,
}


class Judge:
    """The user of an Emacs and of some CLIs, who may also kill and stop them."""

    def __init__(self, kind: str, count: int, seed: int, directory: Path) -> None:
        self.random = random.Random(seed)
        self.kind, self.count_to_ask = kind, count
        self.is_fast = kind in ("hooks", "plans")
        self.ledger = Ledger(directory)
        self.world = World(recording_tools(directory, self.ledger.file))
        self.world.home.joinpath(".qwen").mkdir()
        self.world.file("ran.txt", "")
        self._lock = Lock()
        self._start_emacs()
        link_qwen(self.world, self.emacs)
        number = {"hooks": 3, "plans": 3, "qwen": 2}[kind]
        self.clis = [KINDS[kind](self, f"{kind}-{n}") for n in range(number)]
        self.progress = time.monotonic()

    def _start_emacs(self) -> None:
        extra = f"""
            (setenv "JUDGE_RECORDS" {lisp(self.ledger.file)})
            (setq gemini-companion-terminal 'term)
            (load {lisp(HERE / "asking.el")})"""
        self.emacs: Emacs = self.world.emacs(
            self.world.file("a.txt", "a\n"), extra=extra
        )

    # What is asked

    def is_done(self) -> bool:
        return len(self.ledger.questions) >= self.count_to_ask

    def new_questions(self) -> list[Question]:
        """Return one question, or two that may be alike, for an answer of a model."""
        with self._lock:
            number = len(self.ledger.questions)
            if number >= self.count_to_ask:
                return []
            token = f"q{number:05}q"
            kind, command = self.random.choice([*tricks(token).items()])
            questions = [Question(number, kind, command, token)]
            if self.random.random() < 0.25:
                questions.append(Question(number + 1, "twin", twin(command), token))
            elif self.random.random() < 0.2:
                other = f"q{number + 1:05}q"  # one letter differs
                command = command.replace(token, other)
                questions.append(Question(number + 1, "letter", command, other))
            for question in questions:
                self.ledger.add(question)
            return questions

    def note_key(self, questions: Sequence[Question], **facts: Any) -> None:
        """Record a key that is about to be typed, to answer ``questions``."""
        record("key", tokens=[question.token for question in questions], **facts)
        for question in questions:
            question.keys.append(facts)

    def count(self, what: str) -> None:
        self.ledger.counts[what] += 1

    # What happens

    def run(self) -> None:
        while not (self.is_done() and self.is_over()):
            for cli in self.clis:
                if not cli.is_alive():
                    cli.start()
                cli.keep_asking()
            self.step()
            if time.monotonic() - self.progress > 2 * PATIENCE:
                self.ledger.problem("nothing happened for two minutes")
                self.progress = time.monotonic()
                for cli in self.clis:
                    cli.kill()
        self.ledger.finish()

    def is_over(self) -> bool:
        """Return whether nothing is asked any more, in two looks a second apart.

        What Emacs has given back may stay, as it cannot know the end.
        """
        for _ in range(2):
            is_waiting = any(waits for _, waits in self.open())
            if is_waiting or not all(cli.is_idle() for cli in self.clis):
                return False
            time.sleep(1)
        return True

    def open(self) -> list[tuple[Question, bool]]:
        """Return the questions that Emacs has, and whether their hooks wait."""
        return [(self.ledger.questions[command], bool(waits))
                for command, waits in self.emacs.value("(asking-open)") or []
                if command in self.ledger.questions]  # fmt: skip

    def step(self) -> None:
        """Do one thing about one question, if there is one."""
        self.ledger.update()
        open_questions = self.open()
        dialogs = [(cli, shown) for cli in self.clis if (shown := cli.dialog())]
        here = [question for question, waits in open_questions if waits]
        there = dialogs and (not here or self.random.random() < 0.3)
        if there:
            cli, shown = self.random.choice(dialogs)
            self.there(cli, shown)
        elif here:
            self.here(self.random.choice(here))
        else:
            time.sleep(0.1)
            return
        self.progress = time.monotonic()

    def here(self, question: Question) -> None:
        """Do something about ``question``, which Emacs shows."""
        plain = [self.allow, self.allow, self.allow, self.refuse, self.burst,
                 self.macro, self.give_back, self.escape]  # fmt: skip
        # A real CLI on a busy machine takes long to recover.
        if self.random.random() < (0.7 if self.is_fast else 0.85):
            action = self.random.choice(plain)
            action(question)
            self.say(action.__name__, question)
            return
        trouble = self.random.choice(self.troubles())
        raced = self.random.random() < 0.6
        self.disturbed(question, trouble(self), raced)
        self.say(f"{trouble.__name__}{' raced' if raced else ''}", question)

    def say(self, what: str, question: Question) -> None:
        self.count(what)
        print(f"{question.number} {question.kind}: {what}", flush=True)

    # Keys in Emacs

    def select(self, question: Question) -> bool:
        """Show ``question`` and wait until keys answer it; return whether they do."""
        code = f"(asking-show {lisp(question.command)})"
        return self.emacs.eval(code) == "t" and wait(
            lambda: self.showing()["answers"] or not self.is_open(question), 20
        )

    def showing(self) -> Record:
        return dict(self.emacs.value("(asking-showing)"))

    def is_open(self, question: Question) -> bool:
        return self.emacs.eval(f"(and (asking-find {lisp(question.command)}) t)") == "t"

    def look(self, question: Question) -> Record:
        """Return what is shown, and whether that is the whole of ``question``."""
        showing, screen = self.showing(), self.emacs.screen()
        text = escaped(question.command)
        whole = str(showing["text"] or "").startswith(text + "\n\n")
        is_seen = text[-8:] in screen.replace("\\\n", "")
        shows = bool(whole and is_seen and showing["end"] and showing["answers"])
        return {"shows": shows, "showing": showing, "screen": screen}

    def press(self, question: Question, key: str) -> bool:
        """Type ``key`` to answer ``question``, again if it has only scrolled."""
        for _ in range(4):
            if not self.select(question):
                return False
            look = self.look(question)
            self.note_key([question], where="emacs", key=key, **look)
            self.emacs.keys(*key.split())
            if self.is_taken(question):
                return True
        return False

    def is_taken(self, question: Question) -> bool:
        return wait(lambda: not self.is_open(question), 0.1)

    def allow(self, question: Question) -> None:
        if not self.press(question, ALLOW):
            self.not_taken(ALLOW, question)

    def refuse(self, question: Question) -> None:
        if not self.press(question, "r"):
            self.not_taken("r", question)

    def not_taken(self, key: str, question: Question) -> None:
        """Record that ``key`` was not taken, which must not be if a hook waits."""
        self.count(f"{key} not taken")
        if (question, True) in self.open():
            self.ledger.problem(f"{question.token}: {key} was not taken")

    def burst(self, question: Question) -> None:
        self.emacs.eval(f"(setq asking-next {lisp(question.command)})")
        self.note_key([question], where="emacs", key="burst", shows=False)
        self.emacs.burst("F5", *8 * ALLOW.split())
        self.unanswered(question)

    def macro(self, question: Question) -> None:
        self.select(question)
        self.note_key([question], where="emacs", key="macro", shows=False)
        self.emacs.burst(*ALLOW.split(), macro=True)
        self.unanswered(question)

    def unanswered(self, question: Question) -> None:
        self.ledger.update()
        # One key may have been typed before, in a race.
        is_typed = any(key["key"] == ALLOW for key in question.keys)
        if question.behavior == "allow" and not is_typed:
            self.ledger.problem(f"{question.token} was allowed by many keys")

    def give_back(self, question: Question) -> None:
        """RET in its buffer: its CLI asks in the terminal."""
        self.select(question)
        self.note_key([question], where="emacs", key="RET", **self.look(question))
        self.emacs.keys("Enter")
        self.are_given_back("RET", [question], GONE_LIMIT)

    def escape(self, question: Question) -> None:
        """Escape in the terminal, while the hook waits; again if it was not taken."""
        cli = self.cli_of(question)
        if cli is None:
            return
        for _ in range(5):
            cli.key("escape", [question])
            if wait(lambda: not self.is_open(question) or cli.is_idle(), 6):
                break
        # Of a CLI that is not connected, the end of what it asks there is not known.
        if not wait(lambda: (question, True) not in self.open(), 20):
            self.ledger.problem(f"{question.token} is shown after Escape")

    def cli_of(self, question: Question) -> Cli | None:
        return next((cli for cli in self.clis if question in cli.mine), None)

    # Keys in the terminal

    def there(self, cli: Cli, shown: list[Question]) -> None:
        """Answer the dialog of ``cli`` in its terminal."""
        is_late = self.random.random() < 0.2
        if is_late and self.select(shown[0]):
            self.note_key(shown[:1], where="emacs", key="late yes")
            self.emacs.keys(*ALLOW.split())
        key = self.random.choice(["yes", "yes", "no", "escape"])
        cli.key(key, shown)
        self.say(f"{key} in the terminal", shown[0])

    # Troubles

    def troubles(self) -> list[type["Trouble"]]:
        troubles: list[type[Trouble]] = [
            *(ServerKilled, ServerStopped, ServerRestarted),
            *(EmacsStopped, EmacsHangs, Paused),
        ]
        if self.is_fast:
            troubles.append(CliStopped)
        # A real CLI takes long to start.
        if self.is_fast or self.random.random() < 0.2:
            troubles += [EmacsKilled, CliKilled]
        return troubles

    def disturbed(self, question: Question, trouble: "Trouble", raced: bool) -> None:
        """Begin ``trouble`` and end it, while ``question`` is open.

        If that is a race, the key for a yes is typed just before it, or just after.
        """
        if not self.select(question):
            return
        look = self.look(question)
        if raced and self.random.random() < 0.6:
            self.type_now(question, look)
            time.sleep(self.random.uniform(0, 0.5))
            trouble.begin(question)
        else:
            trouble.begin(question)
            if raced:
                time.sleep(self.random.uniform(0, 0.3))
                self.type_now(question, look)
        if trouble.limit and (not raced or self.random.random() < 0.5):
            waiting = [hook for hook in self.ledger.open_hooks()
                       if (cli := self.cli_of(hook)) and cli.is_alive()]  # fmt: skip
            self.are_given_back(type(trouble).__name__, waiting, trouble.limit)
        else:
            time.sleep(self.random.uniform(0.2, 3))
        trouble.end()

    def type_now(self, question: Question, look: Record) -> None:
        self.note_key([question], where="emacs", key=ALLOW, **look)
        with suppress(AssertionError):  # Emacs may have been killed
            self.emacs.terminal.keys(*ALLOW.split())

    def are_given_back(
        self, what: str, questions: list[Question], limit: float
    ) -> None:
        """Check that the hooks of ``asked`` return in ``limit`` seconds."""
        began = time.time()
        if not wait(
            lambda: not set(questions) & set(self.ledger.open_hooks()), limit + 30
        ):
            self.ledger.problem(f"{what}: the CLI of {questions[0].token} does not ask")
            return
        ends = [question.hook["at"] - began for question in questions if question.hook]
        took = max([*ends, 0])
        self.ledger.took(what, took)
        if took > limit:
            self.ledger.problem(f"{what}: {took:.1f} s until the CLI asks")

    def close(self) -> None:
        for cli in self.clis:
            cli.kill()
        self.world.close()


class PlansJudge(Judge):
    """A user who is asked about plans, and by models, and can only say something."""

    def allow(self, question: Question) -> None:
        """Comment on a plan, or answer a question, by keys."""
        if not self.select(question):
            return
        if len(question.command) % 2:
            self._typed(question, "r", "Change the plan to", f"not {question.token}")
        elif self._typed(question, "a", "Pick:", f"or {question.token}"):
            self.emacs.keys("y")
        if not wait(lambda: (question, True) not in self.open(), 20):
            self.count("not taken")

    refuse = allow

    def _typed(self, question: Question, key: str, prompt: str, said: str) -> bool:
        """Type ``key`` and ``said`` at its ``prompt``; return whether that came."""
        self.note_key([question], where="emacs", key=key, said=said, shows=False)
        self.emacs.keys(key)
        if not wait(lambda: prompt in self.emacs.screen(), 5):
            return False
        self.emacs.text(said)
        self.emacs.keys("Enter")
        return True

    def burst(self, question: Question) -> None:
        super().burst(question)
        self._leave_minibuffer()

    def macro(self, question: Question) -> None:
        super().macro(question)
        self._leave_minibuffer()

    def disturbed(self, question: Question, trouble: "Trouble", raced: bool) -> None:
        super().disturbed(question, trouble, raced)
        with suppress(AssertionError):
            self._leave_minibuffer()

    def there(self, cli: Cli, shown: list[Question]) -> None:
        super().there(cli, shown)
        self._leave_minibuffer()

    def _leave_minibuffer(self) -> None:
        """End what ``a`` has begun to ask."""
        if self.emacs.eval("(active-minibuffer-window)") != "nil":
            self.emacs.keys("C-g")

    def run(self) -> None:
        super().run()
        self.ledger.finish_plans()


class Trouble(ABC):
    """Something that begins and ends; the limit is for the CLI to ask, in seconds."""

    limit = 0.0

    def __init__(self, judge: Judge) -> None:
        self.judge = judge
        self.processes: list[psutil.Process] = []

    @abstractmethod
    def begin(self, question: Question) -> None: ...

    def end(self) -> None:  # noqa: B027 - most troubles end by themselves
        """Let all go on."""

    def send(self, number: int) -> None:
        for process in self.processes:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(number)


class ServerKilled(Trouble):
    limit = GONE_LIMIT

    def begin(self, question: Question) -> None:
        self.processes = self.judge.world.scratch.servers()
        self.send(signal.SIGKILL)


class ServerStopped(Trouble):
    limit = HUNG_LIMIT

    def begin(self, question: Question) -> None:
        self.processes = self.judge.world.scratch.servers()
        self.send(signal.SIGSTOP)

    def end(self) -> None:
        self.send(signal.SIGCONT)


class ServerRestarted(Trouble):
    # The questions are answered in Emacs until the next server is ready.
    limit = PATIENCE

    def begin(self, question: Question) -> None:
        self.judge.emacs.eval("(progn (gemini-companion-restart) nil)")


class EmacsStopped(Trouble):
    limit = HUNG_LIMIT

    def begin(self, question: Question) -> None:
        self.processes = [psutil.Process(self.judge.emacs.pid)]
        self.send(signal.SIGSTOP)

    def end(self) -> None:
        self.send(signal.SIGCONT)


class EmacsHangs(Trouble):
    limit = HUNG_LIMIT

    def begin(self, question: Question) -> None:
        seconds = self.judge.random.choice(["1", "3", "9"])
        self.limit = HUNG_LIMIT if seconds == "9" else 0.0
        hang = f'(call-process "sleep" nil nil nil {lisp(seconds)})'
        self.judge.emacs.eval(f"(progn (run-at-time 0 nil (lambda () {hang})) nil)")


class EmacsKilled(Trouble):
    limit = GONE_LIMIT

    def begin(self, question: Question) -> None:
        psutil.Process(self.judge.emacs.pid).kill()

    def end(self) -> None:
        self.judge.emacs.wait_until_exited()
        wait(lambda: not self.judge.world.scratch.servers(), 30)
        self.judge._start_emacs()


class Paused(Trouble):
    limit = GONE_LIMIT

    def begin(self, question: Question) -> None:
        self.judge.emacs.eval("(progn (gemini-companion-pause) nil)")

    def end(self) -> None:
        self.judge.emacs.eval("(progn (gemini-companion-pause) nil)")


class CliKilled(Trouble):
    def begin(self, question: Question) -> None:
        cli = self.judge.cli_of(question)
        if cli:
            cli.kill()
            judge = self.judge
            judge.ledger.drop_hooks(cli.mine)
            if not wait(lambda: not judge.is_open(question), 30):
                judge.ledger.problem(f"{question.token} is shown after its CLI's end")


class CliStopped(Trouble):
    def begin(self, question: Question) -> None:
        cli = self.judge.cli_of(question)
        self.processes = [psutil.Process(cli.pid)] if cli and cli.is_alive() else []
        self.send(signal.SIGSTOP)

    def end(self) -> None:
        self.send(signal.SIGCONT)


def recording_tools(directory: Path, records: Path) -> Tools:
    """Return tools that record: a Python for hooks, and a bash for commands.

    Emacs is not the process that tmux has started, which would go on if stopped.
    """
    tools = Tools.find(str(DEPS / "emacs-30.1" / "bin" / "emacs"))
    programs = directory / "bin"
    programs.mkdir()
    python = Path(sys.executable)
    # The first arguments of a hook are options of Python.
    program(
        programs / "python3",
        f"""
        export JUDGE_RECORDS={records}
        case " $* " in *" --permission "*|*" --notice "*)
            while [ "${{1#-}}" != "$1" ]; do shift; done
            exec {python} -ES {HERE / "recorder.py"} "$@";;
        esac
        exec {python} "$@" """,
    )
    program(
        programs / "bash",
        f"""
        export JUDGE_RECORDS={records}
        exec {python} -ES {HERE / "runner.py"} {shutil.which("bash")} "$@" """,
    )
    program(programs / "emacs", f'{tools.emacs} "$@"')
    os.environ["PATH"] = f"{programs}:{os.environ['PATH']}"
    Tools.python = str(programs / "python3")
    return replace(tools, emacs=str(programs / "emacs"))


def program(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{textwrap.dedent(text)}\n")
    path.chmod(0o755)


def main() -> None:
    kind, count = sys.argv[1], int(sys.argv[2])
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(10**6)
    directory = Path(tempfile.mkdtemp(prefix="judge"))
    print(f"seed {seed}, records in {directory}", flush=True)
    judge = (PlansJudge if kind == "plans" else Judge)(kind, count, seed, directory)
    try:
        judge.run()
    except BaseException:
        print(judge.world.report())
        raise
    finally:
        print(judge.ledger.report())
        judge.close()
    sys.exit(bool(judge.ledger.problems))


if __name__ == "__main__":
    main()
