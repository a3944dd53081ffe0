# SPDX-License-Identifier: GPL-3.0-or-later
import os
import socket
import stat
import tempfile
from pathlib import Path

import pytest

from conftest import Alone
from fake_cli import BOUND, PING, FakeCli
from gemini_companion_epc.copilot import socket_name
from gemini_companion_epc.unix_port import UnixPort


def test_a_private_socket_leads_to_the_port(
    alone: Alone, cli: FakeCli, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The name leaves room for that of a socket.
    with tempfile.TemporaryDirectory(dir="/tmp") as short:
        monkeypatch.setenv("COPILOT_HOME", os.path.join(short, "c"))
        path = Path(socket_name())
        path.parent.mkdir(parents=True)
        port = UnixPort(alone.port)
        for _ in range(2):
            alone.do(port.listen)
        modes = [stat.S_IMODE(one.stat().st_mode) for one in (path, path.parent)]
        assert modes == [0o600, 0o700]
        cli.initialize()
        for _ in range(2):
            peer = socket.socket(socket.AF_UNIX)
            peer.settimeout(BOUND)
            peer.connect(os.fspath(path))
            assert cli.post(PING, peer)[0] == 200
        # A cleanup has removed it.
        path.unlink()
        alone.do(port.listen)
        assert path.exists()
        alone.do(port.close)
        assert not path.exists()
