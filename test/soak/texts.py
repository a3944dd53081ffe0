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
    # Most are small; of the large ones few are near the limit.
    limits = 0, 2_000, 20_000, 100_000, 300_000
    (limit,) = random.choices(limits, [4, 71, 17, 5, 3])
    if not limit:
        return ""
    text = f"{mark}\n" + "".join(random.choices(ODD, k=random.randrange(12)))
    return text + ORDINARY * (random.randrange(limit) // len(ORDINARY))
