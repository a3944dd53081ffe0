# SPDX-License-Identifier: GPL-3.0-or-later
import re
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "python" / "gemini_companion_epc"


def test_no_other_module_knows_the_system() -> None:
    asks = re.compile(r"sys\.platform|os\.name|hasattr\((os|socket|signal)|/proc/")
    found = {
        path.name for path in PACKAGE.glob("*.py") if asks.search(path.read_text())
    }
    # The bridge is a program that runs without the package.
    assert found - {"bridge.py"} == {"system.py"}
