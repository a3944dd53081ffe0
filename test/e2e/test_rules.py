# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules of the user for edits that the real CLIs do not ask about by themselves."""

import os
import signal
from pathlib import Path

import pytest
from harness import gemini
from harness.emacs import Emacs, Reviews, lisp
from harness.gemini import Gemini
from harness.model import Part, read_file, replace, say, write_file
from harness.needs import needs_qwen
from harness.wait import eventually
from harness.world import World
from test_tools import link, linked_qwen, mcp_servers
from test_turn_page import asks_again

# What the prompt begins with in the mode yolo.
YOLO = "[*]"
RULES = "(setq gemini-companion-review-rules '({}))"
LABELED = """
(equal '("asks in its terminal, by your rule *.el")
       (mapcar #'gemini-companion-request-label (gemini-companion-requests)))
"""


def linked(world: World, mode: str, rules: str) -> tuple[Emacs, Reviews, Gemini]:
    """Return an Emacs with ``rules``, and a linked Gemini CLI in the ``mode``.

    Its settings name no mode yolo, which a key begins, and ends.  In a shared world,
    they are those of the previous test, whose mode was yolo or the default.  The CLI
    has a server of tools.
    """
    emacs = world.emacs(world.file("a.txt", "a\n"))
    link(world, emacs)
    begin = "auto_edit" if mode == "auto_edit" else "default"
    general = {"enableAutoUpdate": False, "defaultApprovalMode": begin}
    gemini.configure(world.scratch, general=general, mcpServers=mcp_servers(world))
    emacs.eval(RULES.format(rules))
    cli = world.cli(world.gemini)
    if mode == "yolo" and cli.mark != YOLO:
        begin_yolo(cli)
    elif mode != "yolo" and cli.mark == YOLO:
        end_yolo(cli)
    return emacs, Reviews(emacs), cli


def begin_yolo(cli: Gemini) -> None:
    cli.terminal.keys("C-y")
    cli.terminal.wait_for("YOLO")
    cli.mark = YOLO


def end_yolo(cli: Gemini) -> None:
    """Let ``cli`` ask again, as by default."""
    cli.terminal.keys("C-y")
    cli.terminal.wait_until_gone("YOLO")
    cli.mark = Gemini.mark


# What a project may set in its file .env; the CLI gives it to its hooks.
HOSTILE = """
GC_TIMEOUT_FACTOR=x
PYTHONPATH={0}
PYTHONHOME={0}
PYTHONSTARTUP={0}/json.py
PYTHONWARNINGS=error
PYTHONINSPECT=1
XDG_RUNTIME_DIR={0}
QWEN_HOME={0}
TMP={0}
LC_ALL=x
"""


@pytest.mark.contract("Gemini CLI: reviews by rule")
def test_a_rule_asks_in_each_mode_of_gemini_cli_whatever_the_project_sets(
    world: World,
) -> None:
    world.file("json.py", "raise SystemExit(0)\n")
    world.file(".env", HOSTILE.format(world.project))
    emacs, reviews, cli = linked(world, "auto_edit", '("*.el" . always)')
    file, other = world.file("b.el", "one\ntwo\n"), world.project / "b.txt"
    for mode in ("auto_edit", "yolo"):
        if mode == "yolo":
            begin_yolo(cli)
        file.write_text("one\ntwo\n")
        cli.model.script(
            write_file(other, mode), replace(file, "two", "TWO"), say(f"did {mode}")
        )
        cli.prompt()
        reviews.shown("b.el")
        assert (other.read_text(), file.read_text()) == (mode, "one\ntwo\n")
        rule = "(gemini-companion-edit-rule (car (gemini-companion-edits-open)))"
        emacs.holds(f'(equal "by your rule *.el" {rule})')
        reviews.edit("TWO", "mine")
        reviews.accept()
        cli.wait_for(f"did {mode}")
        assert file.read_text() == "one\nmine\n"
        cli.is_free()

    new = world.project / "new.el"
    cli.model.script(write_file(new, "new\n"), say("did a new file"))
    cli.prompt()
    reviews.shown("new.el")
    assert not new.exists()
    reviews.accept()
    cli.wait_for("did a new file")

    # A rule that fails asks.
    emacs.eval(RULES.format('((lambda (&rest _) (error "Boom")) . never)'))
    cli.model.script(write_file(other, "other"), say("did with an error"))
    cli.prompt()
    reviews.shown("b.txt")
    assert other.read_text() == "yolo"
    reviews.accept()
    cli.wait_for("did with an error")

    # Without rules, its mode decides.
    emacs.eval(RULES.format(""))
    cli.is_free(write_file(other, "without rules"))
    assert other.read_text() == "without rules"
    emacs.eval(RULES.format('("*.el" . always)'))
    its_mode_decides_once_emacs_cannot(world, emacs, reviews, cli)


@pytest.mark.shared("yolo")
def test_a_rule_accepts_or_reviews_what_gemini_cli_asks_about(world: World) -> None:
    rules = '("docs/**" . never) ("*.el" . always)'
    emacs, reviews, cli = linked(world, "default", rules)
    (world.project / "docs").mkdir()
    text, lisp = world.file("docs/a.md", "one\n"), world.file("b.el", "one\n")
    cli.is_free(replace(text, "one", "two"))
    assert text.read_text() == "two\n"
    emacs.holds(
        "(memq 'automatic"
        " (mapcar #'gemini-companion-edit-answer (gemini-companion-edits)))"
    )
    emacs.command("gemini-companion-auto-accept", "without review?")
    cli.model.script(replace(lisp, "one", "two"), say("did"))
    cli.prompt()
    reviews.shown("b.el")
    reviews.accept()
    # It has asked once.
    cli.wait_for("did")
    assert lisp.read_text() == "two\n"
    asks_again(emacs)


@pytest.mark.shared("yolo")
def test_a_cli_asks_if_its_hook_fails_and_emacs_says_why(world: World) -> None:
    emacs, reviews, cli = linked(world, "yolo", '("*.el" . always)')
    file = world.file("b.el", "one\n")
    directory = emacs.value("(gemini-companion-install-extension-directory)")
    bridge = Path(str(directory), "bridge.py")
    whole = bridge.read_text()
    bridge.write_text("raise ValueError('Boom')\n")
    cli.model.script(write_file(file, "two\n"), say("did"))
    cli.prompt()
    reviews.shown("b.el")
    assert file.read_text() == "one\n"
    reviews.accept()
    cli.wait_for("did")
    assert file.read_text() == "two\n"
    emacs.holds(
        '(with-current-buffer "*Warnings*"'
        ' (string-search "status 1: ValueError: Boom" (buffer-string)))'
    )
    bridge.write_text(whole)


def its_mode_decides_once_emacs_cannot(
    world: World, emacs: Emacs, reviews: Reviews, cli: Gemini
) -> None:
    """Let ``cli``, in the mode yolo, edit while Emacs has no rules for it or hangs."""
    file = world.file("b.el", "one\n")
    directory = emacs.value("(gemini-companion-install-extension-directory)")
    extension = Path(str(directory))
    files = f"(directory-files {lisp(extension)} nil {lisp('^rules-')})"

    # The rule holds while sharing is paused.
    emacs.eval("(gemini-companion-pause)")
    cli.model.script(replace(file, "one", "two"), say("did while paused"))
    cli.prompt()
    reviews.shown("b.el")
    assert file.read_text() == "one\n"
    reviews.accept()
    cli.wait_for("did while paused")
    assert file.read_text() == "two\n"
    emacs.eval("(gemini-companion-pause)")

    # The extension is gone.
    gone = extension.with_name("gone")
    extension.rename(gone)
    cli.is_free(replace(file, "two", "three"))
    assert file.read_text() == "three\n"
    gone.rename(extension)

    # Its file of rules is gone with the mode, and comes again with that.
    emacs.eval("(gemini-companion-mode -1)")
    emacs.becomes(files, None)
    cli.is_free(replace(file, "three", "four"))
    assert file.read_text() == "four\n"
    emacs.eval("(gemini-companion-mode 1)")
    emacs.holds(files)

    # Emacs exits.
    emacs.eval("(progn (run-at-time 0.1 nil #'kill-emacs) nil)")
    emacs.wait_until_exited()
    assert not list(extension.glob("rules-*"))
    cli.is_free(replace(file, "four", "five"))
    assert file.read_text() == "five\n"

    # The next one has them again, and hangs.
    emacs = world.emacs(file, name="again")
    emacs.eval(RULES.format('("*.el" . always)'))
    emacs.holds(files)
    cli.enable()
    asks_while_emacs_hangs_and_not_after_its_crash(world, emacs, cli)


def asks_while_emacs_hangs_and_not_after_its_crash(
    world: World, emacs: Emacs, cli: Gemini
) -> None:
    file = world.file("b.txt", "one\n")
    assert file.read_text() == "one\n"

    def asks(text: str, answer: str) -> None:
        before = file.read_text()
        cli.model.script(write_file(file, text), say(answer))
        cli.prompt()
        cli.terminal.wait_for(cli.question)
        assert file.read_text() == before
        cli.answer("once")
        cli.wait_for(answer)

    with emacs.busy():
        asks("two\n", "did while it hung")
        os.kill(emacs.pid, signal.SIGKILL)
    emacs.wait_until_exited()
    assert file.read_text() == "two\n"
    # Until the server has noticed it, hooks still ask.
    eventually(lambda: not world.scratch.servers(), "the server is gone")
    # The CLI is as if it were not linked.
    cli.is_free(write_file(file, "three\n"))
    assert file.read_text() == "three\n"


@needs_qwen
@pytest.mark.shared("linked-qwen")
@pytest.mark.contract("Qwen Code: reviews by rule")
def test_a_rule_asks_in_the_terminal_of_qwen_code(world: World) -> None:
    emacs, reviews, cli = linked_qwen(world, world.file("a.txt", "a\n"))
    emacs.eval(RULES.format('("*.el" . always)'))
    file, other = world.file("b.el", "one\n"), world.file("b.txt", "one\n")

    def begin(mode: str, *turns: Part) -> None:
        if mode != "default":
            cli.begin(mode)
        last = write_file(file, f"{mode}\n"), say(f"did {mode}")
        cli.model.script(read_file(file), *turns, *last)
        cli.prompt()

    # It asks once, and Emacs reviews the edit.
    begin("default")
    reviews.shown("b.el")
    reviews.accept()
    cli.wait_for("did default")
    assert file.read_text() == "default\n"
    cli.reset()

    for mode in ("auto-edit", "yolo"):
        before = file.read_text()
        begin(mode, read_file(other), write_file(other, mode))
        cli.number("once")
        assert (other.read_text(), file.read_text()) == (mode, before)
        emacs.holds(LABELED)
        assert emacs.value("(gemini-companion-edits-open)") is None
        cli.answer("once")
        cli.wait_for(f"did {mode}")
        assert file.read_text() == f"{mode}\n"
        cli.reset()
