# SPDX-License-Identifier: GPL-3.0-or-later
"""A fourth CLI, added by the recipe in doc/design.org.

Its adapter is in gemini-companion-client-fourth-test-helper.el.
"""

from gemini_companion_epc.client import Client
from gemini_companion_epc.common import HOMES
from gemini_companion_epc.companion import COMPANION

HOMES["fourth"] = ("FOURTH_HOME", ".fourth")
FOURTH = Client(
    name="fourth",
    title="Fourth CLI",
    program=r"(.*/)?fourth",
    file_name=lambda pid, port: f"fourth-{pid}-{port}.json",
    protocol=COMPANION,
    acp_options=("--serve-editor",),
    reconnect="/connect",
)
