# SPDX-License-Identifier: GPL-3.0-or-later
import ast
import sys
from pathlib import Path

import pytest

from conftest import run_python
from gemini_companion_epc import __main__
from gemini_companion_epc.config import parse_start_line
from gemini_companion_epc.types import StartError


def test_an_old_python_can_read_the_refusal_with_the_remedy() -> None:
    assert "3.10 or later" in (__main__.python_problem((3, 9)) or "")
    assert __main__.python_problem((3, 10)) is None
    source = Path(__main__.__file__).read_text(encoding="utf-8")
    ast.parse(source, feature_version=(3, 6))


def test_nothing_is_printed_but_the_remedy_when_packages_are_missing() -> None:
    result = run_python("-S", "-m", "gemini_companion_epc")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("Missing or incompatible Python package: epc, ")
    assert f"{sys.executable} -m pip install 'epc>=0.0.5,<0.1' 'sexp" in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("line", "expected"),
    [(b"", "M-x gemini-companion-mode"), (b"{\n", "malformed"), (b"{}\n", "secret")],
)
def test_a_bad_start_line_is_refused(line: bytes, expected: str) -> None:
    with pytest.raises(StartError, match=expected):
        parse_start_line(line)


def test_settings_by_which_pip_installs_elsewhere_are_named(tmp_path: Path) -> None:
    call = "import gemini_companion_epc.__main__ as program; print(program.{}())"
    settings = call.format("check_settings")
    assert run_python("-c", settings).stdout == "0\n"
    assert run_python("-c", call.format("check_packages")).stdout == "0\n"
    file = tmp_path / "home/.config/pip/pip.conf"
    file.parent.mkdir(parents=True)
    names = ", ".join(__main__.NEEDED_PACKAGES)
    index = "[global]\nindex-url = https://x\n"
    for section, name in (("global", "target"), ("install", "prefix")):
        top = index if section == "global" else f"{index}[install]\n"
        file.write_text(f"{top}{name} = /a b\n")
        finding = f"Setting of pip: {section}.{name}='/a b'\n"
        assert run_python("-c", settings).stdout == f"{finding}1\n"
        without = run_python("-S", "-c", call.format("check_packages")).stdout
        assert without == f"Packages not importable: {names}\n{finding}1\n"
