# SPDX-License-Identifier: GPL-3.0-or-later
import os
import tempfile
from pathlib import Path

import pytest

from conftest import dead_pid
from gemini_companion_epc import texts
from gemini_companion_epc.texts import LARGE_TEXT


def test_a_sweep_removes_the_files_of_dead_servers_of_this_user_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def name(pid: int) -> str:
        return texts.prefix().replace(f"-{os.getpid()}-", f"-{pid}-") + "abc"

    Path(name(dead_pid())).touch()
    Path(name(10**30), "sub").mkdir(parents=True)
    own = Path(texts.pack("x" * LARGE_TEXT)[1])
    # On another host, or of the user.
    others = {
        f"gemini-companion-{prefix}{dead_pid()}-11" for prefix in ("", "0123456789ab-")
    }
    for other in others:
        (tmp_path / other / "sub").mkdir(parents=True)
    if os.geteuid() == 0:
        hers = Path(name(10**9))
        hers.mkdir()
        os.chown(hers, 65534, -1)
        others.add(hers.name)
    texts.sweep()
    assert {path.name for path in tmp_path.iterdir()} == {own.name, *others}
    texts.sweep(os.getpid())
    assert {path.name for path in tmp_path.iterdir()} == others
