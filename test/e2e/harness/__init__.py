# SPDX-License-Identifier: GPL-3.0-or-later
"""Drive a real Emacs, the real server and the real Gemini CLI."""
