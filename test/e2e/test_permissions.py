# SPDX-License-Identifier: GPL-3.0-or-later
"""What linked CLIs ask before they run a command, shown and answered in Emacs."""

import json
import signal
from pathlib import Path

import pytest
from harness import copilot, gemini
from harness.copilot import Copilot
from harness.emacs import STATE, Emacs, Reviews, lisp
from harness.gemini import Gemini
from harness.model import Part, call, read_file, say, together
from harness.needs import needs_qwen
from harness.qwen import Qwen, stays_connected
from harness.world import World
from test_restart import has_followed
from test_tools import LINKED, link, linked_qwen, mcp_servers

OPEN = "(seq-filter #'gemini-companion-permission-p (gemini-companion-requests))"
FIRST = f"(car {OPEN})"
BUFFER = f"(gemini-companion-request-buffer {FIRST})"
REQUEST = "(car (gemini-companion-requests))"
LABEL = f"(substring-no-properties (gemini-companion-request-label {REQUEST}))"
DIALOG = "Allow execution of"


def shell(command: str) -> Part:
    return call(
        "run_shell_command", command=command, description="Do it", is_background=False
    )


def pair(world: World, text: str = "a\n") -> tuple[Emacs, Qwen]:
    """Return an Emacs that visits a.txt, and a Qwen Code whose questions it answers.

    In a shared world, they are those of the previous test.
    """
    world.home.joinpath(".qwen").mkdir(exist_ok=True)
    emacs = world.emacs(world.file("a.txt", text))
    link_qwen(world, emacs)
    cli = world.cli(world.qwen)
    assert isinstance(cli, Qwen)
    stays_connected(emacs, cli)
    return emacs, cli


def link_qwen(world: World, emacs: Emacs) -> None:
    """Link Qwen Code, whose questions ``emacs`` answers."""
    # Linking Gemini CLI, too, would take four seconds of a processor.
    programs = f"""'(("gemini" . "not-there") ("qwen" . {lisp(world.tools.qwen)}))"""
    emacs.eval(f"(setq gemini-companion-run-commands {programs})")
    if emacs.value(LINKED.format('"qwen"')):
        return
    question = "answers in Emacs what Qwen Code asks"
    emacs.command("gemini-companion-tools", question, key="a")
    emacs.keys("l", "l", "Enter")
    emacs.says("Linked Qwen Code")


def asks(cli: Qwen, emacs: Emacs, *turns: Part) -> None:
    """Send a prompt, and wait until Emacs shows the first question of ``turns``."""
    cli.model.script(*turns)
    cli.prompt()
    emacs.holds(f"(and {FIRST} {BUFFER} (get-buffer-window {BUFFER}))", "it is shown")


def go_there(emacs: Emacs) -> None:
    """Select the oldest request; its keys answer when it has been displayed."""
    emacs.command("gemini-companion-review")
    emacs.holds(f"(eq (window-buffer) {BUFFER})")
    emacs.holds("(eql (window-use-time) gemini-companion-permission--drawn)")


@needs_qwen
@pytest.mark.shared("answered-qwen")
def test_the_user_answers_in_emacs_what_qwen_asks(world: World) -> None:
    emacs, cli = pair(world)
    out = world.project / "out.txt"
    text = "done 'ä' 日本"
    asks(cli, emacs, shell(f'echo "{text}" >> out.txt; sleep 0'), say("first done"))
    assert emacs.value("(buffer-name (window-buffer))") == "a.txt"
    emacs.holds(f"(eq 'waiting {STATE})")
    assert DIALOG not in cli.screen()

    # Typed before it is displayed in the selected window.
    emacs.burst("C-x", "o", *8 * ("C-c", "C-c"))
    emacs.holds(f"(eq (window-buffer) {BUFFER})")
    emacs.burst(*8 * ("C-c", "C-c"), macro=True)
    emacs.keys("a")
    assert not out.exists()
    emacs.holds(f"(null (gemini-companion-permission-outcome {FIRST}))")

    go_there(emacs)
    emacs.keys("C-c", "C-c")
    emacs.says("Allowed once")
    cli.wait_for("first done")
    assert out.read_text() == text + "\n"
    emacs.holds(f"(null {OPEN})")

    # A reason reaches the model.
    asks(cli, emacs, shell("echo two >> out.txt; sleep 0"), say("second done"))
    go_there(emacs)
    emacs.keys("R")
    emacs.wait_for("Reason for the model")
    emacs.text("Not so: use 'make'")
    emacs.keys("Enter")
    cli.wait_for("second done")
    assert "Not so: use 'make'" in cli.model.last_message()
    assert "two" not in out.read_text()

    # Back to the terminal.
    asks(cli, emacs, shell("echo three >> out.txt; sleep 0"), say("third done"))
    go_there(emacs)
    emacs.keys("Enter")
    cli.wait_for(DIALOG)
    emacs.holds(f"(null {OPEN})")
    emacs.holds(f'(string-search "echo three" {LABEL})')
    cli.answer("once")
    cli.wait_for("third done")
    assert out.read_text().endswith("three\n")
    emacs.holds(f"(null {OPEN})")

    # Escape in the terminal.
    asks(cli, emacs, shell("echo four >> out.txt; sleep 0"), say("never"))
    cli.interrupt("Escape", "esc to cancel")
    emacs.holds(f"(null {OPEN})")

    # The server is killed; so is the question of its hook.
    asks(cli, emacs, shell("echo five >> out.txt; sleep 0"), say("fifth done"))
    (server,) = world.scratch.servers()
    server.send_signal(signal.SIGKILL)
    cli.wait_for(DIALOG)
    cli.answer("No")
    assert "four" not in out.read_text()
    assert "five" not in out.read_text()
    # The next server deletes what the killed one has left behind.
    has_followed(server, emacs, world.scratch)


SED = "one\ntwo\n"


@needs_qwen
@pytest.mark.shared("answered-qwen")
@pytest.mark.contract("Qwen Code: sed of one file is an edit")
def test_sed_of_one_file_is_one_review(world: World) -> None:
    sed_is_one_review(world, *pair(world, SED))


@needs_qwen
@pytest.mark.shared("linked-qwen")
@pytest.mark.contract("Qwen Code: sed of one file is an edit")
def test_sed_of_one_file_is_one_review_if_emacs_answers_nothing(world: World) -> None:
    emacs, _, cli = linked_qwen(world, world.file("a.txt", SED))
    sed_is_one_review(world, emacs, cli)


def sed_is_one_review(world: World, emacs: Emacs, cli: Qwen) -> None:
    """Let ``cli`` change a.txt, which holds ``SED``, by the command sed."""
    file = world.project / "a.txt"
    reviews = Reviews(emacs)
    command = shell("sed -i s/two/zwei/ a.txt")
    reviews.proposed(cli, file, read_file(file), command, say("sed done"))
    cli.wait_for("Apply this change?")
    kinds = "(mapcar #'gemini-companion-request-kind (gemini-companion-requests))"
    emacs.becomes(kinds, ["edit"])
    reviews.accept()
    cli.finished("sed done", file, "one\nzwei\n")
    emacs.becomes(f"(list (length (gemini-companion-edits)) {kinds})", [1, None])


def link_copilot(world: World, emacs: Emacs) -> None:
    """Link Copilot CLI, which has been configured, by a file of hooks."""
    emacs.eval(
        "(setq gemini-companion-run-commands"
        f' \'(("copilot" . {lisp(world.tools.copilot)})))'
    )
    emacs.command("gemini-companion-tools", "a linked CLI")
    emacs.keys("e", "s", "Enter")
    emacs.says("Linked Copilot CLI")


def linked_copilot(world: World, *files: Path) -> tuple[Emacs, Copilot]:
    """Return an Emacs that visits ``files``, or a.txt, and a linked Copilot CLI.

    It has a server of tools.  In a shared world, they are those of the previous test.
    """
    emacs = world.emacs(*files or [world.file("a.txt", "a\n")])
    copilot.configure(world.scratch)
    servers = mcp_servers(world, type="local", tools=["*"])
    file = world.scratch.home / ".copilot" / "mcp-config.json"
    file.write_text(json.dumps({"mcpServers": servers}))
    if not emacs.value(LINKED.format('"copilot"')):
        link_copilot(world, emacs)
    cli = world.cli(world.copilot)
    assert isinstance(cli, Copilot)
    cli.server_count = 2
    emacs.becomes("(length (gemini-companion-sessions))", 1)
    return emacs, cli


def what_copilot_asks_is_shown_and_answered_there(
    world: World, emacs: Emacs, cli: Copilot
) -> None:
    """Let ``cli``, which is linked and in Emacs, ask; unlink it without a trace."""
    terminal = f"(progn (pop-to-buffer {lisp(cli.terminal.name)}) nil)"
    emacs.eval(terminal)
    out = world.project / "out.txt"
    command = "echo one >> out.txt; sleep 0"
    cli.model.script(call("bash", command=command, description="Do it"), say("done"))
    cli.prompt()
    cli.wait_for(cli.question)
    emacs.holds(f"(string-search {lisp(command)} {LABEL})")
    emacs.eval('(progn (pop-to-buffer "a.txt") nil)')
    emacs.command("gemini-companion-review")
    emacs.holds(f"(equal {lisp(cli.terminal.name)} (buffer-name (window-buffer)))")
    assert not out.exists()
    cli.answer("Yes")
    cli.wait_for("done")
    assert out.read_text() == "one\n"

    # An edit is asked in the terminal as well as by a review.
    cli.model.script(copilot.create(world.project / "b.txt", "two\n"), say("written"))
    cli.prompt()
    emacs.becomes("(length (gemini-companion-edits-open))", 1)
    # The question about the command has ended.
    emacs.holds("(null (cdr (gemini-companion-requests)))", "only the review is shown")
    emacs.eval(
        "(progn (gemini-companion-edit-accept (car (gemini-companion-edits-open))) nil)"
    )
    cli.wait_for("written")
    emacs.holds(f"(null {REQUEST})", "the question has ended")

    emacs.command("gemini-companion-tools", "delete it and its links?")
    emacs.says("Deleted the extension and its links")
    assert not (world.home / ".copilot" / "hooks").exists()


def linked_in_term(world: World) -> tuple[Emacs, Gemini]:
    """Return an Emacs that visits a.txt, and a linked Gemini CLI that it has started.

    As the manual has it, the editor of the CLI is that Emacs.  In a shared world, they
    are those of the previous test.
    """
    file = world.file("a.txt", "a\n")
    editor = f"{world.tools.emacsclient} -s emacs"
    link(world, world.emacs(file, extra=f'(setenv "EDITOR" {lisp(editor)})'))
    emacs, cli = world.run_pair(file, spins=False)
    emacs.becomes("(length (gemini-companion-sessions))", 1)
    return emacs, cli


@pytest.mark.shared("linked-term")
@pytest.mark.contract("Gemini CLI: permissions shown")
def test_what_gemini_asks_is_a_row_that_leads_to_its_terminal(world: World) -> None:
    emacs, cli = linked_in_term(world)
    out = world.project / "out.txt"

    one, two = "echo one >> out.txt; sleep 0", "echo two >> out.txt; sleep 0"
    cli.model.script(together(shell(one), shell(two)), say("both done"))
    cli.prompt()
    cli.wait_for(DIALOG)
    emacs.holds(f'(string-match-p "; sleep 0  .1 more" {LABEL})')
    emacs.becomes("(length (gemini-companion-requests-certain))", 1)
    text = f"(with-temp-buffer (gemini-companion-request-insert {REQUEST})"
    for command in (one, two):
        emacs.holds(f"{text} (string-search {lisp(command)} (buffer-string)))")
    emacs.eval('(progn (switch-to-buffer "a.txt") nil)')
    emacs.command("gemini-companion-review")
    emacs.holds('(equal "*gemini: project*" (buffer-name (window-buffer)))')
    assert not out.exists()
    emacs.keys("1")
    cli.wait_for("2 of 2")
    gemini.type_until(
        lambda: emacs.keys("1"),
        lambda: not cli.model.is_to_say("both done"),
        "both done",
    )
    assert sorted(out.read_text().split()) == ["one", "two"]
    emacs.holds(f"(null {REQUEST})", "both have ended with their turn")

    # Refused: only its title shows that.
    cli.model.script(shell(one), say("never"))
    cli.prompt()
    cli.wait_for(DIALOG)
    emacs.holds(f"(string-search {lisp(one)} {LABEL})")
    cli.interrupt("Escape", DIALOG)
    emacs.holds(f"(null {REQUEST})")
