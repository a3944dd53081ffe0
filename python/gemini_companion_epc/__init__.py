# SPDX-License-Identifier: GPL-3.0-or-later
"""The server between Emacs and the CLIs."""

__version__ = "0.1.0"
