# SPDX-License-Identifier: GPL-3.0-or-later
"""Check what the server needs, then run it.

An old Python must be able to read this file up to its refusal, so it keeps to
the syntax of Python 3.6.
"""

import sys
from importlib.util import find_spec

NEEDED_PYTHON = (3, 10)
NEEDED_PACKAGES = {
    "epc": "epc>=0.0.5,<0.1",
    "sexpdata": "sexpdata>=1.0.2,<2",
    "mcp": "mcp>=2.3,<3",
    "hypercorn": "hypercorn>=0.18,<0.19",
    "psutil": "psutil>=7.2.2,<8",
}


def python_fault(version):
    # type: (tuple[int, int]) -> str | None
    """Return why Python VERSION cannot run the server, None if it can."""
    if version >= NEEDED_PYTHON:
        return None
    return "Python {}.{} or later is needed, {} is {}.{}".format(
        *NEEDED_PYTHON, sys.executable, *version
    )


def package_fault():
    # type: () -> str | None
    """Return which packages are missing and the cure, None if none is."""
    missing = [name for name in NEEDED_PACKAGES if find_spec(name) is None]
    if not missing:
        return None
    return "Missing Python packages: {}; run: {}".format(
        ", ".join(missing), install_command(missing)
    )


def install_command(names):
    # type: (list[str]) -> str
    """Return the command that installs the packages NAMES."""
    wanted = " ".join("'{}'".format(NEEDED_PACKAGES[name]) for name in names)
    return "{} -m pip install {}".format(sys.executable, wanted)


def main():
    # type: () -> int
    """Run the server; return 1 if it failed, 2 or 3 if it cannot run here."""
    fault = python_fault(sys.version_info[:2])
    if fault is not None:
        sys.stderr.write(fault + "\n")
        return 2
    fault = package_fault()
    if fault is not None:
        sys.stderr.write(fault + "\n")
        return 3
    from gemini_companion_epc.server import run

    return run(install_command(list(NEEDED_PACKAGES)))


if __name__ == "__main__":
    sys.exit(main())
