# SPDX-License-Identifier: GPL-3.0-or-later
"""The errors of this package."""


class CompanionError(Exception):
    """Base class of the errors of this package."""


class StartError(CompanionError):
    """The server cannot start; the message is shown to the user."""


class DiscoveryError(CompanionError):
    """The discovery file cannot be written; the server runs without one."""


class EmacsError(CompanionError):
    """Emacs answered a call with an error."""


class EmacsGone(EmacsError):
    """Emacs is not connected, or disconnected before it answered."""


class MalformedArgument(CompanionError):
    """A peer sent an argument of the wrong type or format."""
