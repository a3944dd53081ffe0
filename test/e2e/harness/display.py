# SPDX-License-Identifier: GPL-3.0-or-later
"""A virtual display, and keys that are pressed on it."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

# As xdotool calls what tmux and `kbd` spell otherwise.
NAMES = {
    "Enter": "Return",
    "RET": "Return",
    "TAB": "Tab",
    " ": "space",
    "<": "less",
    "?": "question",
    "!": "exclam",
    "=": "equal",
    "/": "slash",
}
MODIFIERS = {"C": "ctrl", "M": "alt"}


@contextmanager
def screen() -> Iterator[str]:
    """Start a virtual display, and yield its name."""
    size = ("-screen", "0", "2200x1400x24")
    xvfb = subprocess.Popen(
        ["Xvfb", "-displayfd", "1", "-noreset", *size],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert xvfb.stdout
        yield f":{xvfb.stdout.readline().strip()}"
    finally:
        xvfb.terminate()
        xvfb.wait()


def xdotool(display: str, *arguments: str, check: bool = True) -> None:
    environment = {**os.environ, "DISPLAY": display}
    subprocess.run(["xdotool", *arguments], env=environment, check=check)


def spelled(key: str) -> str:
    """Return ``key``, such as ``C-x`` or ``Enter``, as xdotool spells it."""
    *modifiers, last = key.split("-") if len(key) > 1 else [key]
    return "+".join(
        [*(MODIFIERS[modifier] for modifier in modifiers), NAMES.get(last, last)]
    )
