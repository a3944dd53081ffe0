# SPDX-License-Identifier: GPL-3.0-or-later
from gemini_companion_epc.types import clean


def test_lone_surrogates_become_visible() -> None:
    assert clean("\u00e9\ud800b\udfff\U0001f600") == "\u00e9\ufffdb\ufffd\U0001f600"
