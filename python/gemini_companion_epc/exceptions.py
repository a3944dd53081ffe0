# SPDX-License-Identifier: GPL-3.0-or-later
"""The errors of this package."""


class StartError(Exception):
    """The server cannot start; the message is shown to the user."""


class EmacsError(Exception):
    """Emacs answered a call with an error."""


class EmacsGone(EmacsError):
    """Emacs is not connected, or disconnected before it answered."""


class MalformedArgument(Exception):
    """A peer sent an argument of the wrong type or format."""
