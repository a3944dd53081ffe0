# SPDX-License-Identifier: GPL-3.0-or-later
"""Reviews beside their CLI, which runs in a terminal of the same Emacs."""

import pytest
from harness.model import say
from harness.world import World
from test_views import NEW, OLD, OWN

pytestmark = pytest.mark.shared("inside")


@pytest.mark.parametrize(
    "view", ["ediff", pytest.param("diff", marks=pytest.mark.once)]
)
def test_terminal_stays_and_returns_with_the_review(world: World, view: str) -> None:
    turn = say("all done")
    file, emacs, reviews, cli = world.review(OLD, NEW, turn, inside=True, extra=OWN)
    emacs.becomes("(buffer-name (window-buffer))", "*terminal*")
    reviews.select()
    if view == "ediff":
        emacs.keys("v")
        emacs.wait_for("Hunk 1 of 2")
    terminal = '(get-buffer-window "*terminal*")'
    before = emacs.value(f"(window-edges {terminal})")
    windows = emacs.eval("(e2e-windows)")

    for removal in (
        "(delete-other-windows)",
        f"(delete-window {terminal})",
        f"(delete-other-windows {terminal})",
    ):
        emacs.act(removal)
        reviews.select()
        emacs.holds(f"(equal {windows} (e2e-windows))", removal)
        emacs.becomes(f"(window-edges {terminal})", before)
        assert emacs.value("(buffer-name (window-buffer))") != "*terminal*"

    if view == "ediff":
        emacs.keys("C-c", "C-c")
    else:
        emacs.eval(f"(select-window {terminal})")
        cli.answer("Allow once")
    cli.finished("all done", file, NEW)
    emacs.becomes("(e2e-windows)", "*terminal*")


@pytest.mark.parametrize(
    "view", ["diff", pytest.param("ediff", marks=pytest.mark.once)]
)
def test_list_leaves_the_terminal_and_the_review(world: World, view: str) -> None:
    extra = f"{OWN}(setq gemini-companion-review-view '{view})"
    turn = say("all done")
    _, emacs, reviews, cli = world.review(OLD, NEW, turn, inside=True, extra=extra)
    in_list = '(equal "*gemini edits*" (buffer-name (window-buffer)))'
    reviews.select()
    before = emacs.value("(e2e-windows)")

    for back in ("q", "Enter"):
        emacs.keys("l")
        emacs.holds(in_list)
        windows = emacs.value("(e2e-windows)")
        assert windows.startswith("*terminal* ")
        emacs.keys(back)
        emacs.holds(f"(not {in_list})")
        emacs.becomes("(e2e-windows)", before)
    emacs.keys("l")
    emacs.holds(in_list)
    emacs.keys("a")

    cli.wait_for("all done")
    emacs.becomes("(e2e-windows)", "*terminal* *gemini edits*")
    for keys, selected in (["Enter"], "a.txt"), (["u", "y"], "*gemini edits*"):
        emacs.keys(*keys)
        emacs.holds('(equal "*terminal* *gemini edits* a.txt" (e2e-windows))')
        emacs.holds(f'(equal "{selected}" (buffer-name (window-buffer)))')
        emacs.act('(delete-window (get-buffer-window "a.txt"))')
        emacs.act("(gemini-companion-list)")
    emacs.wait_for_match(r"reverted +\+2 \u22122 +a\.txt")
    emacs.keys("q")
    emacs.holds('(equal "*terminal*" (e2e-windows))')
    cli.is_free()
