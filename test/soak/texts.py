# SPDX-License-Identifier: GPL-3.0-or-later
"""Proposals of all sizes, with any characters."""

import hashlib
from random import Random

ODD = [
    "plain text, as most of it is\n",
    "    indented = 'code'\r\n",
    "\r",
    "\u00e9\u00fc\u00df e\u0301 \u2028\u2029\u0085",
    "\U0001d11e\U0001f469\u200d\U0001f680",
    "\x00\x01\x1b\x7f\ufeff\ufffe",
    '\\377 \\" "#(x) (quote \\x41;) nil\n',
    "\ud800",
    "\udfff\ud83d",
    "\t\t\n\n",
]
ORDINARY = ODD[0] * 8 + ODD[1] * 4


def clean(text: str) -> str:
    """Return ``text`` as it must arrive: no half of a pair that JSON can carry."""
    # JSON joins a pair that was split in Python.
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def sha(text: str) -> str:
    return hashlib.sha1(text.encode()).hexdigest()


def proposal(random: Random, mark: str) -> str:
    """Return a proposal, empty or with ``mark`` as its first line."""
    share = random.random()
    if share < 0.04:
        return ""
    if share < 0.75:
        size = random.randrange(2_000)
    elif share < 0.92:
        size = random.randrange(20_000)
    elif share < 0.985:
        size = random.randrange(100_000)
    else:
        size = random.randrange(200_000, 300_000)
    text = f"{mark}\n" + "".join(random.choices(ODD, k=random.randrange(12)))
    return text + ORDINARY * (size // len(ORDINARY))
