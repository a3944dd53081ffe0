# SPDX-License-Identifier: GPL-3.0-or-later
"""The CLI finds Emacs, wherever it is started."""

import pytest
from harness.gemini import CONNECTED
from harness.scratch import Scratch
from harness.world import World

pytestmark = pytest.mark.once


@pytest.mark.shared
def test_cli_beside_emacs_is_connected_and_lists_open_files(
    world: World, scratch: Scratch
) -> None:
    _, _, cli = world.pair(scratch.file("a.txt"), scratch.file("b.txt"))

    status = cli.ide_status()

    assert CONNECTED in status
    assert "- b.txt (active)" in status
    assert "- a.txt" in status


@pytest.mark.shared("inside")
def test_cli_in_term_is_connected(world: World, scratch: Scratch) -> None:
    _, _, cli = world.pair_inside(scratch.file("a.txt"))

    status = cli.ide_status()

    assert CONNECTED in status
    assert "- a.txt (active)" in status
