# SPDX-License-Identifier: GPL-3.0-or-later
"""A hook that waits for the answer of Emacs: what is a yes, and what is none.

The hook is a process, started by a shell as a CLI does.
"""

import hashlib
import json
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from sexpdata import Symbol

from conftest import Start, dead_pid, until
from extension import announce, command
from fake_cli import BOUND
from fake_emacs import NO_ANSWER, FakeEmacs, plist
from gemini_companion_epc import bridge as program
from gemini_companion_epc.clients import CLIENTS
from gemini_companion_epc.hooks import LONGEST_QUESTION, Choice, Hooks, Question
from gemini_companion_epc.types import Facts

COMMAND = "rm -rf build && echo 'ä 日本 \u202e'\n\techo \"done\" \x07"
TOOL_INPUT = {"command": COMMAND, "description": "Do it", "is_background": False}


def event(tool: str = "run_shell_command", **arguments: object) -> Facts:
    """Return what Qwen Code sends to its hook before it asks."""
    return {
        "hook_event_name": "PermissionRequest",
        "cwd": "/usr",
        "tool_name": tool,
        "tool_input": arguments or TOOL_INPUT,
    }


class Hook:
    """A hook that a shell of a CLI has started, in a group of its own."""

    def __init__(self, event: Facts) -> None:
        home = Path(os.environ["HOME"])
        hook = shlex.join(command(home, "qwen", "--permission", factor=1))
        line = f"{hook} || echo {{}}"
        self.cli = subprocess.Popen(
            ["sh", "-c", f"sh -c {shlex.quote(line)}; true"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert self.cli.stdin
        self.cli.stdin.write(json.dumps(event).encode())
        self.cli.stdin.close()

    def output(self) -> Any:
        """Return what the hook has printed at its end."""
        assert self.cli.stdout
        return json.loads(self.cli.stdout.read())

    def kill(self, number: int = signal.SIGTERM) -> None:
        """Send a signal to all processes, as Qwen Code does after Escape."""
        os.killpg(self.cli.pid, number)

    def close(self) -> None:
        with suppress(ProcessLookupError):
            self.kill(signal.SIGKILL)
        self.cli.wait(BOUND)
        assert self.cli.stdout
        self.cli.stdout.close()


AskHook = Callable[..., Hook]


@pytest.fixture
def ask(tmp_path: Path) -> Iterator[AskHook]:
    (tmp_path / "home" / ".qwen").mkdir(parents=True)
    hooks: list[Hook] = []

    def ask(facts: Facts | None = None) -> Hook:
        hooks.append(Hook(facts or event()))
        return hooks[-1]

    yield ask
    for hook in hooks:
        hook.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[FakeEmacs, str]]:
    """An Emacs for the tests that neither end it nor set its limits, and its HOME."""
    root = tmp_path_factory.mktemp("shared")
    (root / "home" / ".qwen").mkdir(parents=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(root / "home"))
        patch.setenv("TMPDIR", str(root))
        emacs = FakeEmacs(root, forked=True, silence_limit=BOUND).connect()
    announce(root / "home", "shared", dict(emacs.hello["discovery"]))
    yield emacs, str(root / "home")
    emacs.close()
    assert "Traceback" not in "".join(emacs.log), "".join(emacs.log)


@pytest.fixture
def emacs(shared: tuple[FakeEmacs, str], monkeypatch: pytest.MonkeyPatch) -> FakeEmacs:
    """The shared Emacs, which gives no answer and knows nothing of other tests."""
    emacs, home = shared
    monkeypatch.setenv("HOME", home)
    asked_by(emacs, NO_ANSWER)
    # All that was begun before has been withdrawn by then.
    emacs.call("processes")
    emacs.epc.unanswered.clear()
    emacs.epc.calls.queue.clear()
    return emacs


def server(start: Start, answer: Any = NO_ANSWER, **settings: float) -> FakeEmacs:
    """Return an Emacs that gives ``answer``, a form or a function, to permissions."""
    # A busy machine is no silent Emacs.
    emacs = start(**{"silence_limit": BOUND, **settings})
    announce(Path(os.environ["HOME"]), emacs.port, dict(emacs.hello["discovery"]))
    asked_by(emacs, answer)
    return emacs


def asked_by(emacs: FakeEmacs, answer: Any) -> None:
    """Let ``emacs`` give ``answer``, a form or a function, to permissions."""
    emacs.epc.answers["ask"] = answer if callable(answer) else lambda *_: answer
    emacs.call("roots-update", ["/"])
    emacs.call("tools-update", True)
    # The server loads its HTTP part for the first request.
    body = json.dumps({"method": "list", "directory": "/"}).encode()
    assert b"tools" in program.post(emacs.port, emacs.token, body, BOUND)


def asked_in(emacs: FakeEmacs) -> tuple[dict[str, Any], Any, str]:
    """Return the facts, the input and its text of the permission that is asked."""
    kind, facts, text = emacs.expect("ask")
    assert kind == Symbol("permission")
    return plist(facts), json.loads(text), text


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def allow(*_: Any) -> list[Any]:
    return [Symbol(":behavior"), "allow", Symbol(":input"), digest(_[-1])]


def refuse(reason: Any) -> Callable[..., list[Any]]:
    def refuse(*args: Any) -> list[Any]:
        shown = [Symbol(":input"), digest(args[-1])]
        return [Symbol(":behavior"), "deny", *shown, Symbol(":message"), reason]

    return refuse


def decision(behavior: str, **more: str) -> Facts:
    output = {"behavior": behavior, **more}
    return {
        "hookSpecificOutput": {
            "hookEventName": "PermissionRequest",
            "decision": output,
        }
    }


def test_an_answer_of_emacs_is_that_of_the_hook(emacs: FakeEmacs, ask: AskHook) -> None:
    asked_by(emacs, allow)
    assert ask().output() == decision("allow")
    facts, shown, text = asked_in(emacs)
    assert text.isascii()
    assert (facts["client"], facts["directory"]) == ("qwen", "/usr")
    assert os.getpid() in facts["pids"]
    assert (shown["tool"], shown["command"]) == ("Shell", COMMAND)
    assert shown["arguments"] == [["description", "Do it"], ["is_background", "false"]]

    reason = "Not so: „use\nmake“ \\ \x07"
    emacs.epc.answers["ask"] = refuse(reason)
    assert ask().output() == decision("deny", message=reason)

    # The user wants to answer in the terminal.
    emacs.epc.answers["ask"] = lambda *_: []
    assert ask().output() == {}


ODD: list[Any] = [
    True,
    "allow",
    Symbol("allow"),
    ["allow"],
    [Symbol(":behavior"), "allow"],
    [Symbol(":behavior"), Symbol("allow")],
    [Symbol(":behavior"), "allow", Symbol(":input"), digest("another text")],
    [Symbol(":behavior"), True, Symbol(":input"), "TEXT"],
    [Symbol(":behavior"), "allow", Symbol(":input"), "TEXT", Symbol(":more"), "x"],
    [Symbol(":behavior"), "allow", Symbol(":input"), "TEXT", Symbol(":behavior"), "x"],
    [Symbol(":behavior"), "", Symbol(":behavior"), "allow", Symbol(":input"), "TEXT"],
    [Symbol(":input"), "TEXT", Symbol(":behavior"), "allow"],
    [Symbol(":behaviour"), "allow", Symbol(":input"), "TEXT"],
    [":behavior", "allow", ":input", "TEXT"],
    [Symbol(":behavior"), "Allow", Symbol(":input"), "TEXT"],
    [Symbol(":behavior"), "allow ", Symbol(":input"), "TEXT"],
    [Symbol(":behavior"), "allow_always", Symbol(":input"), "TEXT"],
    [Symbol(":behavior"), ["allow"], Symbol(":input"), "TEXT"],
    [Symbol(":behavior"), "deny", Symbol(":input"), "TEXT"],
    [[Symbol(":behavior"), "allow", Symbol(":input"), "TEXT"]],
    [Symbol(":file"), "/etc/hostname"],
]  # fmt: skip


def test_a_malformed_answer_is_no_answer(emacs: FakeEmacs, ask: AskHook) -> None:
    for odd in ODD:

        def answer(*args: Any, odd: Any = odd) -> Any:
            if not isinstance(odd, list):
                return odd
            return [digest(args[-1]) if part == "TEXT" else part for part in odd]

        emacs.epc.answers["ask"] = answer
        assert ask().output() == {}, odd
    for reason in ("", [], True, Symbol("no"), ["no"]):
        emacs.epc.answers["ask"] = refuse(reason)
        assert ask().output() == {}, reason


def test_an_error_of_emacs_is_no_answer(emacs: FakeEmacs, ask: AskHook) -> None:
    hook = ask()
    asked_in(emacs)
    (uid,) = emacs.epc.unanswered
    emacs.epc.send([Symbol("return-error"), uid, "allow"])
    assert hook.output() == {}


def test_only_the_first_answer_counts(emacs: FakeEmacs, ask: AskHook) -> None:
    hooks = [ask(), ask()]
    texts = [asked_in(emacs)[2] for _ in hooks]
    first, second = emacs.epc.unanswered
    emacs.epc.send([Symbol("return"), first, []])
    emacs.epc.send([Symbol("return"), first, allow(texts[0])])
    with ThreadPoolExecutor() as pool:
        outputs = [pool.submit(hook.output) for hook in hooks]
        until(lambda: any(output.done() for output in outputs))
        assert [output.result() for output in outputs if output.done()] == [{}]
        emacs.epc.send([Symbol("return"), second, allow(texts[1])])
        assert decision("allow") in [output.result() for output in outputs]


def withdrawn(emacs: FakeEmacs, question_id: str) -> str:
    """Return how the question was withdrawn, as Emacs is told."""
    question, how = emacs.expect("withdrawn")
    assert question == question_id
    return str(how.value())


def test_escape_in_the_cli_withdraws_the_question(
    emacs: FakeEmacs, ask: AskHook
) -> None:
    hook = ask()
    facts, _, text = asked_in(emacs)
    hook.kill()
    assert withdrawn(emacs, facts["id"]) == "ended"
    # A late answer.
    emacs.epc.send([Symbol("return"), emacs.epc.unanswered[0], allow(text)])
    emacs.call("processes")


def test_the_end_of_the_cli_withdraws_the_question(
    emacs: FakeEmacs, ask: AskHook
) -> None:
    hook = ask()
    facts, _, _ = asked_in(emacs)
    # The hook goes on: it is not the CLI's own child, and gets no signal.
    hook.cli.kill()
    assert withdrawn(emacs, facts["id"]) == "ended"
    assert hook.output() == {}


@pytest.mark.parametrize("how", ["tools-update", "hand-over", "stop"])
def test_the_question_is_given_back(start: Start, ask: AskHook, how: str) -> None:
    emacs = server(start)
    hook = ask()
    facts, _, _ = asked_in(emacs)
    if how == "tools-update":
        emacs.call(how, [])
    else:
        emacs.send_call(how)
    assert withdrawn(emacs, facts["id"]) == "returned"
    assert hook.output() == {}


@pytest.mark.parametrize("how", ["killed", "stopped", "no Emacs", "terminated"])
def test_without_server_the_cli_asks(start: Start, ask: AskHook, how: str) -> None:
    emacs = server(start)
    hook = ask()
    asked_in(emacs)
    began = time.monotonic()
    if how == "no Emacs":
        emacs.hang_up()
    else:
        numbers = {"killed": signal.SIGKILL, "stopped": signal.SIGSTOP}
        emacs.process.send_signal(numbers.get(how, signal.SIGTERM))
    assert hook.output() == {}
    assert time.monotonic() - began < program.SILENT_SECONDS + BOUND / 10
    if how == "stopped":
        emacs.process.send_signal(signal.SIGCONT)


def test_an_emacs_that_hangs_does_not_hide_the_dialog(
    start: Start, ask: AskHook
) -> None:
    emacs = server(start, silence_limit=1, ping_interval=0.2)
    hook = ask()
    facts, _, text = asked_in(emacs)
    # A long time is no reason.
    for _ in range(8):
        emacs.expect("ping")
    assert hook.cli.poll() is None
    emacs.epc.answers["ping"] = lambda: NO_ANSWER
    assert hook.output() == {}
    assert withdrawn(emacs, facts["id"]) == "returned"
    emacs.epc.send([Symbol("return"), emacs.epc.unanswered[0], allow(text)])


def test_a_question_has_a_time_limit(start: Start, ask: AskHook) -> None:
    emacs = server(start, permission_limit=0.5)
    assert ask().output() == {}
    facts, _, _ = asked_in(emacs)
    assert withdrawn(emacs, facts["id"]) == "returned"


NOT_ASKED: list[Facts] = [
    {},
    {"hook_event_name": "PermissionRequest"},
    {**event(), "cwd": "relative"},
    {**event(), "cwd": "/etc"},
    {**event(), "tool_input": "ls"},
    {**event(), "tool_name": 1},
    {**event(), "hook_event_name": "PreToolUse"},
    event(command=1),
    event(command=["ls"]),
    event(description="no command"),
    event(command="echo \ud800"),
    event(description="\ufffd", command="ls"),
    event(command=LONGEST_QUESTION * "x"),
    event("edit", file_path="/a", old_string="a", new_string="b"),
    event("write_file", file_path="/a", content="b"),
    event("ask_user_question", questions=[]),
    event("ask_user_question", questions=[{"question": 1}]),
    event("ask_user_question", questions="Which one?"),
    event("exit_plan_mode", plan=1),
    event("exit_plan_mode", plan="x\ud800"),
    event("exit_plan_mode", plan=LONGEST_QUESTION * "x"),
]


def test_what_emacs_is_not_asked(emacs: FakeEmacs, ask: AskHook) -> None:
    asked_by(emacs, allow)
    emacs.call("roots-update", ["/usr"])
    for facts in NOT_ASKED:
        assert ask({"cwd": "/usr", **facts}).output() == {}, facts
    assert all(name != "ask" for name, _ in emacs.epc.calls.queue)
    assert ask({**event(), "cwd": "/usr"}).output() == decision("allow")


QUESTION = {
    "question": "Which one?",
    "header": "Pick",
    "options": [{"label": "red", "description": "r"}, {"label": "blue"}],
    "multiSelect": True,
}


def test_a_plan_and_a_question_have_no_yes(emacs: FakeEmacs, ask: AskHook) -> None:
    for question, kind in (
        (event("exit_plan_mode", plan="# One\u202e"), "plan"),
        (event("ask_user_question", questions=[QUESTION]), "inquiry"),
    ):
        asked_by(emacs, allow)
        assert ask(question).output() == {}
        facts, shown, _ = asked_in(emacs)
        assert shown["kind"] == kind
        assert withdrawn(emacs, facts["id"]) == "returned"
        asked_by(emacs, refuse("word for\nword"))
        assert ask(question).output() == decision("deny", message="word for\nword")
        asked_in(emacs)


def test_no_emacs_is_asked_without_a_process(emacs: FakeEmacs, ask: AskHook) -> None:
    """A CLI whose end cannot be seen must not wait for ever."""
    body = {"method": "permission", "pid": dead_pid(), "event": event()}
    answer = program.post(
        emacs.port, emacs.token + ".qwen", json.dumps(body).encode(), BOUND
    )
    assert json.loads(answer) == {}


def test_one_of_two_emacsen_is_asked(start: Start, ask: AskHook) -> None:
    """That is the newest one; another one is not asked in its place."""
    old = server(start, emacs_pid=os.getppid())
    new = server(start)
    (file,) = Path(os.environ["HOME"], ".qwen", "ide").glob(f"{old.port}.lock")
    os.utime(file, (1, 1))
    hook = ask()
    asked_in(new)
    new.process.kill()
    assert hook.output() == {}
    assert all(name != "ask" for name, _ in old.epc.calls.queue)
    # The next one is for the other Emacs.
    old.epc.answers["ask"] = allow
    assert ask().output() == decision("allow")


def notice(details: Any) -> Facts:
    facts: Facts = {"hook_event_name": "Notification", "cwd": "/", "details": details}
    return {**facts, "notification_type": "ToolPermission"}


def test_what_each_cli_asks() -> None:
    gemini, qwen, copilot, _ = (client.hooks for client in CLIENTS)
    assert gemini
    assert qwen
    assert copilot
    assert gemini.answer({}) is copilot.answer({}) is None

    question = gemini.question(notice({"type": "exec", "command": COMMAND}))
    assert question == Question("Shell", COMMAND)
    question = gemini.question(
        notice({"type": "mcp", "serverName": "s", "toolName": "t"})
    )
    assert question == Question("s/t", is_partial=True)
    question = gemini.question(notice({"type": "info", "prompt": "p", "urls": ["u"]}))
    assert question == Question("URL", None, {"prompt": "p", "urls": ["u"]})
    plan = {"type": "info", "title": "Enter Plan Mode", "prompt": "This restricts"}
    question = gemini.question(notice(plan))
    assert question == Question("Enter Plan Mode", None, {"prompt": "This restricts"})
    others: list[Any] = [{"type": "edit"}, {"type": "ask_user"}, {"type": "exec"}, []]
    for details in others:
        assert gemini.question(notice(details)) is None

    question = qwen.question(event("mcp__s__t", a=1, b={"c": "d"}))
    assert question
    assert json.loads(question.as_text())["arguments"] == [
        ["a", "1"], ["b", '{"c": "d"}']
    ]  # fmt: skip

    # Values that no CLI sends are no questions, and no errors of the server.
    for odd in (["run_shell_command"], {"x": 1}, None, 1):
        assert qwen.question({**event("x"), "tool_name": odd}) is None
        assert qwen.question({**event("x"), "tool_input": [odd]}) is None

    assert copilot_asks(copilot, "Run command: " + COMMAND) == Question(
        "Shell", COMMAND
    )
    partial = Question("poke/poke", is_partial=True)
    assert copilot_asks(copilot, "Use MCP tool: poke/poke") == partial
    path = Question("Path", None, {"path": "/tmp/a"})
    assert copilot_asks(copilot, "Path permission needed: /tmp/a") == path
    # A review answers it.
    assert copilot_asks(copilot, "Edit file: /tmp/a") is None
    other = Question("Permission", None, {"message": "What now?"}, is_partial=True)
    assert copilot_asks(copilot, "What now?") == other
    assert copilot.question({"notification_type": "agent_idle", "message": "m"}) is None


@pytest.mark.parametrize(
    ("command", "is_edit"),
    [
        ("sed -i s/a/b/ a.txt", True),
        ("sed -Ei -e 's#a b#c#g' 'a b.txt'", True),
        ("sed --in-place '' s/a/b/ /x/a.txt", True),
        ("sed s/a/b/ a.txt", False),
        ("sed -i s/a/b/ a.txt b.txt", False),
        ("sed -i s/a/b/ a.txt && make", False),
        ("sed -i 1d a.txt", False),
        ("sed -i.bak s/a/b/ a.txt", False),
        ("sed -n -i s/a/b/ a.txt", False),
        ("sed -i 's/a/b/ a.txt", False),
        ("make -i s/a/b/ a.txt", False),
        ("", False),
    ],
)
def test_qwen_asks_about_sed_of_one_file_by_a_review(
    command: str, is_edit: bool
) -> None:
    _, client, *_ = CLIENTS
    assert client.hooks
    question = client.hooks.question(event(command=command))
    assert question == (None if is_edit else Question("Shell", command))


def test_question_about_an_edit_is_given_to_the_cli(
    emacs: FakeEmacs, ask: AskHook
) -> None:
    # Emacs would allow it.
    asked_by(emacs, allow)
    assert ask(event(command="sed -i s/a/b/ a.txt")).output() == {}


def test_what_each_cli_asks_besides_permissions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gemini, qwen, copilot, _ = (client.hooks for client in CLIENTS)
    assert gemini
    assert qwen
    assert copilot
    pick = Choice("Which one?", "Pick", [("red", "r"), ("blue", "")], True)
    inquiry = Question("Question", kind="inquiry", choices=[pick])
    start = notice({"type": "exit_plan_mode", "title": "Plan"})
    assert gemini.question(start) == Question("Plan", is_partial=True)
    before: Facts = {"hook_event_name": "BeforeTool", "tool_name": "ask_user"}
    before["tool_input"] = {"questions": [QUESTION]}
    assert gemini.question(before) == inquiry
    assert gemini.read(before) is None
    assert gemini.question({**before, "tool_name": "write_file"}) is None
    odd: Any
    for odd in (None, [], "x", {"questions": [1]}, {"questions": {"question": "x"}}):
        assert gemini.question({**before, "tool_input": odd}) is None

    assert qwen.question(event("ask_user_question", questions=[QUESTION])) == inquiry
    plan = Question("Plan", kind="plan", plan="# One")
    assert qwen.question(event("exit_plan_mode", plan="# One")) == plan

    color = {"title": "Color", "enum": ["red", 1]}
    sizes = {"description": "How large?", "items": {"enum": ["S"]}}
    schema = {"properties": {"color": color, "sizes": sizes}}
    tool: Facts = {"cwd": "/", "toolName": "ask_user"}
    tool["toolArgs"] = {"message": "Which one?", "requestedSchema": schema}
    question = copilot.question(tool)
    assert question
    assert question.choices == [
        Choice("Which one?", "Color", [("red", ""), ("1", "")], False),
        Choice("How large?", "sizes", [("S", "")], True),
    ]
    assert copilot.question({**tool, "toolResult": {}}) is None
    assert copilot.has_ended({**tool, "toolResult": {}})
    assert not copilot.has_ended(tool)
    for odd in (None, {}, {"message": ""}, {"requestedSchema": 1}):
        assert copilot.question({**tool, "toolArgs": odd}) is None
    # Its text has come before the tool.
    notified = {"notification_type": "elicitation_dialog", "message": "Information"}
    assert copilot.question(notified) is None

    # Its plan is in a file, which may be missing.
    monkeypatch.setenv("COPILOT_HOME", str(tmp_path))
    leave: Facts = {"sessionId": "1a-b", "toolName": "exit_plan_mode"}
    leave["toolArgs"] = {"summary": "Do it"}
    assert copilot.question(leave) == Question("Plan", kind="plan", plan="Do it")
    (tmp_path / "session-state" / "1a-b").mkdir(parents=True)
    (tmp_path / "session-state" / "1a-b" / "plan.md").write_text("# One")
    both = Question("Plan", None, {"summary": "Do it"}, kind="plan", plan="# One")
    assert copilot.question(leave) == both
    (tmp_path / "plan.md").write_text("elsewhere")
    question = copilot.question({**leave, "sessionId": "../"})
    assert question
    assert question.plan == "Do it"


def copilot_asks(hooks: Hooks, message: str) -> Question | None:
    return hooks.question(
        {"notification_type": "permission_prompt", "message": message}
    )


def test_a_question_of_a_terminal_is_shown_at_once(emacs: FakeEmacs) -> None:
    """Gemini CLI asks when its hook has returned, so that waits for no Emacs."""
    question = notice({"type": "exec", "command": COMMAND})
    body = {"method": "event", "pid": os.getpid(), "event": question}
    began = time.monotonic()
    answer = program.post(emacs.port, emacs.token, json.dumps(body).encode(), BOUND)
    took = time.monotonic() - began
    assert json.loads(answer) == {}
    assert took < 4  # the limit for other events
    facts, shown, _ = asked_in(emacs)
    assert "id" not in facts
    assert shown["command"] == COMMAND
    kind, turn = emacs.expect("ask")
    assert (kind.value(), plist(turn)["event"]) == ("turn", "question")
