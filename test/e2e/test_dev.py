# SPDX-License-Identifier: GPL-3.0-or-later
"""Scripts in ``dev``: ``package`` in directories of its own, the others as they are."""

import os
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

from harness.tools import DEPS, Tools

ROOT = Path(__file__).parents[2]


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


def test_one_test_needs_nothing_but_emacs(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".*", "__pycache__"))
    name = "gemini-companion-review-asks-before-excluding-the-last-hunk"
    assert name in (ROOT / "CONTRIBUTING.org").read_text()
    command = [f"{tree}/dev/one", name]
    environ = os.environ | {"EMACS": Tools.find().emacs}
    printed = subprocess.run(command, env=environ, capture_output=True, text=True)
    assert "Ran 1 tests, 1 results as expected" in printed.stderr, printed


def test_generics_are_listed_with_all_their_methods() -> None:
    printed = subprocess.run(
        [f"{ROOT}/dev/generics"], capture_output=True, text=True, check=True
    ).stdout
    texts = [file.read_text() for file in ROOT.glob("lisp/*/*.el")]
    texts.append((ROOT / "gemini-companion.el").read_text())
    methods = sum(text.count("\n(cl-defmethod ") for text in texts)
    assert len(re.findall(r"(?m)^  \S.*\.el:\d+$", printed)) == methods
    assert re.search(r"(?m)^\S+-request-label  lisp/\S+\n  \S.*\n  \S", printed)


def test_each_flow_is_measured_as_the_map_says() -> None:
    printed = subprocess.run(
        [f"{ROOT}/dev/flows"],
        env=os.environ | {"GC_EMACS": Tools.find().emacs},
        capture_output=True,
        text=True,
    )
    form = r"^\| (\S.*?) +\| +(\d+) \| +(\d+) \| +\d+ \| +\d+ \|$"
    rows = re.findall(form, printed.stdout, re.M)
    assert len(rows) == 6, printed
    # Something is set in some of the files.
    assert all(0 < int(path) < int(files) for _, path, files in rows), printed
    # The tool has made the table, and its flows are those.
    design = (ROOT / "doc" / "design.org").read_text()
    age = r"Made by =dev/flows --write= on [-0-9]{10}, at [0-9a-f]+:\n\n"
    table = re.search(age + r"((?:\|.*\n)+)", design)
    assert table, design
    written = re.findall(form, table.group(1), re.M)
    assert [name for name, *_ in written] == [name for name, *_ in rows]
