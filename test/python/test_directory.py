# SPDX-License-Identifier: GPL-3.0-or-later
import os
import tempfile
from pathlib import Path

import pytest

from conftest import dead_pid
from gemini_companion_epc import directory
from gemini_companion_epc.directory import PrivateDirectory
from gemini_companion_epc.exceptions import MalformedArgument, StartError


def test_a_sweep_removes_the_directories_of_dead_servers_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    dead = tmp_path / f"gemini-companion-{dead_pid()}-abc"
    dead.mkdir()
    (dead / "server-1").touch()
    # Another user may make such a directory.
    (tmp_path / f"gemini-companion-{10**30}-abc").mkdir()
    living = PrivateDirectory().path
    other = tmp_path / "gemini-companion-notes"
    other.mkdir()
    directory.sweep()
    assert sorted(tmp_path.iterdir()) == sorted([living, other])


def test_what_another_user_puts_in_place_of_the_directory_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    private = PrivateDirectory()
    written = private.write("text")
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(PermissionError, match="another user"):
        private.write("text")
    with pytest.raises(MalformedArgument, match="another user"):
        private.take(str(written))
    assert written.exists()


def test_without_a_temporary_directory_there_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/dev/null")
    with pytest.raises(StartError, match=r"temporary directory: .*; free disk space"):
        PrivateDirectory()
