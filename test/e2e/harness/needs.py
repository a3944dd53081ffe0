# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs and packages that some tests need, and marks that skip these tests."""

import os
from pathlib import Path

import pytest

from .tools import Tools

# Where Debian installs it; its module is compiled for the system's Emacs.
VTERM = next(Path("/usr/share/emacs/site-lisp/elpa").glob("vterm-*"), None)


def _needs_package(name: str) -> pytest.MarkDecorator:
    is_there = any(Path(Tools.find().elpa).glob(f"{name}-*"))
    return pytest.mark.skipif(not is_there, reason=f"{name} is not installed")


needs_vterm = pytest.mark.skipif(not VTERM, reason="vterm is not installed")
needs_eat = _needs_package("eat")
needs_qwen = pytest.mark.skipif(
    not os.access(Tools.find().qwen, os.X_OK), reason="Qwen Code is not installed"
)
needs_copilot = pytest.mark.skipif(
    not os.access(Tools.find().copilot, os.X_OK), reason="Copilot CLI is not installed"
)
needs_pi = pytest.mark.skipif(
    not os.access(Tools.find().pi, os.X_OK), reason="Pi is not installed"
)
