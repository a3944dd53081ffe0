# SPDX-License-Identifier: GPL-3.0-or-later
"""A fourth CLI, added by the recipe in doc/design.org.

Its adapter is in gemini-companion-client-fourth-test-helper.el.
"""

from gemini_companion_epc.client import Client
from gemini_companion_epc.companion import COMPANION

FOURTH = Client(
    name="fourth",
    title="Fourth CLI",
    program=r"(.*/)?fourth",
    home=".fourth",
    home_variable="FOURTH_HOME",
    file_name=lambda pid, port: f"fourth-{pid}-{port}.json",
    protocol=COMPANION,
    acp_options=("--serve-editor",),
    reconnect="/connect",
)
