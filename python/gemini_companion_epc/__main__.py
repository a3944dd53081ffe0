# SPDX-License-Identifier: GPL-3.0-or-later
"""Check the requirements of the server, then run it.

An old Python must be able to report that it is too old, so this file keeps to
the syntax of Python 3.6.
"""

import re
import subprocess
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

ELSEWHERE = re.compile(r"^\S{1,40}\.(target|prefix|root|dry-run)=")


def python_problem(version):
    # type: (tuple[int, int]) -> str | None
    """Return why Python ``version`` cannot run the server, or None if it can."""
    if version >= NEEDED_PYTHON:
        return None
    return "Python {}.{} or later is required; {} is {}.{}".format(
        *NEEDED_PYTHON, sys.executable, *version
    )


def missing_packages():
    # type: () -> list[str]
    """Return the names of the packages that cannot be imported."""
    return [name for name in NEEDED_PACKAGES if find_spec(name) is None]


def check_settings():
    # type: () -> int
    """Print the settings by which pip installs elsewhere; return 1 if there are any."""
    command = [sys.executable, "-m", "pip", "config", "list"]
    run = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    lines = run.stdout.decode(errors="replace").splitlines()
    settings = [line for line in lines if ELSEWHERE.match(line)]
    for line in settings:
        print("Setting of pip: {}".format(line))
    return 1 if settings else 0


def check_packages():
    # type: () -> int
    """Return 0 if the server would find its packages, which were installed.

    Otherwise print which it lacks, and the settings of pip that may be the reason.
    """
    missing = missing_packages()
    if missing:
        print("Packages not importable: {}".format(", ".join(missing)))
        check_settings()
    return 1 if missing else 0


def main():
    # type: () -> int
    """Run the server and return the exit status."""
    problem = python_problem(sys.version_info[:2])
    if problem is None:
        try:
            # Most are imported late.
            missing = missing_packages()
            if missing:
                raise ImportError(", ".join(missing))
            from gemini_companion_epc.server import run

            return run()
        except ImportError as error:
            wanted = " ".join(
                "'{}'".format(package) for package in NEEDED_PACKAGES.values()
            )
            problem = (
                "Missing or incompatible Python package: {}; to fix it, run: "
                "{} -m pip install {}"
            ).format(error, sys.executable, wanted)
    sys.stderr.write(problem + "\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
