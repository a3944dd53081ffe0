# SPDX-License-Identifier: GPL-3.0-or-later
import logging
import stat
from pathlib import Path

import pytest

from gemini_companion_epc import log


def test_several_emacsen_rotate_one_log_without_loss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = logging.getLogger()
    monkeypatch.setattr(log, "_FILE_SIZE", 1000)
    for _ in range(2):
        log.to_file(str(tmp_path / "log"))
    handlers = root.handlers[-2:]
    try:
        for number in range(16):
            root.error("event %d.", number)
    finally:
        for handler in handlers:
            root.removeHandler(handler)
            handler.close()
    text = "".join(path.read_text() for path in tmp_path.glob("log*"))
    assert min(path.stat().st_size for path in tmp_path.glob("log.*")) > 900
    assert [text.count(f"event {number}.") for number in range(16)] == [2] * 16


def test_the_log_rotates_stays_private_and_has_a_line_for_each_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, package = logging.getLogger(), logging.getLogger("gemini_companion_epc")
    monkeypatch.setattr(log, "_FILE_SIZE", 1000)
    log.to_file(str(tmp_path / "log"))
    try:
        for number in range(100):
            package.warning("%d\n%s\r", number, "x\ud800" * 20)
    finally:
        handler = root.handlers[-1]
        root.removeHandler(handler)
        handler.close()
    files = sorted(tmp_path.glob("log*"))
    assert [path.name for path in files] == ["log", "log.1", "log.2", "log.3"]
    for path in files:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        for line in path.read_bytes().splitlines():
            assert line.endswith(b"x\\ud800\\r")
