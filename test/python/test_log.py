# SPDX-License-Identifier: GPL-3.0-or-later
import logging
import stat
from collections.abc import Iterator
from logging.handlers import RotatingFileHandler
from pathlib import Path

import pytest

from gemini_companion_epc import log


@pytest.fixture(autouse=True)
def small_files(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let a log have 1 kB; close the logs of a test."""
    monkeypatch.setattr(log, "_FILE_SIZE", 1000)
    yield
    root = logging.getLogger()
    for handler in root.handlers[:]:
        if isinstance(handler, RotatingFileHandler):
            root.removeHandler(handler)
            handler.close()


def test_the_log_rotates_and_stays_private(tmp_path: Path) -> None:
    log.to_file(str(tmp_path / "log"))
    package = logging.getLogger("gemini_companion_epc")
    for number in range(100):
        package.warning("%d %s", number, "x\ud800" * 20)
    files = sorted(tmp_path.glob("log*"))
    assert [path.name for path in files] == ["log", "log.1", "log.2", "log.3"]
    for path in files:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        for line in path.read_bytes().splitlines():
            assert line.endswith(b"x\\ud800")
