# SPDX-License-Identifier: GPL-3.0-or-later
import logging
import shutil
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


def test_several_emacsen_rotate_one_log_without_loss(tmp_path: Path) -> None:
    for _ in range(2):
        log.to_file(str(tmp_path / "log"))
    for number in range(16):
        logging.getLogger().error("event %d.", number)
    text = "".join(path.read_text() for path in tmp_path.glob("log*"))
    assert min(path.stat().st_size for path in tmp_path.glob("log.*")) > 900
    assert [text.count(f"event {number}.") for number in range(16)] == [2] * 16


def test_a_directory_that_is_deleted_is_made_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a/b/log"
    log.to_file(str(file))
    for number in range(2):
        shutil.rmtree(tmp_path / "a")
        logging.getLogger().error("event %d.", number)
        assert f"event {number}." in file.read_text()
    assert capsys.readouterr().err == ""


def test_the_log_rotates_and_stays_private(tmp_path: Path) -> None:
    log.to_file(str(tmp_path / "log"))
    for number in range(100):
        logging.getLogger().warning("%d %s", number, "x\ud800" * 20)
    files = sorted(tmp_path.glob("log*"))
    assert [path.name for path in files] == ["log", "log.1", "log.2", "log.3"]
    for path in files:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        for line in path.read_bytes().splitlines():
            assert line.endswith(b"x\\ud800")
