# SPDX-License-Identifier: GPL-3.0-or-later
"""Differences between systems; with GC_SYSTEM=portable, those of macOS."""

import os
import re
import socket
from pathlib import Path

import pytest

from conftest import BOUND
from gemini_companion_epc.connections import Connections
from gemini_companion_epc.system import leave_port

pytestmark = pytest.mark.system

PACKAGE = Path(__file__).parents[2] / "python" / "gemini_companion_epc"


def test_no_other_module_knows_the_system() -> None:
    asks = re.compile(r"sys\.platform|os\.name|hasattr\((os|socket|signal)|/proc/")
    found = {
        path.name for path in PACKAGE.glob("*.py") if asks.search(path.read_text())
    }
    # The bridge is a program that runs without the package.
    assert found - {"bridge.py"} == {"system.py"}


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="of Linux")
@pytest.mark.skipif("GC_SYSTEM" in os.environ, reason="of Linux")
def test_a_port_is_left_to_the_process_that_listens_next() -> None:
    first = Connections(0)
    second = Connections(first.port)
    first.listen()
    second.listen()
    leave_port(first.listener)
    second.listener.settimeout(BOUND)
    with first.listener, second.listener:
        for _ in range(30):
            with socket.create_connection(("127.0.0.1", first.port), BOUND):
                second.listener.accept()[0].close()
