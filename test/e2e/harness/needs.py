# SPDX-License-Identifier: GPL-3.0-or-later
"""Packages of Emacs that some tests need, and marks that skip these tests."""

import os
from pathlib import Path

import pytest

# Where Debian installs it; its module is compiled for the system's Emacs.
VTERM = next(Path("/usr/share/emacs/site-lisp/elpa").glob("vterm-*"), None)

needs_vterm = pytest.mark.skipif(not VTERM, reason="vterm is not installed")
needs_eat = pytest.mark.skipif(
    not list(Path(os.environ.get("GC_ELPA", "/")).glob("eat-*")),
    reason="eat is not installed",
)
