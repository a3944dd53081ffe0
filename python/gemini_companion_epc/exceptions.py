# SPDX-License-Identifier: GPL-3.0-or-later
"""What can go wrong, each with a sentence for the person."""


class CompanionError(Exception):
    """Any failure of our own."""


class StartError(CompanionError):
    """The server cannot run; the message says why and names the cure."""


class DiscoveryError(CompanionError):
    """The discovery file cannot be written; the server runs without it."""


class EmacsError(CompanionError):
    """Emacs answered a call with an error."""


class EmacsGone(EmacsError):
    """Emacs is not connected, or left before it answered."""


class TooManySessions(CompanionError):
    """A client wants one session more than the server keeps."""


class MalformedArgument(CompanionError):
    """A peer sent an argument that does not have the shape it must have."""
