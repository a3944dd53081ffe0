# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of the hosts where CLIs run."""

import asyncio

import pytest

from gemini_companion_epc.hosts import Hosts
from gemini_companion_epc.types import RemoteError


def test_without_another_host_each_file_is_local() -> None:
    hosts = Hosts(1, lambda facts: None, lambda name: ())
    assert hosts.remote_name("", "/srv/p/a.py") == "/srv/p/a.py"
    assert hosts.remote_name("/ssh:far:", "/srv/p/a.py") is None
    assert hosts.of_address(("127.0.0.1", 1)) is None
    with pytest.raises(RemoteError, match="/ssh:far: is not connected"):
        asyncio.run(hosts.write("/ssh:far:", "/srv/p/a.py", "0"))
    asyncio.run(hosts.stop("/ssh:far:"))
    asyncio.run(hosts.stop_all())
