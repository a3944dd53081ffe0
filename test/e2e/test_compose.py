# SPDX-License-Identifier: GPL-3.0-or-later
"""Prompts that are written in Emacs reach the model, as nothing but text."""

import re
from random import Random

import pytest
from harness.emacs import SESSION, STATE, Emacs, Reviews, lisp
from harness.gemini import Gemini, type_until
from harness.model import call, say, write_file
from harness.world import World

SUBMIT = f'(gemini-companion-prompt-submit {{}} (lambda () {SESSION}) 180 "Lost")'

PIECES = [
    "\x1b[201~", "\x1b[200~", "\x1b]0;x\x07", "\x1b", "\x03", "\x04", "\x1a",
    "\r\n", "\n", "\t", "\x9b201~", "\x7f", "@", "/quit\n", "!ls\n", "?", "größe ",
    "大小", "😀", "'", '"', "\\", "$(ls)", "`ls`", "```\n", "word ",
]  # fmt: skip

ODD = "src/it's (odd), #1 größe & co..txt"
ROUTE = "app/(shop)/[id]/page.ts"

# How to go to what is at point in a kind of buffer, and what is sent of that.
KINDS = {
    f"""(find-file {lisp(ODD)})
        (set-mark 5) (goto-char 14) (activate-mark)""": "(lines 2-3)",
    f"(find-file {lisp(ROUTE)})": "page.ts (line 1)",
    """(require 'xref)
       (funcall xref-show-xrefs-function
                (lambda ()
                  (list (xref-make "one" (xref-make-file-location
                                          (expand-file-name "b.txt") 1 0)))) nil)
       (pop-to-buffer "*xref*") (goto-char (point-min))
       (search-forward "one")""": "@b.txt (line 1): 1: one",
    '(eshell) (insert "upcase works") (eshell-send-input)': "upcase works WORKS",
    '(describe-function \'car) (pop-to-buffer "*Help*")': "From *Help*:",
}


def submit(emacs: Emacs, text: str) -> None:
    emacs.command("gemini-companion-compose")
    emacs.holds('(string-prefix-p "*prompt" (buffer-name (window-buffer)))')
    emacs.eval(f"(with-current-buffer (window-buffer) (insert {lisp(text)}) nil)")
    emacs.keys("C-c", "C-c")


def last_message(cli: Gemini) -> str:
    """Return the texts of the last message of the user that the model was sent."""
    request = cli.model.requests[-1]
    last = (request.get("messages") or request["contents"])[-1]
    parts = last.get("content") or last["parts"]
    return parts if isinstance(parts, str) else "".join(part["text"] for part in parts)


def visible(text: str) -> str:
    """Return what a terminal may display of ``text``, without spaces."""
    return "".join(c for c in text if c.isprintable() and not c.isspace())


@pytest.mark.shared("term")
def test_prompts_are_nothing_but_text(world: World) -> None:
    emacs, cli = world.run_pair(world.file("a.txt", "one\n"))
    emacs.eval("(delete-other-windows)")
    prompts_are_nothing_but_text(world, emacs, cli)


def prompts_are_nothing_but_text(
    world: World, emacs: Emacs, cli: Gemini, reads_file: bool = False
) -> None:
    """Submit prompts of all kinds to ``cli``, which is in a terminal of Emacs.

    It may read them from a file.  Then what is in its prompt stays there.
    """
    emacs.holds(f"(eq 'ready {STATE})")

    random = Random(7)
    texts = ["".join(random.choices(PIECES, k=24)) for _ in range(2)]
    # 400 lines, 20 kB: more than a terminal takes at once.
    texts.append("\n".join(f"line {number:4}" + 8 * " word" for number in range(400)))
    for number, text in enumerate(texts):
        prompt = f"prompt {number} please {text} end {number}"
        request_count = len(cli.model.requests)
        cli.model.script(say(f"text {number} seen"))
        submit(emacs, prompt)
        cli.wait_for(f"text {number} seen")
        emacs.holds(f"(eq 'ready {STATE})")
        assert len(cli.model.requests) == request_count + 1
        assert visible(prompt) in visible(last_message(cli))
        assert "\x1b" not in last_message(cli)

    # All of that is in one prompt.
    file = world.file("b.txt", "one\ntwo\nthree\n")
    world.file(ODD, "odd\ntwo\nthree\n")
    world.file(ROUTE, "a route\n")
    world.file("app/other.ts", "another\n")
    visit = f"(find-file {lisp(file)})"

    def typed(keys: str, shown: str = "") -> None:
        """Type ``keys``, until the screen has what ``shown`` matches."""
        send = f'(process-send-string {lisp(cli.terminal.name)} "{keys}")'
        type_until(
            lambda: emacs.eval(send),
            lambda: re.search(shown, cli.terminal.screen()),
            keys,
        )

    for code in KINDS:
        emacs.eval(f"(progn {visit} {code} (gemini-companion-send) nil)")
    cli.model.script(say("I see them"))
    # The cursor of Qwen Code is on an empty line, which C-u joins with the one before.
    typed("begun " if reads_file else "\\C-ubegun ", r"(?m)^ *begun\b")
    if reads_file:
        # After 400 lines, a busy machine draws the prompt late.
        cli.terminal.wait_for_match(r"begun\b.*\n(.*\n)?─{9}")
    # A name at the end is not left to be completed.
    submit(emacs, "prompt 107 please: @b.txt")
    cli.wait_for("I see them")
    emacs.holds(f"(eq 'ready {STATE})")
    for text in KINDS.values():
        assert (visible(text) in visible(last_message(cli))) != reads_file
    if reads_file:
        cli.terminal.wait_for("begun")
        emacs.eval(f'(process-send-string {lisp(cli.terminal.name)} "\\C-c")')
        cli.terminal.wait_for("Type your message")
    else:
        assert re.search(r"begun\s*\nprompt 107 please", last_message(cli))
    # The CLI has read the file of that name.
    assert "onetwothree" in visible(last_message(cli))
    assert ("oddtwothree" in visible(last_message(cli))) != reads_file
    assert ("a route" in last_message(cli)) != reads_file
    assert "another" not in last_message(cli)

    # A prompt that is submitted while it works is queued: by the CLI if that reads a
    # file, or by Emacs, which does not press Enter before a question that may come.
    cli.model.answers.clear()
    command = call("run_shell_command", command="touch e.txt", description="x")
    first = [say("first done")] if reads_file else [command, say("first done")]
    cli.model.script(*first, say("second done"))
    submit(emacs, "prompt 108 please")
    emacs.holds(f"(eq 'working {STATE})")
    submit(emacs, "prompt 109 please")
    if reads_file:
        cli.terminal.wait_for("prompt 109 please")
        cli.model.answers.set()
    else:
        emacs.wait_for("is working; prompt is sent when its work has ended")
        # More than a prompt needs to be typed.
        emacs.eval("(sleep-for 2)")
        assert "prompt 109 please" not in cli.terminal.screen()
        withdraws_what_is_queued(emacs)
        cli.model.answers.set()
        cli.terminal.wait_for("Allow execution")
        emacs.eval("(sleep-for 2)")
        assert not (world.project / "e.txt").exists()
        cli.answer("llow once")
    cli.wait_for("second done")
    assert last_message(cli).endswith("prompt 109 please")

    # What the user has begun meanwhile is not submitted.
    if not reads_file:
        emacs.holds(f"(eq 'ready {STATE})")
        cli.model.answers.clear()
        cli.model.script(say("third done"))
        submit(emacs, "prompt 114 please")
        emacs.holds(f"(eq 'working {STATE})")
        submit(emacs, "prompt 115 please")
        typed("half a thought", "half a thought")
        cli.model.answers.set()
        emacs.becomes("(car kill-ring)", "prompt 115 please")
        assert "half a thought" not in last_message(cli)
        typed("\\C-e\\C-u", r"(?m)^ *> +Type your message")

    # What is behind the cursor would be submitted with it.
    emacs.holds(f"(eq 'ready {STATE})")
    begun = "(?m)^ *> one two[ \u200b]*$"
    typed("\\C-uone two", begun)
    typed("\\e[D")
    cli.model.script(say("all seen"))
    submit(emacs, "prompt 110 please")
    if reads_file:
        cli.wait_for("all seen")
        assert last_message(cli).endswith("prompt 110 please")
        waits_for_a_question(emacs, cli)
    else:
        emacs.becomes("(car kill-ring)", "prompt 110 please")
        cli.model.script()
    cli.terminal.wait_for_match(begun)
    typed("\\C-e\\C-u", r"(?m)^ *> +Type your message")

    # No prompt is a command of the shell, for which the CLI may be waiting.
    emacs.holds(f"(eq 'ready {STATE})")
    empty = r"(?m)^ *! +Type your"
    typed("!", empty)
    submit(emacs, "touch c.txt")
    emacs.becomes("(car kill-ring)", "touch c.txt")
    cli.terminal.wait_for_match(empty)
    typed("!", r"(?m)^ *> +Type your message")
    # Enter submits a command, and does not choose one of a list.
    submit(emacs, "/about")
    cli.terminal.wait_for_match(r"About Gemini CLI|│\s+Status\s+│")


def withdraws_what_is_queued(emacs: Emacs) -> None:
    """Queue a second prompt, and withdraw it."""
    submit(emacs, "prompt 113 please")
    emacs.wait_for("2 prompts queued: M-x gemini-companion-compose")
    emacs.command("gemini-companion-compose")
    emacs.wait_for("2 queued  C-c C-w withdraw")
    emacs.keys("C-c", "C-w")
    emacs.wait_for("1 queued  C-c C-w withdraw")
    draft = "(with-current-buffer (window-buffer) (buffer-string))"
    emacs.becomes(draft, "prompt 113 please")
    emacs.eval("(with-current-buffer (window-buffer) (erase-buffer) nil)")
    emacs.keys("C-c", "C-k")


def waits_for_a_question(emacs: Emacs, cli: Gemini) -> None:
    """Submit a prompt while ``cli`` asks for permission."""
    command = call("run_shell_command", command="touch d.txt", description="x")
    cli.model.script(command, say("it is run"), say("112 seen"))
    submit(emacs, "prompt 111 please")
    cli.terminal.wait_for("Allow execution")
    emacs.eval(SUBMIT.format('"prompt 112 please"'))
    count = len(cli.model.requests)
    emacs.eval("(sleep-for 2)")
    assert len(cli.model.requests) == count
    cli.answer("llow once")
    cli.wait_for("112 seen")
    assert last_message(cli).endswith("prompt 112 please")
    emacs.holds(f"(eq 'ready {STATE})")


def prompt(cli: Gemini) -> str:
    """Return the last text in the last request."""
    return str(cli.model.requests[-1]["contents"][-1]["parts"][-1]["text"])


def asked_why(emacs: Emacs, reviews: Reviews, text: str) -> None:
    """Type ``text`` as the reason for rejecting the review, without RET."""
    reviews.select()
    emacs.keys("C-c", "C-r")
    question = "Reject a.txt; reason for Gemini CLI:"
    emacs.text(text)
    emacs.wait_for(f"{question} {text}")


@pytest.mark.shared("inside")
def test_text_is_typed_only_where_it_is_a_prompt(world: World) -> None:
    file = world.file("a.txt", "one\n")
    emacs, _, cli = world.pair(file, inside=True)
    emacs.eval("(require 'gemini-companion-prompt)")

    # Enter answers no question of the CLI.
    emacs.eval("(setq gemini-companion-review-arrival 'notify)")
    cli.model.script(write_file(file, "uno\n"), say("all done"))
    cli.ask()
    emacs.holds("(gemini-companion-edits-open)")
    assert "copied" in emacs.eval(f'(gemini-companion-prompt-insert "words" {SESSION})')
    # Before Emacs knows that the CLI asks, the text waits for the answer, too.
    emacs.eval("(gemini-companion-part-stop 'state)")
    cli.model.script(say("all done"), say("I see"))
    emacs.eval(SUBMIT.format('"some words"'))
    cli.terminal.wait_for("llow once")
    assert file.read_text() == "one\n"
    assert len(cli.model.requests) == 1
    emacs.eval("(gemini-companion-part-start 'state)")
    emacs.eval("""
(gemini-companion-server-receive
 'sessions-update (mapcar #'gemini-companion-session-facts (gemini-companion-sessions)))
""")
    cli.answer("llow once")
    cli.finished("I see", file, "uno\n")
    assert prompt(cli) == "some words"
