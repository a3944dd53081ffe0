# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of linking CLIs."""

import subprocess
import sys


def test_the_answers_to_linked_clis_are_imported_by_linking() -> None:
    program = """
import sys
from gemini_companion_epc import http, server
from gemini_companion_epc.linked import Linked

linked, name = Linked(None, None, None), "gemini_companion_epc.questions"
print(name in sys.modules, linked.questions)
linked.turn(True)
print(name in sys.modules, type(linked.questions).__name__)
linked.turn(False)
print(linked.questions)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["False None", "True Questions", "None"]
