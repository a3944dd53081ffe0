# SPDX-License-Identifier: GPL-3.0-or-later
import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from gemini_companion_epc import discovery
from gemini_companion_epc.clients import CLIENTS, Client
from gemini_companion_epc.discovery import Discovery, DiscoveryFiles
from gemini_companion_epc.exceptions import DiscoveryError

CLIENT_PATTERN = r"^gemini-ide-server-(\d+)-\d+\.json$"


GEMINI, QWEN = CLIENTS


def _discovery(
    *roots: str, pid: int | None = None, client: Client = GEMINI
) -> Discovery:
    return Discovery(client, pid or os.getpid(), 4711, roots, "token")


def _environ(tmp_path: Path) -> dict[str, str]:
    return {"TMPDIR": str(tmp_path), "QWEN_HOME": str(tmp_path / "qwen")}


def _directory(tmp_path: Path) -> Path:
    return GEMINI.directory(_environ(tmp_path))


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_name_and_payload_are_what_the_client_reads(tmp_path: Path) -> None:
    found = _discovery("/a", "/b", pid=12)
    path = found.path(_environ(tmp_path))
    assert path == tmp_path / "gemini/ide/gemini-ide-server-12-4711.json"
    assert re.match(CLIENT_PATTERN, path.name)
    assert found.payload() == {
        "port": 4711,
        "workspacePath": os.pathsep.join(["/a", "/b"]),
        "authToken": "token",
        "ideInfo": {"name": "emacs", "displayName": "Emacs"},
        "ppid": 12,
    }


def test_the_token_is_not_shown() -> None:
    assert "'token'" not in repr(_discovery())


def test_roots_are_true_existing_and_single(tmp_path: Path) -> None:
    real = tmp_path / "real"
    odd = tmp_path / f"a{os.pathsep}b"
    link = tmp_path / "link"
    for directory in (real, odd):
        directory.mkdir()
    link.symlink_to(real)
    (tmp_path / "file").touch()
    roots = [real, link, odd, tmp_path / "none", tmp_path / "file"]
    kept = discovery.true_names(["", "relative", "~", "/ssh:host:/x", *map(str, roots)])
    assert kept == (os.path.realpath(real), os.path.realpath(odd))


def test_the_file_is_private_and_complete(tmp_path: Path) -> None:
    path = discovery.write(_discovery("/a"), _environ(tmp_path))
    assert json.loads(path.read_text())["workspacePath"] == "/a"
    assert [_mode(one) for one in (path, path.parent, path.parent.parent)] == [
        0o600,
        0o700,
        0o700,
    ]
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_a_directory_that_others_may_write_is_made_private(tmp_path: Path) -> None:
    directory = _directory(tmp_path)
    directory.mkdir(parents=True)
    directory.chmod(0o777)
    discovery.write(_discovery(), _environ(tmp_path))
    assert _mode(directory) == 0o700


@pytest.mark.parametrize("planted", ["gemini", "gemini/ide"])
def test_a_symlink_in_place_of_a_directory_is_refused(
    tmp_path: Path, planted: str
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / planted).parent.mkdir(exist_ok=True)
    (tmp_path / planted).symlink_to(elsewhere)
    with pytest.raises(DiscoveryError, match="not a directory"):
        discovery.write(_discovery(), _environ(tmp_path))
    assert list(elsewhere.iterdir()) == []


def test_a_directory_of_another_user_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _directory(tmp_path).mkdir(parents=True)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(DiscoveryError, match="another user"):
        discovery.write(_discovery(), _environ(tmp_path))


def test_what_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DiscoveryError, match="Cannot write"):
        discovery.write(_discovery(), _environ(tmp_path / "file"))


def test_only_our_own_file_is_removed(tmp_path: Path) -> None:
    ours = _discovery()
    path = discovery.write(ours, _environ(tmp_path))
    discovery.remove(path, replace(ours, token="another"))
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
    ours = discovery.write(_discovery(pid=dead), _environ(tmp_path))
    living = discovery.write(_discovery(), _environ(tmp_path))
    others = {
        f"gemini-ide-server-{dead}-1.json": '{"ideInfo": {"name": "vscode"}}',
        f"gemini-ide-server-{dead}-2.json": '{"ideInfo": {"name": "em',
        f"gemini-ide-server-{dead}-3.json": "[]",
        f"gemini-ide-server-{dead}.json": json.dumps(_discovery().payload()),
        "notes.json": json.dumps(_discovery().payload()),
    }
    for name, content in others.items():
        (ours.parent / name).write_text(content)
    discovery.sweep(_discovery(), _environ(tmp_path))
    left = {path.name for path in ours.parent.iterdir()}
    assert left == {living.name, *others}


@pytest.mark.parametrize("pid", [10**9, 2**31, 2**63, 10**100])
def test_a_sweep_takes_any_number_for_a_pid(tmp_path: Path, pid: int) -> None:
    path = discovery.write(_discovery(pid=pid), _environ(tmp_path))
    discovery.sweep(_discovery(), _environ(tmp_path))
    assert not path.exists()


def test_a_sweep_without_a_directory_does_nothing(tmp_path: Path) -> None:
    discovery.sweep(_discovery(), _environ(tmp_path))
    assert list(tmp_path.iterdir()) == []


# Clients


def test_qwen_reads_a_lock_named_for_the_port(tmp_path: Path) -> None:
    found = _discovery("/a", "/b", pid=12, client=QWEN)
    assert found.path(_environ(tmp_path)) == tmp_path / "qwen/ide/4711.lock"
    assert found.payload() == {
        "port": 4711,
        "workspacePath": os.pathsep.join(["/a", "/b"]),
        "authToken": "token.qwen",
        "ideInfo": {"name": "emacs", "displayName": "Emacs"},
        "ppid": 12,
    }


class _Third(Client):
    def directory(self, environ: Mapping[str, str]) -> Path:
        return Path(environ["THIRD_HOME"]) / "editors"


def _third() -> Client:
    return _Third(
        name="third",
        title="Third",
        file_name=lambda pid, port: f"third-{port}",
        file_pattern=re.compile(r"third-\d+"),
        needs_home=True,
    )


@pytest.fixture(params=["gemini", "qwen", "third"])
def client(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Client:
    rows = (*CLIENTS, _third())
    monkeypatch.setattr(discovery, "CLIENTS", rows)
    return next(row for row in rows if row.name == request.param)


def _homes(tmp_path: Path, *names: str) -> dict[str, str]:
    for name in names:
        (tmp_path / name).mkdir()
    return {**_environ(tmp_path), "THIRD_HOME": str(tmp_path / "third")}


def test_each_client_of_the_table_has_its_file(tmp_path: Path, client: Client) -> None:
    environ = _homes(tmp_path, "qwen", "third")
    files = DiscoveryFiles(os.getpid(), 4711, "token", environ)
    assert files.update(discovery.true_names([str(tmp_path)])) == []

    path = client.directory(environ) / client.file_name(os.getpid(), 4711)
    assert [client.name, str(path)] in files.names()
    assert client.file_pattern.fullmatch(path.name)
    content = json.loads(path.read_text())
    assert content["authToken"] == client.bearer("token")
    assert content["workspacePath"] == os.path.realpath(tmp_path)
    assert _mode(path) == 0o600

    path.unlink()
    files.restore()
    assert path.exists()
    files.remove()
    assert list(path.parent.iterdir()) == []


def test_a_stale_file_of_each_client_is_swept(tmp_path: Path, client: Client) -> None:
    environ = _homes(tmp_path, "qwen", "third")
    left = Discovery(client, _dead_pid(), 1, (), "token")
    discovery.write(left, environ)
    lost = discovery.write(replace(left, pid=os.getpid(), port=2), environ)
    living = discovery.write(replace(left, pid=os.getppid(), port=3), environ)
    DiscoveryFiles(os.getpid(), 4711, "token", environ).sweep()
    assert not lost.exists()
    assert list(living.parent.iterdir()) == [living]


@pytest.mark.parametrize(
    ("pid", "editor"),
    [(None, "emacs"), ("x", "emacs"), (1.5, "emacs"), ([], "emacs"), (10**9, "vscode")],
)
def test_a_lock_of_another_program_is_left(
    tmp_path: Path, pid: object, editor: str
) -> None:
    environ = _homes(tmp_path, "qwen")
    path = QWEN.directory(environ) / "1.lock"
    path.parent.mkdir()
    path.write_text(json.dumps({"ppid": pid, "ideInfo": {"name": editor}}))
    discovery.sweep(_discovery(client=QWEN), environ)
    assert path.exists()


def test_the_home_of_a_client_is_never_made(tmp_path: Path) -> None:
    environ = _homes(tmp_path)
    files = DiscoveryFiles(os.getpid(), 4711, "token", environ)
    files.update((str(tmp_path),))
    files.restore()
    assert not (tmp_path / "qwen").exists()
    assert _directory(tmp_path).is_dir()

    _homes(tmp_path, "qwen")
    files.restore()
    assert (tmp_path / "qwen/ide/4711.lock").exists()


@pytest.mark.parametrize(
    "home", ["~no-such-user", "/" + 300 * "x"], ids=["unknown", "unreadable"]
)
def test_a_home_that_cannot_be_read_is_none(tmp_path: Path, home: str) -> None:
    environ = {**_environ(tmp_path), "QWEN_HOME": home}
    files = DiscoveryFiles(os.getpid(), 4711, "token", environ)
    files.sweep()
    assert files.update((str(tmp_path),)) == []
    assert _directory(tmp_path).is_dir()


def test_a_root_that_a_client_cannot_read_is_a_sentence(tmp_path: Path) -> None:
    odd = tmp_path / f"a{os.pathsep}b"
    odd.mkdir()
    files = DiscoveryFiles(os.getpid(), 4711, "token", _homes(tmp_path, "qwen"))
    (problem,) = files.update((str(odd),))
    assert problem.startswith(f"Gemini CLI cannot connect from {odd}")
