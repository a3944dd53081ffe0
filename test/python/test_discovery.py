# SPDX-License-Identifier: GPL-3.0-or-later
import json
import os
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gemini_companion_epc.client import Client
from gemini_companion_epc.clients import CLIENTS
from gemini_companion_epc.common import this_host
from gemini_companion_epc.discovery import DiscoveryFiles
from gemini_companion_epc.port import UnixPort

GEMINI, QWEN, COPILOT, _ = CLIENTS


def _environ(tmp_path: Path) -> dict[str, str]:
    root = str(tmp_path)
    homes = {
        "QWEN_HOME": f"{root}/.qwen",
        "COPILOT_HOME": f"{root}/.copilot",
        "PI_CODING_AGENT_DIR": f"{root}/.pi/agent",
    }
    return {"TMPDIR": root, "PATH": root, **homes}


class _Socket(UnixPort):
    """A socket that may be served, and at which nothing listens."""

    is_served = True

    @property
    def may_listen(self) -> bool:
        return self.is_served

    def listen(self, name: str, variable: str) -> None:
        pass


def _files(tmp_path: Path, pid: int = os.getpid(), port: int = 4711) -> DiscoveryFiles:
    return DiscoveryFiles(pid, port, "token", _environ(tmp_path), _Socket(port))


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("planted", ["gemini", "gemini/ide"])
def test_a_symlink_as_the_directory_is_refused(tmp_path: Path, planted: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / planted).parent.mkdir(exist_ok=True)
    (tmp_path / planted).symlink_to(elsewhere)
    (problem,) = _files(tmp_path).update(())
    assert "not a directory" in problem
    assert list(elsewhere.iterdir()) == []


def test_a_directory_of_another_user_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    GEMINI.directory(_environ(tmp_path)).mkdir(parents=True)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    (problem,) = _files(tmp_path).update(())
    assert "another user" in problem


def test_no_token_goes_where_another_user_wants_it(tmp_path: Path) -> None:
    directory, theirs = tmp_path / "gemini/ide", tmp_path / "theirs"
    directory.mkdir(parents=True)
    directory.chmod(0o777)
    theirs.touch()
    name = f"gemini-ide-server-{os.getpid()}-4711.json"
    for planted in (name, f"{name}.{os.getpid()}"):
        (directory / planted).symlink_to(theirs)
    files = _files(tmp_path)
    files.update(())
    assert files.update(()) == []
    assert not (directory / name).is_symlink()
    assert theirs.read_text() == ""


def test_each_client_has_its_private_file(tmp_path: Path) -> None:
    # Others may write there.
    for name in ("gemini", "gemini/ide"):
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(0o777)
    files, own = _files(tmp_path), os.getpid()
    assert files.update(("/a", "/b")) == []
    assert not (tmp_path / ".qwen").exists()
    # It was installed in the meantime, and has not run.
    for program in ("qwen", "copilot"):
        (tmp_path / program).touch(0o700)
    assert files.update(("/a", "/b")) == []
    # AWS has a program of that name.
    assert not (tmp_path / ".copilot").exists()
    for client, name, bearer in (
        (GEMINI, f"gemini/ide/gemini-ide-server-{own}-4711.json", "token"),
        (QWEN, ".qwen/ide/4711.lock", "token.qwen"),
    ):
        path = tmp_path / name
        assert [client.name, str(path)] in files.names()
        assert json.loads(path.read_text()) == {
            "port": 4711,
            "workspacePath": os.pathsep.join(["/a", "/b"]),
            "authToken": bearer,
            "ideInfo": {"name": "emacs", "displayName": "Emacs"},
            "ppid": own,
            "host": this_host(),
        }
        assert [_mode(private) for private in (path, path.parent)] == [0o600, 0o700]
        assert list(path.parent.iterdir()) == [path]
        path.unlink()
        files.update(("/a", "/b"))
        assert path.exists()
    assert _mode(tmp_path / "gemini") == 0o700
    for _ in range(2):
        files.remove()
    assert not [path for path in tmp_path.rglob("*.*") if path.is_file()]


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_a_sweep_removes_dead_files_of_ours(tmp_path: Path, client: Client) -> None:
    for name in (".qwen", ".copilot", ".pi/agent"):
        (tmp_path / name).mkdir(parents=True)
    files, other = _files(tmp_path), _files(tmp_path, os.getppid(), 2)
    files.sweep()
    other.update(())
    zombie = os.posix_spawnp("true", ["true"], os.environ)
    os.waitid(os.P_PID, zombie, os.WEXITED | os.WNOWAIT)
    stale = [os.getpid(), zombie, -5, 10**9, 2**63, 10**100]
    for port, pid in enumerate(stale, 3):
        _files(tmp_path, pid, port).update(())
    reused = _files(tmp_path, os.getppid(), 99)  # by another process
    reused.update(())
    os.utime(dict(reused.names())[client.name], (1, 1))
    kept = {Path(dict(other.names())[client.name])}
    (directory,) = {path.parent for path in kept}
    here = {"host": this_host()}
    others: list[Any] = [{**here, "ppid": pid} for pid in (None, "x", 1.5, [0])]
    # Another editor writes no host.
    others += [{"ppid": 10**9, "ideInfo": {"name": "vscode"}}, [], here]
    # The process may live on another host with this home, or in its container.
    others += [{"ppid": 10**9, "host": host} for host in ("far", None)]
    for number, content in enumerate(others, 1_000):
        kept.add(directory / client.file_name(10**9, number))
        (directory / client.file_name(10**9, number)).write_text(json.dumps(content))
    for name in (f"gemini-ide-server-{10**9}.json", "notes"):
        kept.add(directory / name)
        (directory / name).write_text(json.dumps({**here, "ppid": 10**9}))
    files.sweep()
    assert set(directory.iterdir()) == kept


@pytest.mark.parametrize(
    "plant",
    [
        os.mkfifo,
        lambda path: path.symlink_to("/dev/zero"),
        lambda path: path.write_text("[" * 100_000),
        lambda path: subprocess.run(["truncate", "-s1T", path], check=True),
    ],
    ids=["fifo", "link", "large", "sparse"],
)
@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_what_has_no_end_is_not_read(
    tmp_path: Path, client: Client, plant: Callable[[Path], object]
) -> None:
    for name in (".qwen", ".copilot", ".pi/agent"):
        (tmp_path / name).mkdir(parents=True)
    files = _files(tmp_path)
    own = Path(dict(files.names())[client.name])
    own.parent.mkdir(parents=True)
    plant(own)
    plant(own.parent / client.file_name(10**9, 12))
    files.sweep()
    assert files.update(()) == []
    assert json.loads(own.read_text())["host"] == this_host()


def test_no_file_leads_to_a_socket_that_is_not_served_yet(tmp_path: Path) -> None:
    (tmp_path / ".copilot").mkdir()
    socket = _Socket(4711)
    files = DiscoveryFiles(os.getpid(), 4711, "token", _environ(tmp_path), socket)
    path = Path(dict(files.names())[COPILOT.name])
    for is_served in (False, True):
        socket.is_served = is_served
        assert files.update(()) == []
        assert path.exists() is is_served


def test_what_a_client_cannot_read_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    odd = tmp_path / f"a{os.pathsep}b"
    odd.mkdir()
    files = _files(tmp_path)
    assert len(files.update((str(tmp_path), str(odd)))) == 1
    unread, unwritten = _files(tmp_path / "file").update((str(odd),))
    assert unread.startswith(f"Gemini CLI cannot connect from {odd}")
    assert unwritten.startswith("Cannot write")


def _elsewhere(place: Path, pid: int = os.getpid(), port: int = 4711) -> Path:
    """Return the name of the file for CLIs whose temporary directory is ``place``."""
    return place / f"gemini/ide/gemini-ide-server-{pid}-{port}.json"


def test_a_cli_with_another_temporary_directory_finds_a_file_there(
    tmp_path: Path,
) -> None:
    own, one, two = (tmp_path / name for name in ("own", "one", "two"))
    files = _files(own)
    # Its own directory needs no second file, however it is spelled.
    (tmp_path / "link").symlink_to(own)
    for temporaries in ([str(own)], [f"{tmp_path}/link/"]):
        files.search_also(temporaries)
        assert files.update(("/a",)) == []
        assert len(files.names()) == len(CLIENTS)
    files.search_also([str(one), str(two)])
    assert files.update(("/a",)) == []
    written = [_elsewhere(one), _elsewhere(two)]
    assert files.names()[len(CLIENTS) :] == [["gemini", str(path)] for path in written]
    assert files.directories(GEMINI) == {
        str(_elsewhere(p).parent) for p in (own, one, two)
    }
    for path in written:
        assert json.loads(path.read_text())["workspacePath"] == "/a"
        assert [_mode(p) for p in (path, path.parent)] == [0o600, 0o700]
    # They follow the roots, and come back after a cleanup.
    written[0].unlink()
    files.update(("/b",))
    for path in written:
        assert json.loads(path.read_text())["workspacePath"] == "/b"
    # The last CLI with the first directory has ended; then Emacs ends.
    files.search_also([str(two)])
    files.update(("/b",))
    assert [path.exists() for path in written] == [False, True]
    files.remove()
    assert not [path for path in tmp_path.rglob("*.*") if path.is_file()]


def test_no_token_goes_into_a_workspace_root_or_to_another_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, place = tmp_path / "root", tmp_path / "place"
    (root / ".tmp").mkdir(parents=True)
    (tmp_path / "link").symlink_to(root / ".tmp")
    files = _files(tmp_path / "own")
    files.search_also([str(root / ".tmp"), str(tmp_path / "link"), str(root)])
    problems = files.update((str(root),))
    assert len(problems) == 3
    assert all("is in a workspace root; set TMPDIR" in problem for problem in problems)
    assert list((root / ".tmp").iterdir()) == []
    # A directory becomes a root.
    files.search_also([str(place)])
    assert files.update((str(root),)) == []
    assert _elsewhere(place).exists()
    assert len(files.update((str(root), str(place)))) == 1
    assert not _elsewhere(place).exists()
    # Another user has made the directory before.
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "gemini").symlink_to(root)
    files.search_also([str(theirs)])
    (problem,) = files.update(())
    assert "not a directory" in problem
    assert "TMPDIR" in problem
    (theirs / "gemini").unlink()
    _elsewhere(theirs).parent.mkdir(parents=True)
    files.update(())
    files.remove()
    files = _files(tmp_path / "own")
    files.search_also([str(theirs)])
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert any("another user" in problem for problem in files.update(()))
    assert not _elsewhere(theirs).exists()


def test_stale_files_in_another_directory_go_when_it_is_used_again(
    tmp_path: Path,
) -> None:
    own, place = tmp_path / "own", tmp_path / "place"
    zombie = os.posix_spawnp("true", ["true"], os.environ)
    os.waitid(os.P_PID, zombie, os.WEXITED | os.WNOWAIT)
    for pid in (zombie, os.getppid()):
        other = _files(own, pid, 2)
        other.search_also([str(place)])
        other.update(())
    # The previous server of this Emacs has crashed.
    for port in (4711, 4712):
        crashed = _files(own, port=port)
        crashed.search_also([str(place)])
        crashed.update(())
    files = _files(own)
    files.sweep()
    files.search_also([str(place)])
    files.update(())
    living = [_elsewhere(place), _elsewhere(place, os.getppid(), 2)]
    assert sorted(living[0].parent.iterdir()) == sorted(living)
