# SPDX-License-Identifier: GPL-3.0-or-later
"""Pi, for which an extension of this package speaks, see extensions/pi.js."""

from .client import Client
from .companion import EXTENDED
from .hooks import Reports

PI = Client(
    name="pi",
    title="Pi",
    # It renames its process.
    program=r"(.*/)?pi|.*/pi-coding-agent/dist/(bundle/)?cli\.js",
    file_name=lambda pid, port: f"emacs-{pid}-{port}.json",
    protocol=EXTENDED,
    hooks=Reports(),
    states_version=True,
    takes_any_root=True,
)
