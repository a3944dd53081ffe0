# SPDX-License-Identifier: GPL-3.0-or-later
"""Questions of the real Qwen Code while the server, Emacs and the CLI break.

Run by hand: python test/soak/permissions.py COUNT [SEED].  Each question is a shell
command that leaves its number in a file.  At random it is allowed or refused by keys in
Emacs, answered in the terminal, interrupted, or left while the server is killed,
stopped or restarted, Emacs is stopped, sharing is paused, or keys are typed in bursts.
Nothing may have run without a yes for exactly that text; and what was allowed must run.
"""

import random
import signal
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.extend(str(Path(__file__).parents[1] / name) for name in ("e2e", "python"))

from harness.emacs import Emacs
from harness.model import Part, call, say
from harness.qwen import Qwen, stays_connected
from harness.tools import DEPS, Tools
from harness.world import World
from test_tools import link

OPEN = "(gemini-companion-permissions-open)"
FIRST = f"(car {OPEN})"
BUFFER = f"(gemini-companion-request-buffer {FIRST})"
ARMED = """
(with-current-buffer (window-buffer)
  (let ((drawn gemini-companion-permission--drawn))
    (and drawn (eql num-input-keys
                    (gemini-companion-permission--drawing-keys drawn)))))"""
DIALOG = "Allow execution of"
LIMIT = 60.0
# What commands have behind their number.
TRICKS = [
    "",
    "; true '\u202e )('",
    "; true 'ä 日本 \u200b'",
    '; true "quo\'te"   two  blanks',
    "; true \\\\ \\u202e %s",
    "\n" * 45 + "true last",
    "; true " + "x" * 3000,
]


def wait(condition: object, limit: float = LIMIT) -> bool:
    """Return whether ``condition``, a function, holds within ``limit`` seconds."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        if condition():  # type: ignore[operator]
            return True
        time.sleep(0.05)
    return False


class Judge:
    """An Emacs, a Qwen Code that is started again when it was killed, and the tally."""

    def __init__(self, world: World, choices: random.Random) -> None:
        self.world, self.random = world, choices
        self.ran_file = world.project / "ran.txt"
        self.ran_file.touch()
        world.home.joinpath(".qwen").mkdir()
        self.emacs: Emacs = world.emacs(world.file("a.txt", "a\n"))
        link(world, self.emacs, answers=True)
        self.starts = 0
        self.cli = self.start()
        self.allowed: set[str] = set()
        self.tally: Counter[str] = Counter()
        self.problems: list[str] = []
        self.slow: list[float] = []

    def start(self) -> Qwen:
        cli = self.world.qwen(name=f"qwen{self.starts}")
        stays_connected(self.emacs, cli)
        return cli

    def ran(self) -> list[str]:
        return self.ran_file.read_text().split()

    def ask(self, number: int) -> str:
        token = f"t{number}-{self.random.randrange(10**6)}"
        text = f"echo {token} >> ran.txt{self.random.choice(TRICKS)}"
        part: Part = call(
            "run_shell_command", command=text, description="Do it", is_background=False
        )
        self.cli.model.script(part, say(f"said {token}"))
        try:
            self.cli.prompt()
        except AssertionError:
            # It did not take the prompt, as after Escape at a wrong moment.
            self.tally["CLI started again"] += 1
            self.kill_cli()
            self.cli.model.script(part, say(f"said {token}"))
            self.cli.prompt()
        return token

    def is_shown(self) -> bool:
        return bool(self.emacs.value(f"(and {FIRST} t)"))

    def select(self) -> None:
        show = f"(progn (gemini-companion-request-show {FIRST}) nil)"
        self.emacs.eval(show)

    def press(self, key: str) -> None:
        """Press ``key`` when it counts; ``a`` again if it has only scrolled."""
        for _ in range(3):
            if not wait(lambda: self.emacs.value(ARMED), 20) or not self.is_shown():
                return
            self.emacs.keys(key)
            if not self.is_shown():
                return

    def answer_no(self) -> None:
        """Refuse in the terminal, until the CLI is ready."""
        wait(lambda: DIALOG in self.cli.screen() or not self.is_busy(), 30)
        for _ in range(5):
            if not self.is_busy():
                return
            self.cli.terminal.keys("Escape")
            wait(lambda: not self.is_busy(), 4)

    def is_busy(self) -> bool:
        """Return whether it works or asks: the next prompt would then be a yes."""
        for _ in range(4):  # it may be drawing its screen
            screen = self.cli.screen()
            if "esc to cancel" in screen or DIALOG in screen:
                return True
            time.sleep(0.3)
        return False

    # What happens to a question

    def allow(self, token: str) -> None:
        self.select()
        self.allowed.add(token)
        self.press("a")
        began = time.monotonic()
        if self.is_shown():
            self.tally["key not taken"] += 1
            return
        if not wait(lambda: token in self.ran()):
            self.problems.append(f"{token} was allowed and has not run")
        self.slow.append(time.monotonic() - began)

    def refuse(self, token: str) -> None:
        self.select()
        self.press("r")

    def burst(self, token: str) -> None:
        self.select()
        self.emacs.terminal.keys(*"aaaaaaaa")
        time.sleep(0.3)
        if not self.is_shown():
            self.problems.append(f"{token} was answered by a burst")
            return
        self.refuse(token)

    def there_yes(self, token: str) -> None:
        self.select()
        self.emacs.keys("Enter")
        self.allowed.add(token)
        if wait(lambda: DIALOG in self.cli.screen()):
            self.cli.answer("once")
        if not wait(lambda: token in self.ran()):
            self.problems.append(f"{token} was allowed there and has not run")

    def there_no(self, token: str) -> None:
        self.select()
        self.emacs.keys("Enter")
        wait(lambda: DIALOG in self.cli.screen())
        self.answer_no()

    def escape(self, token: str) -> None:
        self.cli.terminal.keys("Escape")
        if not wait(lambda: not self.is_shown(), 20):
            self.problems.append(f"{token} is shown after Escape")

    def server_killed(self, token: str) -> None:
        for server in self.world.scratch.servers():
            server.send_signal(signal.SIGKILL)
        self.dialog(token, 12)

    def server_stopped(self, token: str) -> None:
        servers = self.world.scratch.servers()
        for server in servers:
            server.send_signal(signal.SIGSTOP)
        self.dialog(token, 12)
        for server in servers:
            server.send_signal(signal.SIGCONT)

    def server_restarted(self, token: str) -> None:
        self.emacs.eval("(gemini-companion-restart)")
        self.dialog(token, 12)

    def emacs_hangs(self, token: str) -> None:
        # A process of tmux that is stopped is continued by tmux.
        hang = '(call-process "sleep" nil nil nil "15")'
        self.emacs.eval(f"(run-at-time 0 nil (lambda () {hang}))")
        # Typed while it hangs: no yes.
        self.emacs.terminal.keys("a")
        self.dialog(token, 12)
        self.emacs.value("t")

    def paused(self, token: str) -> None:
        self.emacs.eval("(gemini-companion-pause)")
        self.dialog(token, 12)
        self.emacs.eval("(gemini-companion-pause)")

    def cli_killed(self, token: str) -> None:
        self.kill_cli(token)

    def kill_cli(self, token: str = "") -> None:
        for process in self.world.scratch.processes("cli"):
            command = " ".join(process.cmdline())
            if "qwen-code" in command and "--permission" not in command:
                process.kill()
        if not wait(lambda: not self.is_shown(), 20):
            self.problems.append(f"{token} is shown after the end of the CLI")
        self.starts += 1
        self.cli = self.start()

    def dialog(self, token: str, limit: float) -> None:
        """Check that the CLI asks in its terminal within ``limit`` seconds."""
        began = time.monotonic()
        if not wait(lambda: DIALOG in self.cli.screen(), limit + 30):
            self.problems.append(f"{token}: no dialog")
        took = time.monotonic() - began
        self.tally["slowest dialog"] = max(self.tally["slowest dialog"], int(took * 10))

    def run(self, number: int) -> None:
        kinds = [self.allow] * 4 + [
            self.refuse, self.burst, self.there_yes, self.there_no, self.escape,
            self.server_killed, self.server_stopped, self.server_restarted,
            self.emacs_hangs, self.paused, self.cli_killed,
        ]  # fmt: skip
        kind = self.random.choice(kinds)
        token = self.ask(number)
        if not wait(self.is_shown):
            # The CLI may ask in its terminal, as after a restart of the server.
            self.tally["asked there"] += 1
            self.answer_no()
        else:
            time.sleep(self.random.choice([0, 0.2, 1]))
            kind(token)
            self.tally[kind.__name__] += 1
        if kind != self.cli_killed and self.is_busy():
            self.answer_no()
        extra = set(self.ran()) - self.allowed
        if extra:
            self.problems.append(f"ran without a yes: {extra}")
            self.allowed |= extra
        print(number, kind.__name__, token, self.problems[-1:], flush=True)


def main() -> None:
    count = int(sys.argv[1])
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(10**6)
    print(f"seed {seed}")
    tools = Tools.find(str(DEPS / "emacs-30.1" / "bin" / "emacs"))
    world = World(tools)
    try:
        judge = Judge(world, random.Random(seed))
        for number in range(count):
            judge.run(number)
    finally:
        world.close()
    print(judge.tally)
    print(f"{len(judge.ran())} ran, {len(judge.allowed)} allowed")
    print(*judge.problems, sep="\n")


if __name__ == "__main__":
    main()
