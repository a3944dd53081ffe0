# SPDX-License-Identifier: GPL-3.0-or-later
"""The status buffer shows what is connected, and what is shared."""

import pytest
from harness.world import World


@pytest.mark.once
@pytest.mark.shared("context")
def test_status_shows_sessions_and_what_is_shared(world: World) -> None:
    emacs, _, cli = world.pair(world.file("a.txt", "one\ntwo\n"))
    assert "- a.txt (active)" in cli.ide_status()
    emacs.act("(progn (goto-char 5) (set-mark (point-max)) (activate-mark))")
    emacs.holds("(plist-get (car (gemini-companion-shared)) :selected-text)")

    emacs.eval("(gemini-companion-status)")
    shown = emacs.value(
        '(with-current-buffer "*gemini-companion status*" (buffer-string))'
    )

    assert "Connected: Gemini CLI" in shown
    assert f"in {world.project}" in shown
    assert "a.txt, active, line 2, character 1" in shown
    assert '4 characters selected: "two\\n"' in shown
    assert f"in {world.project}) is not connected" not in shown
