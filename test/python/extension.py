# SPDX-License-Identifier: GPL-3.0-or-later
"""The directory of the extension, from which a CLI runs the bridge."""

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from gemini_companion_epc import bridge as program

# The machine may be busy.
FACTOR = 4


def extension(tmp: Path) -> Path:
    """Return the directory in ``tmp``."""
    directory = tmp / "extension"
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def command(
    tmp: Path, *arguments: str, quick: bool = False, factor: float = FACTOR
) -> list[str]:
    """Return the command that runs the bridge, as Emacs writes it.

    Its time limits are longer by ``factor``.  If ``quick``, it searches for Emacs more
    often.
    """
    directory, source = extension(tmp), Path(program.__file__)
    text = re.sub(
        r"^([A-Z]+_SECONDS = )([\d.]+)$",
        lambda match: match[1] + str(float(match[2]) * factor),
        source.read_text(encoding="utf-8"),
        flags=re.MULTILINE,
    )
    if quick:
        text = re.sub(r"(?m)^SCAN_SECONDS = .*", "SCAN_SECONDS = 0.1", text)
    files = {
        "bridge.py": text,
        "common.py": source.with_name("common.py").read_text(encoding="utf-8"),
        "__main__.py": "import bridge\n\nbridge.main()\n",
    }
    for name, content in files.items():
        # A bridge may be starting.
        draft = directory / f"draft-{name}"
        draft.write_text(content, encoding="utf-8")
        draft.replace(directory / name)
    main = str(directory / "__main__.py")
    return [sys.executable, "-E", "-s", "-S", main, *arguments]


def announce(
    tmp: Path,
    name: object,
    files: Mapping[str, str],
    kind: str = "emacs",
    **facts: object,
) -> Path:
    """Write the file of ``kind`` of an Emacs, which names its discovery files."""
    path = extension(tmp) / f"{kind}-{name}"
    path.write_text(json.dumps({"files": dict(files), **facts}))
    return path
