# SPDX-License-Identifier: GPL-3.0-or-later
"""New errors and answers that Emacs sends to the model of a linked CLI."""

import json
import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

import pytest
from harness import gemini
from harness.emacs import STATE, TURN, Emacs, Reviews, lisp
from harness.gemini import Gemini, type_until
from harness.model import Part, call, say, together, write_file
from harness.qwen import Qwen, stays_connected
from harness.wait import eventually
from harness.world import World
from test_trust import changes_trust, trust

from fake_cli import FakeCli

# A backend of Flymake that needs nothing but Python.  It knows the errors of a text
# that another hook fixes once that has done so.
CHECKER = """
import os, sys, time
text = sys.stdin.read()
while "fix" in text and not os.path.exists("fixed"):
    time.sleep(0.05)
try:
    compile(text, "a.py", "exec")
except SyntaxError as error:
    print(f"<stdin>:{error.lineno}:{error.offset}: {error.msg}")
"""
FLYMAKE = f"""
(setq python-flymake-command '({lisp(sys.executable)} "-c" {lisp(CHECKER)}))
(add-hook 'python-mode-hook #'flymake-mode)
"""
CHECKED = """
(with-current-buffer "a.py"
  (and (flymake-running-backends)
       (null (seq-difference (flymake-running-backends)
                             (flymake-reporting-backends)))))
"""
GOOD = "def one():\n    return 1\n"
BAD = "def one():\n    return 1 +\n"
FIXED = BAD + "# fix\n"
FIXER = "grep -q fix a.py && sed -i 's/ +$//;/fix/d' a.py && >fixed; echo {}"
LINKED = """
(progn (require 'gemini-companion-tools)
       (and (gemini-companion-tools-linked-p {}) t))
"""
TOOL = "mcp_emacs_diagnostics"
NEW_ERROR = "Emacs sees 1 new error in a.py"


def link(world: World, emacs: Emacs, client: str = "") -> None:
    """Give the command that links the CLIs, and answer yes to what it asks.

    Link only ``client`` if that is given: each takes seconds of a processor.  If they
    are linked already, only name their programs.  New errors are waited for as long as
    the hook lives, for a busy machine.
    """
    emacs.eval("(defvar gemini-companion-errors-timeout 4.5)")
    # To link, Gemini CLI would start itself again: a second of a processor.
    emacs.eval('(setenv "GEMINI_CLI_NO_RELAUNCH" "1")')
    programs = {"gemini": world.tools.gemini}
    if world.scratch.home.joinpath(".qwen").exists():
        programs["qwen"] = world.tools.qwen
    commands = " ".join(
        f"({lisp(name)} . {lisp(path if client in (name, '') else 'not-there')})"
        for name, path in programs.items()
    )
    emacs.eval(f"(setq gemini-companion-run-commands '({commands}))")
    if emacs.value(LINKED.format(lisp(client or "gemini"))):
        return
    # Emacs does not answer what Qwen Code asks permission for.
    word = "all" if client == "gemini" or len(programs) == 1 else "yes"
    question = "without confirmation" if client != "qwen" else "asks permission for"
    emacs.command("gemini-companion-tools", question, key=word[0])
    emacs.keys(*word[1:], "Enter")
    emacs.says("Linked")


# A server with one tool, which writes a file.
MCP_SERVER = """
import json, sys

TOOL = {"name": "put", "description": "Write.", "inputSchema": {"type": "object"}}

for line in sys.stdin:
    request = json.loads(line)
    method, result = request["method"], {}
    if method == "initialize":
        version = request["params"]["protocolVersion"]
        info = {"name": "w", "version": "1"}
        result = {"protocolVersion": version, "serverInfo": info}
        result["capabilities"] = {"tools": {}}
    elif method == "tools/list":
        result = {"tools": [TOOL]}
    elif method == "tools/call":
        with open("b.txt", "a") as file:
            file.write("put\\n")
        result = {"content": [{"type": "text", "text": "written"}]}
    if "id" in request:
        answer = {"jsonrpc": "2.0", "id": request["id"], "result": result}
        print(json.dumps(answer), flush=True)
"""


def mcp_servers(world: World, **more: object) -> dict[str, object]:
    """Return the settings of a server w, with ``more``, that runs in the project."""
    script = world.scratch.root / "server.py"
    script.write_text(MCP_SERVER)
    server = {"command": world.tools.python, "args": [str(script)], "trust": True}
    return {"w": {**server, "cwd": str(world.project), **more}}


def linked_qwen(
    world: World, *files: Path, extra: str = ""
) -> tuple[Emacs, Reviews, Qwen]:
    """Return an Emacs that visits ``files``, and a linked Qwen Code.

    It asks for permissions in its terminal, and has a server of tools.  In a shared
    world, they are those of the previous test.
    """
    world.home.joinpath(".qwen").mkdir(exist_ok=True)
    emacs = world.emacs(*files, extra=extra)
    link(world, emacs, "qwen")
    cli = world.cli(lambda: world.qwen(mcpServers=mcp_servers(world)))
    assert isinstance(cli, Qwen)
    stays_connected(emacs, cli)
    return emacs, Reviews(emacs), cli


def link_pi(world: World, emacs: Emacs) -> None:
    """Let the extension of Pi report, too."""
    programs = f'(("gemini" . "none") ("pi" . {lisp(world.tools.pi)}))'
    emacs.eval(f"(setq gemini-companion-run-commands '{programs})")
    if not emacs.value(LINKED.format('"pi"')):
        emacs.command("gemini-companion-tools", "a linked CLI")
        emacs.keys("e", "s", "Enter")
        emacs.says("Linked Pi")


def unlink(world: World, emacs: Emacs) -> None:
    """Give the same command again; it leaves nothing."""
    emacs.command("gemini-companion-tools", "delete it and its links?")
    emacs.says("Deleted the extension and its links")
    for home in (world.scratch.home / ".gemini", world.scratch.home / ".qwen"):
        assert not list(home.glob("**/gemini-companion*"))
        for file in [*home.glob("extensions/*"), *home.glob("*/state.json")]:
            assert "gemini-companion" not in file.read_text()
    assert not list(world.scratch.home.glob(".emacs.d/gemini-companion/extension"))


def interrupt(emacs: Emacs, cli: Gemini) -> None:
    """Type Escape while the CLI works; Emacs then knows that it is ready."""
    # Qwen Code reports that it is idle only if it has drawn that it works.
    works = "esc to cancel"
    eventually(lambda: works not in cli.screen(), "the last turn has ended")
    cli.model.answers.clear()
    cli.prompt()
    emacs.holds(f"(eq 'working {STATE})")
    cli.wait_for(works)
    cli.interrupt("Escape", works)
    emacs.holds(f"(eq 'ready {STATE})")
    cli.model.answers.set()


def result_of(cli: Gemini, *turns: Part) -> str:
    cli.is_free(*turns)
    return cli.model.results()[-1]


def tools_change(world: World, there: bool, name: str = "gemini") -> None:
    """Wait until the CLI called ``name`` has got tools of Emacs, or lost them.

    Each prompt meanwhile would be half a second of a processor.
    """
    log = world.scratch.root / f"{name}.log"

    def have_changed() -> bool:
        counts = re.findall(r"Refresh for .* discovered (\d+) tools", log.read_text())
        return bool(counts) and (counts[-1] != "0") == there

    eventually(have_changed, f"the tools have changed: {there}")


def loses_tools(world: World, cli: Gemini) -> None:
    """Wait until the model of ``cli`` has no tools of Emacs."""

    def has_none() -> bool:
        cli.is_free()
        return TOOL not in json.dumps(cli.model.requests[-1]["tools"])

    tools_change(world, False)
    eventually(has_none, "the tools are gone")


@pytest.mark.contract("Gemini CLI: hooks")
def test_a_linked_cli_asks_emacs_when_that_is_there_and_is_sent_new_errors(
    world: World,
) -> None:
    file = world.file("a.py", GOOD)
    os.utime(file, (1e9, 1e9))
    emacs = world.emacs(file, extra=FLYMAKE)
    link(world, emacs)
    hook = {"matcher": "write_file", "hooks": [{"type": "command", "command": FIXER}]}
    security = trust(world, "gemini", "TRUST_FOLDER")
    gemini.configure(world.scratch, security=security, hooks={"AfterTool": [hook]})
    emacs.holds(CHECKED)
    reviews, cli = Reviews(emacs), world.gemini()

    # Asked and answered, without a confirmation.
    question = call(TOOL, file="a.py")
    assert "no errors or warnings" in result_of(cli, question)
    # Its trust in the project is not overridden.
    assert "Press 'r' to restart" not in cli.screen()
    a_stranger_has_no_tools(world)

    # The turn is known, though not from a title.
    emacs.holds(f"(eq 'ready {STATE})")
    emacs.becomes(f"(gemini-companion-turn-prompt {TURN})", "prompt 1 please")
    interrupt(emacs, cli)
    # It goes on after a reject if it has run another tool of that answer.
    fix, other = write_file(file, FIXED), write_file(file, FIXED + "# another\n")
    reviews.proposed(cli, file, together(call(TOOL, file="a.py"), fix), other)
    reviews.reject()
    turns = "(mapcar #'gemini-companion-edit-turn (gemini-companion-edits))"
    emacs.holds(f"(equal (list {TURN} {TURN}) {turns})")
    assert not emacs.value(f"(gemini-companion-turn-ended {TURN})")
    # The question of an edit that was interrupted is known at the next prompt.
    cli.wait_for("# another")
    cli.interrupt()

    def accepted(text: str, old: str = "", new: str = "") -> str:
        """Return what the model is sent when ``text``, edited so, was accepted."""
        said = f"accepted after {len(cli.model.requests)}"
        reviews.proposed(cli, file, write_file(file, text), say(said))
        if old:
            reviews.edit(old, new)
        reviews.accept()
        cli.wait_for(said)
        return cli.model.results()[-1]

    def is_reported(*edit: str) -> bool:
        """Return whether Emacs has found the new error in time; else fix it."""
        return NEW_ERROR in accepted(*edit) or not accepted(GOOD)

    # After an edit that was accepted.
    eventually(lambda: is_reported(BAD), "the new error is reported")
    assert "error: invalid syntax" in result_of(cli, question)

    # Nothing is new: nothing is added.
    accepted(GOOD)
    assert "hook_context" not in cli.model.last_message()

    # After an edit of the user in the review.
    mine = (GOOD + "\n", "return 1", "return 1 +")
    eventually(lambda: is_reported(*mine), "the error of the user is reported")

    # After an edit without a review; the buffer follows, and the list has it.
    type_until(
        lambda: cli.terminal.keys("BTab"),
        lambda: "auto-accept edits" in cli.screen(),
        "auto-accept",
    )
    assert "hook_context" not in result_of(cli, write_file(file, GOOD))
    emacs.holds(f'(equal {lisp(GOOD)} (with-current-buffer "a.py" (buffer-string)))')
    eventually(
        lambda: (
            NEW_ERROR in result_of(cli, write_file(file, BAD))
            or not result_of(cli, write_file(file, GOOD))
        ),
        "the new error is reported",
    )
    emacs.holds(
        "(equal '(unreviewed unreviewed) (mapcar #'gemini-companion-edit-status"
        " (last (gemini-companion-edits) 2)))"
    )

    # Another hook fixes the file at the same time.
    result_of(cli, write_file(file, GOOD), write_file(file, FIXED))
    assert "hook_context" not in cli.model.last_message()
    assert file.read_text() == GOOD
    result_of(cli, write_file(file, BAD))

    # Esc during a question, then the next prompt.
    log = world.home / ".emacs.d" / "gemini-companion" / "server.log"
    question_count = log.read_text().count("question: ")
    until = f"until [ -e '{world.scratch.root}/free' ]; do sleep 0.05; done"
    busy = f'(call-process "sh" nil nil nil "-c" {lisp(until)})'
    emacs.eval(f"(run-at-time 0 nil (lambda () {busy}))")
    cli.model.script(question, say("never reached"))
    cli.prompt()
    eventually(
        lambda: log.read_text().count("question: ") > question_count, "it is asked"
    )
    cli.interrupt("Escape", "esc to cancel")
    cli.wait_for("cancelled")
    world.scratch.root.joinpath("free").touch()
    # A busy machine may not have checked it in time.
    answered = "error: invalid syntax"
    eventually(lambda: answered in result_of(cli, question), "the error is listed")

    emacs = finds_emacs_only_while_it_is_there(world, emacs, cli)

    # The same command unlinks the CLIs: those that run have no tools of Emacs then.
    unlink(world, emacs)
    loses_tools(world, cli)
    result_of(cli, write_file(file, GOOD))
    result = cli.model.requests[-1]["contents"][-1]["parts"][0]["functionResponse"]
    assert "error" not in result["response"]
    assert "failed for event" not in cli.screen()
    changes_trust(emacs, cli, "gemini")


def finds_emacs_only_while_it_is_there(
    world: World, emacs: Emacs, cli: Gemini
) -> Emacs:
    """End ``emacs``, which ``cli`` uses, and start another one, which is returned."""
    emacs.quit()
    loses_tools(world, cli)

    # A CLI that starts without Emacs says nothing, and with one the tools appear.
    late = world.gemini("late", connects=False)
    late.wait_for("Type your message")
    late.is_free()
    assert "MCP issues" not in late.screen()
    emacs = world.emacs(world.project / "a.py", extra=FLYMAKE)
    link(world, emacs)
    for name in ("late", "gemini"):
        tools_change(world, True, name)
    emacs.holds(CHECKED)
    question, answer = call(TOOL, file="a.py"), "error: invalid syntax"
    eventually(lambda: answer in result_of(late, question), "the error is listed")
    world.tmux.call("kill-session", "-t", "=late")
    return emacs


def a_stranger_has_no_tools(world: World) -> None:
    """In a directory that is not trusted there are neither tools nor hooks."""
    trust(world, "gemini", "DO_NOT_TRUST")
    stranger = world.gemini("stranger", connects=False)
    stranger.wait_for("Type your message")
    stranger.is_free()
    assert TOOL not in json.dumps(stranger.model.requests[-1].get("tools"))
    world.tmux.call("kill-session", "-t", "=stranger")
    trust(world, "gemini", "TRUST_FOLDER")


VIEW = """
(list (mapcar #'buffer-name (buffer-list))
      (mapcar (lambda (window) (list (buffer-name (window-buffer window))
                                     (window-start window)))
              (window-list))
      (buffer-name (window-buffer))
      (with-current-buffer "a.py" (list (point) (mark t) (buffer-modified-p)))
      (with-current-buffer "*Messages*" (buffer-string)))
"""
FILES = ("a.py", ".env", "none.py", "/etc/passwd", "..", "")
SYMBOLS = ("one", "return", "SECRET", ".*", "car")
QUESTIONS: list[tuple[str, dict[str, str]]] = [
    ("diagnostics", {}),
    ("diagnostics", {"file": "a.py"}),
    *(
        (name, {"file": file, "symbol": symbol})
        for name, file, symbol in product(("references", "definition"), FILES, SYMBOLS)
    ),
]


@pytest.mark.shared("no-cli")
def test_questions_change_nothing_while_keys_are_typed(world: World) -> None:
    world.file(".env", "SECRET=bytes of it\n")
    emacs = world.emacs(world.file("a.py", GOOD), extra=FLYMAKE)
    emacs.eval("(progn (require 'gemini-companion-tools)"
               # The files in it are written at the start, as after an update.
               " (make-directory (gemini-companion-install-extension-directory) t)"
               " (gemini-companion-part-ready 'tools 'started))")  # fmt: skip
    emacs.eval('(progn (switch-to-buffer "typed") (delete-other-windows))')
    emacs.holds(CHECKED)
    (discovery,) = map(json.loads, map(Path.read_text, world.scratch.discovery_files()))
    asker = FakeCli(discovery["port"], discovery["authToken"])
    before = emacs.value(VIEW)

    def ask(question: tuple[str, dict[str, str]]) -> str:
        request = {"directory": str(world.project), "method": "call"}
        request |= zip(("name", "arguments"), question, strict=True)
        status, _, answer = asker.request("POST", json.dumps(request), path="/tools")
        assert status == 200, answer
        return answer.decode()

    typed = ""
    with ThreadPoolExecutor(4) as pool:
        answers = pool.map(ask, QUESTIONS * 8)
        while len(typed) < 400:
            emacs.terminal.text("abcdefgh")
            typed += "abcdefgh"
            assert emacs.eval("t") == "t"
        texts = list(answers)

    emacs.holds(f"(equal {lisp(typed)} (buffer-string))")
    emacs.becomes(VIEW, before)
    assert "bytes of it" not in "".join(texts)
    assert sum("no errors" in text for text in texts) > 8
    emacs.command("gemini-companion-events-buffer")
    emacs.holds('(string-search "<- ask" (buffer-string))')
    emacs.holds('(not (string-search "SECRET" (buffer-string)))')
