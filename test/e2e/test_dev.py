# SPDX-License-Identifier: GPL-3.0-or-later
"""``dev/test`` with small tests, and ``dev/package``, in directories of their own."""

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from harness.tools import DEPS, Tools

ROOT = Path(__file__).parents[2]
PYTEST = """
import pytest
def test_passes(): pass
@pytest.mark.skipif(True, reason="no network: here")
def test_is_skipped(): pass
"""
ERT = """
(ert-deftest passes ())
(ert-deftest says-why () (ert-skip "no git"))
(ert-deftest needs () (skip-unless (fboundp 'no-such-function)))
"""
CONTRACT = """
import pytest
@pytest.mark.contract("Gemini CLI: context")
def test_row(): assert 0
"""
LAST = ["All passed but 3 skipped", "2 passed, 0 failed, 3 skipped"]

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    ("parts", "ok", "said"),
    [
        (["pytest"], True, ["no network: here", "1 passed, 0 failed, 1 skipped"]),
        (["ert", "pytest"], True, ["no git (1)", "no-such-function) (1)", *LAST]),
        (["ert", "--", "says-why"], False, ["ert@", "0 passed, 1 failed, 1 skipped"]),
        (["ert", "--", "unknown"], False, ["No test ran", "0 passed, 1 failed"]),
        (["ert", "--", "passes"], True, ["All passed in", "1 passed, 0 failed, 0 sk"]),
        (["pytest", "--", "test/python/bad.py"], False, ["1 passed, 3 failed, 0"]),
        (["contract"], False, ["failed: Gemini CLI: context", "0 passed, 1 failed, 0"]),
    ],
)
def test_nothing_passes_that_did_not_run(
    parts: list[str], ok: bool, said: list[str], tmp_path: Path
) -> None:
    (tmp_path / "dev").mkdir()
    (tmp_path / "test/python").mkdir(parents=True)
    for name in ("test", "env", "batch.el"):
        shutil.copy(ROOT / "dev" / name, tmp_path / "dev")
    for name in ("setup", "package"):
        (tmp_path / "dev" / name).write_text("#!/bin/sh\n")
        (tmp_path / "dev" / name).chmod(0o700)
    shutil.make_archive(
        f"{tmp_path}/dist/gemini-companion-0", "tar", ROOT, base_dir="test/errors"
    )
    (tmp_path / ".venv").symlink_to(Path(sys.executable).parents[1])
    (tmp_path / ".deps").mkdir()
    (tmp_path / ".deps/emacsen").write_text(f"0 {Path(Tools.find().emacs).parent}\n")
    ignored = shutil.ignore_patterns("test_*.py", "__pycache__")
    shutil.copytree(ROOT / "test/e2e", tmp_path / "test/e2e", ignore=ignored)
    (tmp_path / "test/e2e/test_row.py").write_text(CONTRACT)
    (tmp_path / "test/x-test.el").write_text(ERT)
    (tmp_path / "test/python/test_x.py").write_text(PYTEST)
    (tmp_path / "test/python/bad.py").write_text(
        "import pytest\n@pytest.fixture\ndef bad(): assert 0\ndef test_one(): pass\n"
        "def test_two(): assert 0\ndef test_three(bad): pass\ndef test_four(bad): pass"
    )
    env = {name: value for name, value in os.environ.items() if name[:3] != "GC_"}
    ran = subprocess.run(
        ["dev/test", *parts], cwd=tmp_path, env=env, capture_output=True, text=True
    )

    assert (ran.returncode == 0) == ok, ran
    for words in said:
        assert words in ran.stdout, ran.stdout
    assert said[-1] in ran.stdout.splitlines()[-1]


def built(directory: Path, command: list[str], **environ: str) -> dict[str, bytes]:
    """Run ``command`` in a copy of the repository; return the files of the package."""
    hidden = shutil.ignore_patterns(".*", "dist", "test", "bench", "__pycache__")
    shutil.copytree(ROOT, directory, ignore=hidden)
    subprocess.run(command, cwd=directory, env=os.environ | environ, check=True)
    assert not (directory / ".venv").exists()
    with tarfile.open(*directory.glob("dist/*.tar")) as tar:
        files = [(name, tar.extractfile(name)) for name in tar.getnames()]
        return {name: file.read() if file else b"" for name, file in files}


def test_a_package_is_built_with_nothing_and_is_that_of_eask(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("bash", "cat", "cp", "dirname", "env", "mkdir", "rm", "sed", "tar"):
        (programs / name).symlink_to(str(shutil.which(name)))
    ours = built(tmp_path / "ours", ["dev/package"])
    bare = built(tmp_path / "bare", ["dev/package"], PATH=str(programs))
    eask = built(
        tmp_path / "eask",
        [f"{DEPS}/npm/node_modules/.bin/eask", "package"],
        HOME=str(tmp_path),
        EASK_ARCHIVE=os.environ.get("EASK_ARCHIVE", f"{DEPS}/elpa/"),
    )

    (made,) = (name for name in ours if name.endswith("-pkg.el"))
    assert ours.keys() == eask.keys()
    assert [name for name in ours if ours[name] != eask[name]] == [made]
    without = {name.rpartition("/")[2] for name in ours.keys() - bare.keys()}
    assert without == {"gemini-companion.info", "dir"}
    read = """(progn (require 'package) (dolist (file command-line-args-left)
        (let ((desc (with-temp-buffer (insert-file-contents file)
                      (package-process-define-package (read (current-buffer))))))
          (print (list (package-desc-full-name desc) (package-desc-summary desc)
                       (package-desc-reqs desc) (package-desc-extras desc))))))"""
    for name, files in (("1.el", ours), ("2.el", eask)):
        (tmp_path / name).write_bytes(files[made])
    printed = subprocess.run(
        [Tools.find().emacs, "-Q", "--batch", "--eval", read, "1.el", "2.el"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    first, second = printed.stdout.split("\n")[1::2]
    assert first == second != "", printed


def test_the_sdist_has_the_server_and_its_tests_only(tmp_path: Path) -> None:
    uv = Path(sys.executable).with_name("uv")
    subprocess.run([uv, "build", "-q", "--sdist", "-o", tmp_path, ROOT], check=True)
    with tarfile.open(*tmp_path.glob("*.tar.gz")) as tar:
        found = {"/".join(name.split("/")[1:3]) for name in tar.getnames()}

    assert {name for name in found if "/" in name} == {
        "python/gemini_companion_epc",
        "python/requirements-build.txt",
        "python/requirements.txt",
        "test/python",
    }
