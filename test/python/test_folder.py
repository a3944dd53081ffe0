# SPDX-License-Identifier: GPL-3.0-or-later
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from gemini_companion_epc import folder
from gemini_companion_epc.folder import PrivateFolder


def _dead_pid() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_a_sweep_removes_the_folders_of_dead_servers_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    dead = tmp_path / f"gemini-companion-{_dead_pid()}-abc"
    dead.mkdir()
    (dead / "server-1").touch()
    # Anybody may make such a folder beside ours.
    (tmp_path / f"gemini-companion-{10**30}-abc").mkdir()
    living = PrivateFolder().path
    assert living is not None
    other = tmp_path / "gemini-companion-notes"
    other.mkdir()
    folder.sweep()
    assert sorted(tmp_path.iterdir()) == sorted([living, other])


def test_a_text_that_half_fits_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    private = PrivateFolder()
    assert private.path is not None
    real_open = os.open

    def full(path: Path, flags: int, mode: int) -> int:
        return real_open(path, flags & ~os.O_WRONLY, mode)

    monkeypatch.setattr(os, "open", full)
    assert private.write("x") is None
    assert list(private.path.iterdir()) == []
