# SPDX-License-Identifier: GPL-3.0-or-later
"""The lists of packages and of files are complete, and of what asks the system."""

import re
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from gemini_companion_epc.__main__ import NEEDED_PACKAGES

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "python" / "gemini_companion_epc"
HASHED = re.compile(
    r"([\w.-]+)==([\w.]+)(?: ; [^\n]+)?( \\\n    --hash=sha256:[0-9a-f]{64})+"
)


def entries(name: str) -> str:
    text = (ROOT / "python" / name).read_text(encoding="utf-8")
    before, entries = text.split("#    dev/lock\n")
    assert before.startswith("--only-binary :all:\n--no-binary epc\n#")
    return entries


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-build.txt"])
def test_list_has_a_hash_for_each_package_and_names_no_index(name: str) -> None:
    assert not HASHED.sub("", entries(name)).strip()


def test_what_is_asked_for_is_checked_and_listed() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    match = re.search(r"^dependencies = \[\n(.*?)^\]", text, re.DOTALL | re.MULTILINE)
    assert match
    requirements = [Requirement(line) for line in re.findall('"([^"]+)"', match[1])]
    assert requirements == [*map(Requirement, NEEDED_PACKAGES.values())]
    listed = HASHED.findall(entries("requirements.txt"))
    for requirement in requirements:
        versions = [version for name, version, _ in listed if name == requirement.name]
        assert versions
        assert all(map(requirement.specifier.contains, versions))


@pytest.mark.parametrize(
    "name", ["Eask", "CONTRIBUTING.org", "doc/gemini-companion.org"]
)
def test_recipe_has_all_files_that_the_server_runs(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    patterns = re.findall(r'"(python/gemini_companion_epc/[^"]+)"', text)
    paths = {path for pattern in patterns for path in ROOT.glob(pattern)}
    assert {*PACKAGE.glob("*.py"), PACKAGE / "outpost.js"} <= paths
    assert {*PACKAGE.glob("extensions/*")} <= paths


def test_no_other_module_knows_the_system() -> None:
    asks = re.compile(r"sys\.platform|os\.name|hasattr\((os|socket|signal)|/proc/")
    names = {
        path.name for path in PACKAGE.glob("*.py") if asks.search(path.read_text())
    }
    # The bridge is a program that runs without the package.
    assert names - {"bridge.py", "common.py"} == {"system.py"}
