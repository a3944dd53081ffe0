# SPDX-License-Identifier: GPL-3.0-or-later
import json
import os
import re
import shutil
import signal
from collections.abc import Callable

import pytest
from harness import pi
from harness.emacs import SESSION as FIRST
from harness.emacs import STATE, Emacs, Reviews, lisp
from harness.gemini import Gemini
from harness.model import call, say, together, write_file
from harness.needs import needs_pi
from harness.pi import Pi, replace, write
from harness.wait import eventually
from harness.world import World
from test_tools import BAD, CHECKED, FLYMAKE, GOOD, link_pi
from test_turn_page import asks_again

pytestmark = needs_pi

SESSION = """
(mapcar (lambda (session)
          (format "%s in %s" (gemini-companion-session-client session)
                  (directory-file-name
                   (or (gemini-companion-session-directory session) "/"))))
        (gemini-companion-sessions))
"""


@pytest.mark.contract("Pi: discovery")
@pytest.mark.shared("pi")
def test_pi_has_reviews_of_what_it_writes(world: World) -> None:
    file, other = world.file("a.txt", "one\n"), world.file("b.txt", "1\n")
    emacs, reviews, cli = world.pi_pair(other, file)
    emacs.becomes(SESSION, [f"pi in {world.project}"])

    world.row = "Pi: context"
    reviews.proposed(cli, file, replace(file, "one", "uno"), say("yes done"))
    sent = json.dumps(cli.model.requests[0]["messages"])
    assert "Active file: a.txt, line 1" in sent
    assert "Other open files: b.txt" in sent
    world.row = "Pi: accept"
    cli.is_reviewing("a.txt")
    reviews.accept()
    cli.wait_for("yes done")
    assert file.read_text() == "uno\n"

    world.row = "Pi: accept with edits"
    crlf = world.file("crlf.txt", "\ufeffone\r\ntwo\r\n")
    reviews.proposed(cli, crlf, replace(crlf, "two", "zwei"), say("edits done"))
    reviews.edit("zwei", "deux\ntrois")
    reviews.accept()
    cli.wait_for("edits done")
    assert crlf.read_bytes() == "\ufeffone\r\ndeux\r\ntrois\r\n".encode()
    assert "The user changed this edit" in cli.results()[-1]

    mixed = world.file("mixed.txt", "a\r\nb\nc\r\nd\n")
    reviews.proposed(cli, mixed, replace(mixed, "d", "D"), say("ends done"))
    reviews.edit("b", "B\nB2")
    reviews.accept()
    cli.wait_for("ends done")
    assert mixed.read_bytes() == b"a\r\nB\nB2\nc\r\nD\n"

    long = "".join(f"line {n}\n" for n in range(4000))
    reviews.proposed(cli, mixed, write(mixed, long), say("long done"))
    reviews.edit("line 7\n", "x" * 200000 + "\n")
    reviews.accept()
    cli.wait_for("long done")
    assert len(cli.results()[-1]) < 10000
    assert "(200001 characters)" in cli.results()[-1]

    world.row = "Pi: reject"
    new = world.project / "new" / "c.txt"
    reviews.proposed(cli, new, write(new, "x\n"), say("no done"))
    emacs.eval(
        "(gemini-companion-edit-reject-with-reason"
        ' (car (gemini-companion-edits-open)) "in French")'
    )
    cli.wait_for("no done")
    assert "The reason: in French" in cli.results()[-1]
    assert not new.parent.exists()

    world.row = "Pi: several edits"
    both = together(
        replace(file, "uno", "due"),
        replace(file, "due", "tre"),
        write(new, "n\n"),
    )
    cli.model.script(both, say("both done"))
    cli.ask()
    reviews.wait_until(2)
    for _ in range(3):
        eventually(reviews.paths, "a review is open")
        reviews.accept()
    cli.wait_for("both done")
    assert (file.read_text(), new.read_text()) == ("tre\n", "n\n")
    is_kept_over_restarts(world, emacs, reviews, cli)


def is_kept_over_restarts(
    world: World, emacs: Emacs, reviews: Reviews, cli: Pi
) -> None:
    world.row = "Pi: restart and end of the server"
    ends: dict[str, Callable[[], object]] = {
        "r.txt": lambda: emacs.eval("(gemini-companion-restart)"),
        "k.txt": lambda: world.scratch.servers()[0].kill(),
    }
    for name, end in ends.items():
        file = world.file(name, "one\n")
        reviews.proposed(cli, file, replace(file, "one", "uno"), say(f"{name} done"))
        reviews.edit("uno", "mine")
        end()
        emacs.becomes(SESSION, [f"pi in {world.project}"])
        reviews.wait_until(1)
        assert reviews.proposal() == "mine\n"
        reviews.accept()
        cli.wait_for(f"{name} done")
        assert file.read_text() == "mine\n"

    world.row = "Pi: mode off and on"
    file = world.file("m.txt", "one\n")
    reviews.proposed(cli, file, replace(file, "one", "uno"), say("mode done"))
    emacs.eval("(gemini-companion-mode -1)")
    cli.wait_for("Waiting for Emacs")
    emacs.eval(f"(progn (gemini-companion-mode 1) (find-file {lisp(file)}) nil)")
    reviews.shown("m.txt")
    assert file.read_text() == "one\n"
    reviews.accept()
    cli.wait_for("mode done")
    assert file.read_text() == "uno\n"


@pytest.mark.contract("Pi: /emacs")
@pytest.mark.shared("pi")
def test_pi_answers_in_its_terminal_only_by_the_command(world: World) -> None:
    file = world.file("a.txt", "one\n")
    _, reviews, cli = world.pi_pair(file)
    reviews.proposed(cli, file, replace(file, "one", "uno"), say("typed done"))
    cli.is_reviewing("a.txt")
    # Keys that were typed ahead do not answer.
    cli.terminal.keys("Enter", "y", "Enter")
    reviews.edit("uno", "mine")
    cli.terminal.text("/emacs")
    cli.terminal.keys("Enter")
    cli.wait_for("Write a.txt?")
    assert file.read_text() == "one\n"
    cli.terminal.keys("Down", "Enter")
    reviews.wait_until(0)
    cli.wait_for("typed done")
    assert file.read_text() == "mine\n"

    cli.model.script(replace(file, "mine", "due"), say("not done"))
    cli.ask()
    reviews.shown("a.txt")
    cli.terminal.keys("Escape")
    reviews.wait_until(0)
    assert file.read_text() == "mine\n"


@pytest.mark.contract("Pi: without Emacs")
def test_pi_without_emacs_is_as_without_the_extension(world: World) -> None:
    plain = conversation(world, world.pi("plain", connects=False, is_extended=False))
    cli = world.pi(connects=False)
    cli.terminal.wait_for_match("(?m)^no Emacs *$")
    assert conversation(world, cli) == plain


def conversation(world: World, cli: Pi) -> tuple[str, list[bytes]]:
    """Let ``cli`` edit and write files; return its requests, and what was written."""
    crlf, new = world.file("a.txt", "\ufeffone\r\ntwo\r\n"), world.project / "d" / "b"
    cli.model.script(
        together(replace(crlf, "two", "zwei"), replace(crlf, "none", "x")),
        write(new, "new"),
        replace(new, "new", "newer"),
        say("all done"),
    )
    cli.prompt()
    cli.wait_for("all done")
    written = [crlf.read_bytes(), new.read_bytes()]
    new.unlink()
    new.parent.rmdir()
    cli.terminal.keys("C-d")
    text = json.dumps(cli.model.requests)
    # The calls of the model have names of no meaning.
    for number, name in enumerate(dict.fromkeys(re.findall("[0-9a-f]{32}", text))):
        text = text.replace(name, f"call-{number}")
    return text, written


def sessions(world: World, *clients: str) -> list[str]:
    return [f"{client} in {world.project}" for client in clients]


def killed(emacs: Emacs) -> None:
    os.kill(emacs.value("(emacs-pid)"), signal.SIGKILL)
    emacs.wait_until_exited()


@pytest.mark.contract("Pi: end of Emacs")
def test_a_review_of_pi_survives_the_end_of_emacs(world: World) -> None:
    file = world.file("a.txt", "one\n")
    emacs, reviews, cli = world.pi_pair(file)
    reviews.proposed(cli, file, replace(file, "one", "uno"), say("ends done"))
    ends = (killed, Emacs.quit)
    for number, end in enumerate(ends):
        end(emacs)
        cli.wait_for("Waiting for Emacs")
        emacs = world.emacs(file, name=f"emacs-{number}")
        reviews = Reviews(emacs)
        reviews.shown("a.txt")
        assert file.read_text() == "one\n"
    reviews.accept()
    cli.finished("ends done", file, "uno\n")

    world.row = "Pi: a server that hangs"
    reviews.proposed(cli, file, replace(file, "uno", "due"), say("hangs done"))
    (server,) = world.scratch.servers()
    server.suspend()
    try:
        cli.terminal.text("/emacs")
        cli.terminal.keys("Enter")
        cli.wait_for("Write a.txt?")
        cli.terminal.keys("Down", "Enter")
        # What Emacs has is not known.
        cli.wait_for("Emacs does not answer")
        assert file.read_text() == "uno\n"
        cli.terminal.keys("Down", "Enter")
        cli.finished("hangs done", file, "due\n")
    finally:
        server.resume()
    reviews.wait_until(0)


@pytest.mark.contract("Pi: new conversation and reload")
@pytest.mark.shared("pi")
def test_pi_has_one_session_after_new_and_reload(world: World) -> None:
    file = world.file("a.txt", "one\n")
    world.file("b.env", "secret\n")
    emacs, reviews, cli = world.pi_pair(world.project / "b.env", file)
    connected = "(mapcar #'gemini-companion-session-id (gemini-companion-sessions))"
    for command, answer in (("/new", "New session"), ("/reload", "Reloaded")):
        (old,) = emacs.value(connected)
        cli.command(command)
        cli.wait_for(answer)
        emacs.holds(f"(not (member {lisp(old)} {connected}))", "another session")
        emacs.becomes(SESSION, sessions(world, "pi"))
        cli.wait_until_connected()
        reviews.accepted(cli, file, write(file, f"{command}\n"))
        assert file.read_text() == f"{command}\n"
    sent = json.dumps(cli.model.requests[0]["messages"])
    assert "Active file: a.txt" in sent
    assert "b.env" not in sent

    world.row = "Pi: prompts"
    cli.model.script(say("asked done"))
    emacs.eval(
        "(progn (require 'gemini-companion-compose) (gemini-companion-compose-deliver"
        ' "prompt 8 please" (car (gemini-companion-sessions))) nil)'
    )
    cli.wait_for("asked done")
    emacs.says("Prompt sent to Pi")

    world.row = "Pi: auto-accept"
    emacs.command("gemini-companion-auto-accept", "without review?")
    cli.model.script(write(file, "auto\n"), say("auto done"))
    cli.prompt()
    cli.finished("auto done", file, "auto\n")
    assert reviews.paths() == []
    asks_again(emacs)


# A review does not end only because its session has no connection for some time.
PATIENT = """
(with-eval-after-load 'gemini-companion-server
  (advice-add 'gemini-companion-server--settings :filter-return
              (lambda (settings) `(:session_grace 3600 ,@settings))))
"""


@pytest.mark.contract("Pi: a review at the end of a conversation")
def test_a_review_ends_with_the_conversation_of_pi(world: World) -> None:
    file = world.file("a.txt", "one\n")
    reviews = Reviews(world.emacs(file, extra=PATIENT))
    cli = world.pi()
    for command in ("/new", "/fork"):
        reviews.accepted(cli, file, write(file, f"before {command}\n"))
        reviews.proposed(cli, file, write(file, "three\n"), say("not done"))
        cli.terminal.text(command)
        cli.terminal.keys("Enter")
        if command == "/fork":
            # The prompt before.
            cli.wait_for("Fork from")
            cli.terminal.keys("Enter")
        reviews.wait_until(0)
        assert file.read_text() == f"before {command}\n"
        if command == "/new":
            cli.wait_for("New session started")
            cli.wait_until_connected()


@pytest.mark.contract("Pi: several CLIs")
@pytest.mark.shared("pi")
def test_two_pis_and_a_gemini_cli_have_reviews_at_once(world: World) -> None:
    names = ("a.txt", "b.txt", "c.txt")
    files = [world.file(name, "one\n") for name in names]
    emacs, reviews, first = world.pi_pair(*files)
    clis = [first, world.pi("pi-2"), world.gemini()]
    emacs.becomes(f"(sort {SESSION} #'string<)", sessions(world, "gemini", "pi", "pi"))
    turns = [write, write, write_file]
    for cli, file, turn in zip(clis, files, turns, strict=True):
        cli.model.script(turn(file, f"by {file.name}\n"), say(f"{file.name} done"))
        cli.ask()
    reviews.wait_until(3)
    for _ in range(3):
        reviews.accept()
    for cli, file in zip(clis, files, strict=True):
        cli.finished(f"{file.name} done", file, f"by {file.name}\n")
    for cli in clis[1:]:
        ends(world, emacs, cli)


def ends(world: World, emacs: Emacs, cli: Gemini) -> None:
    """End ``cli``; Emacs then has one session less."""
    count = emacs.value("(length (gemini-companion-sessions))")
    world.tmux.call("kill-session", "-t", f"={cli.terminal.name}")
    emacs.becomes("(length (gemini-companion-sessions))", count - 1)


@pytest.mark.contract("Pi: RPC mode")
@pytest.mark.shared("pi")
def test_pi_in_rpc_mode_has_reviews(world: World) -> None:
    file = world.file("a.txt", "one\n")
    emacs, reviews, _ = world.pi_pair(file)
    model = world.model()
    pi.configure(world.scratch)
    program = pi.script(world.tools, world.scratch, model, "rpc")
    emacs.expects("pi")
    with world.piped(str(program), "--mode", "rpc") as cli:
        emacs.becomes(SESSION, sessions(world, "pi", "pi"))
        model.script(write(file, "uno\n"), say("all done"))
        prompt = {"type": "prompt", "message": "prompt 1 please"}
        print(json.dumps(prompt), file=cli.stdin, flush=True)
        reviews.shown("a.txt")
        reviews.edit("uno", "mine")
        reviews.accept()
        assert cli.stdout
        assert any('"agent_settled"' in line for line in cli.stdout)
    assert file.read_text() == "mine\n"
    assert "The user changed this edit" in json.dumps(model.requests[-1]["messages"])
    emacs.becomes(SESSION, sessions(world, "pi"))


def test_pi_is_run_with_its_extension_and_sent_prompts(world: World) -> None:
    file = world.file("a.txt", "one\n")
    emacs = world.emacs(file)
    pi.configure(world.scratch, is_extended=False, compaction={"keepRecentTokens": 0})
    cli = world.run(emacs, "pi", "install it?")
    cli.wait_until_connected()
    emacs.becomes(SESSION, sessions(world, "pi"))
    state = "(gemini-companion-session-state (car (gemini-companion-sessions)))"
    emacs.becomes(f"(symbol-name {state})", "ready")
    # Pi reports by its own protocol as well, since the terminal has answered.
    process = '(get-buffer-process "*pi: project*")'
    records = f"(process-get {process} 'gemini-companion-program-status)"
    emacs.holds(f'(and (assoc "" {records}) (assoc "emacs" {records}))', "reports")
    # A prompt is sent by a message.
    cli.model.script(replace(file, "one", "uno"), say("run done"))
    session = "(lambda () (car (gemini-companion-sessions)))"
    submit = (
        f'(gemini-companion-prompt-submit "prompt 9 please" {session} 5 "Not sent")'
    )
    emacs.eval(f"(progn (require 'gemini-companion-prompt) {submit})")
    reviews = Reviews(emacs)
    reviews.shown("a.txt")
    emacs.becomes(f"(symbol-name {state})", "waiting")
    reviews.accept()
    cli.finished("run done", file, "uno\n")
    emacs.becomes(f"(symbol-name {state})", "ready")
    turn = "(gemini-companion-session-turn (car (gemini-companion-sessions)))"
    emacs.becomes(f"(gemini-companion-turn-prompt {turn})", "prompt 9 please")
    # A command is typed between its lines.
    emacs.eval(submit.replace("prompt 9 please", "/session"))
    cli.wait_for("Cache Warming")
    world.row = "Pi: summaries"
    emacs.eval(f"(progn (pop-to-buffer {lisp(cli.terminal.name)}) nil)")
    a_prompt_waits_while_it_summarizes(emacs, cli)


# An extension that writes files by itself, and one by a tool of others with a limit.
OTHER = """
import { writeFile } from "node:fs/promises";
const string = { type: "string" };
const parameters = { type: "object", properties: { path: string, text: string } };
const tool = (name, execute) => {
  return { name, label: name, description: name, parameters, execute };
};
const said = (text) => ({ content: [{ type: "text", text }], details: {} });
const write = async (_id, { path, text }) => {
  await writeFile(path, text);
  return said("written");
};
const script = async (_id, { path, text }, _signal, _update, ctx) => {
  const signal = AbortSignal.timeout(4000);
  const args = { path, content: text };
  const { isError } = await ctx.executeTool("write", args, { signal });
  return said(isError ? "refused" : "written");
};
export default (pi) => {
  pi.registerTool(tool("edit", write));
  pi.registerTool(tool("multiedit", write));
  pi.registerTool(tool("script", script));
};
"""


@pytest.mark.contract("Pi: beside another extension")
@pytest.mark.shared("pi")
@pytest.mark.parametrize("name", ["before", "other"])
def test_pi_starts_beside_an_extension_that_has_its_own_edit(
    world: World, name: str
) -> None:
    file = world.file("a.txt", "one\n")
    other = pi.home_of(world.scratch) / "extensions" / name / "index.js"
    other.parent.mkdir(parents=True)
    other.write_text(OTHER)
    emacs, reviews, _ = world.pi_pair(file)
    cli = world.pi(name)
    cli.wait_for("Emacs (no review of edit, multiedit)")
    for tool in ("edit", "multiedit"):
        turn = call(tool, path="a.txt", text=f"{tool}\n")
        cli.model.script(turn, say(f"{tool} done"))
        cli.prompt()
        cli.finished(f"{tool} done", file, f"{tool}\n")
        emacs.becomes(
            f"(with-current-buffer (get-file-buffer {lisp(file)}) (buffer-string))",
            f"{tool}\n",
        )
    reviews.accepted(cli, file, write(file, "reviewed\n"))
    assert file.read_text() == "reviewed\n"

    cli.model.script(call("script", path="a.txt", text="late\n"), say("script done"))
    cli.ask()
    reviews.shown("a.txt")
    reviews.wait_until(0)
    cli.wait_for("script done")
    assert "refused" in cli.results()[-1]
    assert file.read_text() == "reviewed\n"
    ends(world, emacs, cli)
    shutil.rmtree(other.parent)


def a_prompt_waits_while_it_summarizes(emacs: Emacs, cli: Pi) -> None:
    """Let ``cli`` summarize, and end that by itself, by Escape and with the CLI."""
    state = f"(symbol-name {STATE})"
    for number, end in enumerate(("compacted", "Escape", "killed")):
        cli.model.script(say(f"first {number} done"))
        cli.prompt()
        cli.wait_for(f"first {number} done")
        emacs.becomes(state, "ready")
        cli.model.answers.clear()
        cli.command("/compact")
        emacs.becomes(state, "working")
        cli.model.script(say(f"second {number} done"))
        sent = f"prompt 5{number} please"
        emacs.eval(
            "(progn (require 'gemini-companion-compose) (setq e2e-ended 'waits)"
            f" (gemini-companion-compose-deliver {lisp(sent)} {FIRST} nil"
            " (lambda (result) (setq e2e-ended result))))"
        )
        emacs.says("Sending prompt to Pi")
        emacs.becomes("(symbol-name e2e-ended)", "waits")
        if end == "killed":
            emacs.eval(f"(signal-process (gemini-companion-session-pid {FIRST}) 'kill)")
            emacs.becomes("(symbol-name e2e-ended)", "nil")
            emacs.becomes("(substring-no-properties (current-kill 0))", sent)
            cli.model.answers.set()
            return
        if end == "Escape":
            cli.terminal.keys("Escape")
        cli.model.answers.set()
        emacs.becomes("(symbol-name e2e-ended)", "sent")
        cli.wait_for(f"second {number} done")
        assert sent in cli.model.last_message()
        emacs.becomes(state, "ready")


@pytest.mark.contract("Pi: linked")
def test_a_linked_pi_has_new_errors_and_asks_emacs(world: World) -> None:
    file = world.file("a.py", GOOD)
    emacs = world.emacs(file, extra=FLYMAKE)
    cli = world.pi()
    reviews = Reviews(emacs)
    reviews.accepted(cli, file, write(file, GOOD + "\n"))
    assert "emacs_diagnostics" not in json.dumps(cli.model.requests)

    emacs.eval("(setq gemini-companion-errors-timeout 4.5)")
    link_pi(world, emacs)
    emacs.holds(CHECKED)
    reviews.accepted(cli, file, write(file, BAD), call("emacs_diagnostics"))
    written, answer = cli.results()[-2:]
    assert "Emacs sees 1 new error in a.py" in written
    assert "a.py: 1 errors" in answer

    emacs.command("gemini-companion-tools", "which then has no reviews?")
    emacs.says("Deleted the extension and its links")
    cli.is_free()
    assert "emacs_diagnostics" not in json.dumps(cli.model.requests[-1]["tools"])
