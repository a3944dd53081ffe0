# SPDX-License-Identifier: GPL-3.0-or-later
import json
import os
import re
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gemini_companion_epc import discovery
from gemini_companion_epc.discovery import Discovery
from gemini_companion_epc.exceptions import DiscoveryError

CLIENT_PATTERN = r"^gemini-ide-server-(\d+)-\d+\.json$"


def _discovery(*workspaces: str, pid: int | None = None) -> Discovery:
    return Discovery(pid or os.getpid(), 4711, workspaces, "token")


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(
    ("environ", "is_windows", "expected"),
    [
        ({}, False, "/tmp"),
        ({"TMPDIR": "/a/", "TMP": "/b", "TEMP": "/c"}, False, "/a"),
        ({"TMPDIR": "", "TMP": "/b", "TEMP": "/c"}, False, "/b"),
        ({"TEMP": "/c"}, False, "/c"),
        ({"TMPDIR": "/a", "TMP": "b", "TEMP": "c"}, True, "c"),
        ({"TMP": "b"}, True, "b"),
        ({"SystemRoot": "w"}, True, "w\\temp"),
    ],
)
def test_the_temporary_folder_is_the_one_of_node(
    environ: dict[str, str], is_windows: bool, expected: str
) -> None:
    assert discovery.node_tmpdir(environ, is_windows) == Path(expected)


def test_name_and_payload_are_what_the_client_reads(tmp_path: Path) -> None:
    found = _discovery("/a", "/b", pid=12)
    path = found.path(tmp_path)
    assert path == tmp_path / "gemini/ide/gemini-ide-server-12-4711.json"
    assert re.match(CLIENT_PATTERN, path.name)
    assert found.payload() == {
        "port": 4711,
        "workspacePath": os.pathsep.join(["/a", "/b"]),
        "authToken": "token",
        "ideInfo": {"name": "emacs", "displayName": "Emacs"},
    }


def test_no_workspace_is_an_empty_string() -> None:
    assert _discovery().payload()["workspacePath"] == ""


def test_the_token_is_not_shown() -> None:
    assert "'token'" not in repr(_discovery())


def test_workspaces_are_true_existing_and_single(tmp_path: Path) -> None:
    real = tmp_path / "real"
    odd = tmp_path / f"a{os.pathsep}b"
    link = tmp_path / "link"
    for folder in (real, odd):
        folder.mkdir()
    link.symlink_to(real)
    (tmp_path / "file").touch()
    roots = [real, link, odd, tmp_path / "none", tmp_path / "file"]
    kept, refused = discovery.workspaces(
        ["", "relative", "~", "/ssh:host:/x", *map(str, roots)]
    )
    assert kept == (os.path.realpath(real),)
    assert refused == (str(odd),)


def test_the_file_is_private_and_complete(tmp_path: Path) -> None:
    path = discovery.write(_discovery("/a"), tmp_path)
    assert json.loads(path.read_text())["workspacePath"] == "/a"
    assert [_mode(one) for one in (path, path.parent, path.parent.parent)] == [
        0o600,
        0o700,
        0o700,
    ]
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_writing_again_replaces_the_file(tmp_path: Path) -> None:
    discovery.write(_discovery("/a"), tmp_path)
    path = discovery.write(_discovery("/b"), tmp_path)
    assert json.loads(path.read_text())["workspacePath"] == "/b"


def test_a_folder_that_others_may_write_is_made_private(tmp_path: Path) -> None:
    folder = discovery.folder(tmp_path)
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    discovery.write(_discovery(), tmp_path)
    assert _mode(folder) == 0o700


@pytest.mark.parametrize("planted", ["gemini", "gemini/ide"])
def test_a_symlink_in_place_of_a_folder_is_refused(
    tmp_path: Path, planted: str
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / planted).parent.mkdir(exist_ok=True)
    (tmp_path / planted).symlink_to(elsewhere)
    with pytest.raises(DiscoveryError, match="not a folder"):
        discovery.write(_discovery(), tmp_path)
    assert list(elsewhere.iterdir()) == []


def test_a_folder_of_another_user_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    discovery.folder(tmp_path).mkdir(parents=True)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(DiscoveryError, match="another user"):
        discovery.write(_discovery(), tmp_path)


def test_what_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DiscoveryError, match="Cannot write"):
        discovery.write(_discovery(), tmp_path / "file")


def test_only_our_own_file_is_removed(tmp_path: Path) -> None:
    ours = _discovery()
    path = discovery.write(ours, tmp_path)
    discovery.remove(path, Discovery(ours.pid, ours.port, (), "another"))
    assert path.exists()
    discovery.remove(path, ours)
    assert not path.exists()
    discovery.remove(path, ours)


def _dead_pid() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_a_sweep_removes_dead_files_of_ours_and_no_others(tmp_path: Path) -> None:
    dead = _dead_pid()
    ours = discovery.write(_discovery(pid=dead), tmp_path)
    living = discovery.write(_discovery(), tmp_path)
    others = {
        f"gemini-ide-server-{dead}-1.json": '{"ideInfo": {"name": "vscode"}}',
        f"gemini-ide-server-{dead}-2.json": '{"ideInfo": {"name": "em',
        f"gemini-ide-server-{dead}-3.json": "[]",
        f"gemini-ide-server-{dead}.json": json.dumps(_discovery().payload()),
        f"gemini-ide-server-{dead}-1.{os.getpid()}.tmp": "",
        "notes.json": json.dumps(_discovery().payload()),
    }
    for name, content in others.items():
        (ours.parent / name).write_text(content)
    (ours.parent / f"gemini-ide-server-{os.getpid()}-1.{dead}.tmp").write_text("{")
    discovery.sweep(tmp_path, _discovery())
    left = {path.name for path in ours.parent.iterdir()}
    assert left == {living.name, *others}


def test_a_sweep_removes_the_file_of_a_port_that_was_lost(tmp_path: Path) -> None:
    mine = _discovery()
    discovery.write(mine, tmp_path)
    discovery.write(replace(mine, port=1), tmp_path)
    another = discovery.write(replace(mine, pid=os.getppid(), port=2), tmp_path)
    discovery.sweep(tmp_path, mine)
    left = set(discovery.folder(tmp_path).iterdir())
    assert left == {mine.path(tmp_path), another}


@pytest.mark.parametrize("pid", [10**9, 2**31, 2**63, 10**100])
def test_a_sweep_takes_any_number_for_a_pid(tmp_path: Path, pid: int) -> None:
    path = discovery.write(_discovery(pid=pid), tmp_path)
    discovery.sweep(tmp_path, _discovery())
    assert not path.exists()


def test_a_sweep_without_a_folder_does_nothing(tmp_path: Path) -> None:
    discovery.sweep(tmp_path, _discovery())
    assert list(tmp_path.iterdir()) == []
