# SPDX-License-Identifier: GPL-3.0-or-later
import logging
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from gemini_companion_epc import log

LogTo = Callable[..., logging.Logger]


@pytest.fixture
def log_to() -> Iterator[Callable[..., logging.Logger]]:
    """A function that logs to a file; it returns the logger of the package."""
    root, package = logging.getLogger(), logging.getLogger("gemini_companion_epc")
    handlers, level = list(root.handlers), package.level

    def log_to(path: Path) -> logging.Logger:
        log.to_file(str(path), "debug")
        return package

    yield log_to
    package.setLevel(level)
    for handler in set(root.handlers) - set(handlers):
        root.removeHandler(handler)
        with suppress(OSError):
            handler.close()


def test_the_log_rotates_and_stays_private(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log_to: LogTo
) -> None:
    monkeypatch.setattr(log, "_FILE_SIZE", 1000)
    logger = log_to(tmp_path / "log")
    for number in range(100):
        logger.debug("%d %s", number, "x\ud800" * 20)
    files = sorted(tmp_path.glob("log*"))
    assert [path.name for path in files] == ["log", "log.1", "log.2", "log.3"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}


def test_an_event_is_one_line(tmp_path: Path, log_to: LogTo) -> None:
    log_to(tmp_path / "log").debug("a\nb\r%s", "-")
    (line,) = (tmp_path / "log").read_bytes().splitlines()
    assert line.endswith(b"a\\nb\\r-")
