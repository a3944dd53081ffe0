# SPDX-License-Identifier: GPL-3.0-or-later
"""truth.py < EDITS > ERRORS: what Pyflakes, as pylsp has it, says of each text."""

import json
import sys

from pyflakes import api
from pylsp.plugins.pyflakes_lint import PyflakesDiagnosticReport


def errors(file: str, text: str) -> list[tuple[int, str]]:
    report = PyflakesDiagnosticReport(text.splitlines(keepends=True))
    api.check(text, file, reporter=report)
    return [
        (found["range"]["start"]["line"] + 1, found["message"])
        for found in report.diagnostics
        if found["severity"] == 1
    ]


print(
    json.dumps(
        [
            {which: errors(edit["file"], edit[which]) for which in ("before", "after")}
            for edit in json.load(sys.stdin)
        ]
    )
)
