# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands that ``CONTRIBUTING.org`` names, as far as a test can run them."""

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = ROOT.joinpath("CONTRIBUTING.org").read_text(encoding="utf-8")
TESTS = "\n".join(
    path.read_text(encoding="utf-8") for path in ROOT.glob("test/lisp/**/*-test.el")
)


def commands() -> list[str]:
    """Return the lines of code and what is between equal signs, if it is a command."""
    blocks = re.findall(r"^#\+begin_src sh\n(.*?)^#\+end_src", TEXT, re.M | re.S)
    named = re.findall(r"(?<!\w)=([^=]+)=(?!\w)", re.sub(r"\s+", " ", TEXT))
    lines = [line for block in blocks for line in block.splitlines()] + named
    is_command = re.compile(r"(make|dev/[a-z]+|\.venv/bin/python)( |$)")
    return sorted(
        {line.partition(" #")[0].strip() for line in lines if is_command.match(line)}
    )


def run(*command: str) -> str:
    """Return what ``command`` prints, which must succeed."""
    # Within make, its options would count for this one, too.
    environ = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, env=environ
    )
    assert done.returncode == 0, done
    return done.stdout


def check_test_part(part: str, names: list[str]) -> None:
    """Check the ``part`` of ``dev/test``, and the ``names`` of tests for it."""
    kind = part.partition("@")[0]
    assert re.search(rf"^{kind}\(\) |\b{kind}\b.*\)$", run("cat", "dev/test"), re.M)
    for name in names:
        path, _, test = name.partition("::")
        if name in ("TEST", "NAME"):
            continue
        if kind == "ert":
            is_wing = ROOT.joinpath("test/lisp", name).is_dir()
            assert is_wing or f"(ert-deftest {name} " in TESTS, name
        else:
            text = ROOT.joinpath(path).read_text(encoding="utf-8")
            assert test in ("", "TEST") or f"def {test}(" in text, name


def test_there_are_commands() -> None:
    assert len(commands()) > 20
    assert "make setup" in commands()


@pytest.mark.parametrize("command", commands())
def test_each_command_of_contributing_exists(command: str) -> None:
    program, *arguments = shlex.split(command)
    if program == "make":
        assert "Nothing" not in run("make", "--dry-run", *arguments)
    elif program.startswith("dev/"):
        assert os.access(ROOT / program, os.X_OK)
        assert run(program, "--help")
        if program == "dev/test":
            parts, names = arguments, list[str]()
            if "--" in arguments:
                at = arguments.index("--")
                parts, names = arguments[:at], arguments[at + 1 :]
            words = [part for part in parts if part.islower() and part[0] != "-"]
            for part in words:
                check_test_part(part, names)
            options = {part for part in parts if part.startswith("--")} - {"--help"}
            assert all(option in run("dev/test", "--help") for option in options)
    else:
        assert ROOT.joinpath(arguments[0]).exists()
