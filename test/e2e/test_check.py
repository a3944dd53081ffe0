# SPDX-License-Identifier: GPL-3.0-or-later
"""A turn is checked by a command of the project, which runs only after a yes."""

import pytest
from harness.model import say, write_file
from harness.world import World
from test_turn_page import asks_again, goes_to

WORKS = "test:\n\t@touch ran\n"
FAILS = "test:\n\t@touch ran-again; echo 'shop.c:2: error: no tax'; exit 1\n"


@pytest.mark.shared("term")
@pytest.mark.differs
def test_check_asks_and_leads_to_the_errors_of_a_turn(world: World) -> None:
    code = world.file("shop.c", "int price;\n")
    makefile = world.file("Makefile", WORKS)
    ran, again = (world.project / name for name in ("ran", "ran-again"))
    emacs, cli = world.run_pair(code)
    emacs.command("gemini-companion-auto-accept", "without review?")
    cli.is_free(write_file(code, "int price;\nint tax;\n"))
    emacs.becomes("(gemini-companion-changes-left)", 1)

    emacs.command("gemini-companion-turn-page")
    emacs.wait_for("1 left")
    emacs.keys("V")
    emacs.wait_for("Check in ")
    emacs.keys("C-a", "C-k")
    emacs.text("make test")
    emacs.keys("Enter")
    # Neither RET nor SPC is a yes.
    emacs.wait_for("make test? (y, n)")
    emacs.keys("Enter")
    emacs.keys("Space")
    emacs.wait_for("make test? (y, n)")
    assert not ran.exists()
    emacs.keys("y")
    emacs.wait_for_match(r"✓ make test \d+ s")
    assert ran.exists()

    # An earlier yes was for another Makefile.
    emacs.eval('(progn (pop-to-buffer "*gemini: project*") nil)')
    cli.is_free(write_file(makefile, FAILS))
    emacs.becomes("(gemini-companion-changes-left)", 2)
    emacs.command("gemini-companion-turn-page")
    emacs.wait_for("Makefile")
    # A y that was typed before the question was displayed is no answer.
    emacs.burst("V", "y")
    emacs.wait_for_match(r"Not reviewed: Makefile\. .*make test\? \(y, n\)")
    assert not again.exists()
    emacs.keys("n")
    for key in ("n", "y"):
        emacs.keys("V")
        emacs.wait_for_match(r"Not reviewed: Makefile\. .*make test\? \(y, n\)")
        assert not again.exists()
        emacs.keys(key)
    emacs.wait_for("✗ make test: 1 error")
    goes_to(emacs, "make test", ": 1 error")
    emacs.keys("c")
    emacs.wait_for("`make test` failed: 1 error")
    emacs.keys("Enter")
    emacs.wait_for(">> `make test`")
    goes_to(emacs, "make test", ": 1 error")
    emacs.keys("Enter")
    emacs.wait_for("Check exited abnormally with code 2")
    emacs.command("next-error")
    emacs.becomes(
        "(with-current-buffer (window-buffer)"
        " (list (buffer-name) (line-number-at-pos)))",
        ["shop.c", 2],
    )

    # The model reads the errors.
    cli.model.script(say("noted"))
    emacs.command("gemini-companion-send-comments")
    cli.wait_for("noted")
    expected = "`make test` failed: 1 error\\n> shop.c:2: error: no tax"
    assert expected in cli.model.last_message()
    asks_again(emacs)
