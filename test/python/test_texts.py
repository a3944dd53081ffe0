# SPDX-License-Identifier: GPL-3.0-or-later
import os
import tempfile
from pathlib import Path

import pytest

from conftest import dead_pid
from gemini_companion_epc import texts
from gemini_companion_epc.texts import LARGE_TEXT, TextFiles


def test_a_sweep_removes_the_files_of_dead_servers_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / f"gemini-companion-{dead_pid()}-abc").touch()
    (tmp_path / f"gemini-companion-{10**30}-abc" / "sub").mkdir(parents=True)
    own = Path(TextFiles().pack("x" * LARGE_TEXT)[1])
    other = tmp_path / "gemini-companion-notes"
    other.touch()
    texts.sweep()
    assert sorted(tmp_path.iterdir()) == sorted([own, other])
    texts.sweep(os.getpid())
    assert list(tmp_path.iterdir()) == [other]
