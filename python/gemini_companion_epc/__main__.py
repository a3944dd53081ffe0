# SPDX-License-Identifier: GPL-3.0-or-later
"""Check the requirements of the server, then run it.

An old Python must be able to report that it is too old, so this file keeps to
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


def python_problem(version):
    # type: (tuple[int, int]) -> str | None
    """Return why Python ``version`` cannot run the server, or None if it can."""
    if version >= NEEDED_PYTHON:
        return None
    return "Python {}.{} or later is required; {} is {}.{}".format(
        *NEEDED_PYTHON, sys.executable, *version
    )


def main():
    # type: () -> int
    """Run the server and return the exit status."""
    problem = python_problem(sys.version_info[:2])
    if problem is None:
        try:
            # Most are imported late.
            missing = [name for name in NEEDED_PACKAGES if find_spec(name) is None]
            if missing:
                raise ImportError(", ".join(missing))
            from gemini_companion_epc.server import run

            return run()
        except ImportError as error:
            wanted = " ".join("'{}'".format(one) for one in NEEDED_PACKAGES.values())
            problem = (
                "Missing or incompatible Python package: {}; to fix it, run: "
                "{} -m pip install {}"
            ).format(error, sys.executable, wanted)
    sys.stderr.write(problem + "\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
