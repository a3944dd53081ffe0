# SPDX-License-Identifier: GPL-3.0-or-later
"""Remote hosts: a real outpost in Node.js, with a HOME and a TMPDIR of its own."""

import asyncio
import base64
import gc
import hashlib
import json
import os
import re
import shutil
import signal
import socket
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from conftest import Alone, CliOf, dead_pid, until
from fake_cli import BOUND, PING, FakeCli, FakeCopilot
from gemini_companion_epc import copies, outpost, outpost_lines, tunnel
from gemini_companion_epc.common import this_host
from gemini_companion_epc.hosts import Hosts
from gemini_companion_epc.outpost import OUTPOST, Outpost
from gemini_companion_epc.types import File, RemoteError
from scene import paths_of

pytestmark = pytest.mark.skipif(not shutil.which("node"), reason="needs Node.js")

SLOW_LINE = """
import os, subprocess, sys, time
with subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE) as command:
    while data := os.read(command.stdout.fileno(), 4000):
        os.write(1, data)
        time.sleep(0.05)
"""
# The host does not notice the end of its connection.
HALF_OPEN = """
cd "$0" && mkfifo i$$ o$$ && exec 3<&0
"$@" 0<>i$$ 1<>o$$ & cat <&3 >i$$ & exec cat o$$
"""
RUN = "eval(Buffer.from(process.argv[1],'base64')+'')"


class Far:
    """A host that is a directory, with a CLI in it."""

    def __init__(self, alone: Alone, directory: Path, cli_of: CliOf) -> None:
        self.alone = alone
        self._cli_of = cli_of
        self.directory = directory
        self.name = f"/test:{directory.name}:"
        self.project = directory / "project"
        self.asked = directory / "asked"
        self.home = "home"
        for name in ("home", "bin", "tmp", "copies", "project/.git", "project/sub"):
            (directory / name).mkdir(parents=True)
        (directory / "bin/qwen").touch()  # It has never run.
        (directory / "package.json").write_text('{"version": "1.0.0"}')

    def connect(
        self, is_counted: Any = False, within: tuple[str, ...] = (), **more: Any
    ) -> dict[str, Any]:
        """Connect the host by an outpost that ``within`` runs; return the facts."""
        here = self.directory
        command = ["env", f"PATH={os.environ['PATH']}:{here}/bin"]
        command += [f"HOME={here}/{self.home}", f"TMPDIR={here}/tmp"]
        command += ["node", "-e", RUN, OUTPOST]
        if is_counted:
            # Such a pipe would notice late that the outpost was killed.
            within = "sh", "-c", 'tee "$0" | exec "$@"', str(self.asked), *within
        facts = {
            "name": self.name,
            "command": [*within, *command],
            "copies": str(self.directory / "copies"),
            "directories": [str(self.project / "sub")],
            **more,
        }
        count = len(self.alone.remote_facts)
        self.alone.do(self.alone.hosts.start, facts)
        until(lambda: len(self.alone.remote_facts) > count)
        return self.alone.remote_facts[-1]

    def cli(self) -> FakeCli:
        (discovery_file,) = self.directory.glob("tmp/gemini/ide/*.json")
        content = json.loads(discovery_file.read_text())
        server = SimpleNamespace(port=content["port"], token=content["authToken"])
        return self._cli_of(server)

    @property
    def outpost(self) -> Outpost:
        outpost = self.alone.hosts.outposts.get(self.name)
        assert outpost is not None
        return outpost

    def update(self, file: Path, *change: str) -> None:
        self.alone.run(self.outpost.update(str(file), *change))

    def write(
        self, file: Path, text: str | None = None, expected: bytes | None = None
    ) -> str:
        if expected is None:
            expected = file.read_bytes()
        change = [hashlib.sha256(expected).hexdigest()]
        if text is not None:
            change.append(base64.b64encode(text.encode()).decode())
        try:
            self.update(file, *change)
        except RemoteError as error:
            return str(error)
        return ""

    def kinds(self) -> list[str]:
        return [json.loads(line)[0] for line in self.asked.read_text().splitlines()]

    def copy(self, file: Path) -> Path:
        return Path(f"{self.directory}/copies{file}")


@pytest.fixture
def far_of(alone: Alone, tmp_path: Path, cli_of: CliOf) -> Callable[[str], Far]:
    return lambda name: Far(alone, tmp_path / name, cli_of)


@pytest.fixture
def far(far_of: Callable[[str], Far]) -> Far:
    return far_of("far")


def test_a_review_follows_the_file_after_one_round_trip(
    far: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outpost, "_BEAT", 0.1)
    monkeypatch.setattr(copies, "_FOLLOWED", 1)
    far.connect(is_counted=True)
    file = far.project / "a.txt"
    file.write_text("old\n" * 1_000_000)
    cli = far.cli()
    events = cli.connect()
    cli.open_diff(str(file), "new\n")
    (diff,) = far.alone.emacs.opened
    assert (diff.path, diff.local_name) == (str(file), str(far.copy(file)))
    # The process that connects here is our own.
    facts = far.alone.emacs.facts
    assert facts.keys() == {"id", "client", "version", "remote"}
    assert facts["remote"] == far.name
    assert far.copy(file).read_text() == file.read_text()
    cli.open_diff(str(far.project / "b.txt"), "new\n")
    far.alone.do(far.alone.diffs.decide, diff.id, "mine\n")
    params = events.next()["params"]
    assert (params["filePath"], params["content"]) == (str(file), "mine\n")
    for number in range(100):  # as many edits can be reverted
        far.update(far.project / f"{number}")
    until(lambda: far.kinds().count("P") > 20)
    file.write_text("mine\n")  # Qwen Code waits for the other review.
    until(lambda: far.copy(file).read_text() == "mine\n")
    assert far.copy(file).stat().st_mtime == pytest.approx(file.stat().st_mtime)
    file.unlink()
    until(lambda: not far.copy(file).exists())
    assert "ENOENT" in far.write(file, "", b"")
    # Something has cleaned the temporary directory.
    (far.directory / "copies").rename(far.directory / "deleted")
    file.write_text("mine\n")
    assert far.write(file, "old\n") == ""
    assert far.copy(file).read_text() == "old\n"
    # tee passes a request on before it writes it down.
    until(lambda: [far.kinds().count(kind) for kind in "FW"] == [102, 2])


def test_a_text_is_sent_when_the_previous_one_has_arrived(far: Far) -> None:
    far.connect(is_counted=True, within=("python3", "-c", SLOW_LINE))
    file = far.project / "a"
    file.write_text("old\n")
    began = time.monotonic()
    far.update(file)
    numbers = iter(range(500))

    def has_changed_often() -> bool:
        number = next(numbers, None)
        if number is not None:
            file.write_text(f"{number:03}\n" * 25_000)
        return number is None

    until(has_changed_often)
    until(lambda: far.copy(file).read_text() == file.read_text())
    most = 8 + (time.monotonic() - began) / 1.6  # Each text takes longer.
    assert far.kinds().count("A") < most


def test_a_write_keeps_what_changed_there_and_the_file_itself(far: Far) -> None:
    far.connect(within=("sh", "-c", 'ulimit -f 64; exec "$@"', "sh"))
    file, other, link = (far.project / name for name in ("a", "other", "link"))
    file.write_text("new\n")
    file.chmod(0o640)
    other.hardlink_to(file)
    link.symlink_to("a")
    before = file.stat()
    assert "has changed there" in far.write(file, "old\n", b"earlier\n")
    assert "has changed there" in far.write(file, None, b"earlier\n")
    assert file.read_text() == far.copy(file).read_text() == "new\n"
    assert far.write(link, "old\n") == ""
    assert other.read_text() == far.copy(link).read_text() == "old\n"
    assert link.is_symlink()
    after = file.stat()
    assert [after.st_mode, after.st_ino] == [before.st_mode, before.st_ino]
    # Neither is read, as that might not end.
    os.mkfifo(far.project / "fifo")
    for name in (far.project / "fifo", Path("/dev/zero")):
        assert "not a regular file" in far.write(name, "", b"")
    # As on a disk that is full.
    file.write_text("new\n" * 1000)
    assert "EFBIG" in far.write(file, "older\n" * 90_000)
    assert file.read_text() == far.copy(file).read_text() == "new\n" * 1000


def test_a_host_comes_back_before_texts_that_take_long(
    far: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    # In a tenth of the time, with a line of 80 kB/s and 5 MB.
    program = base64.b64decode(outpost._PROGRAM).replace(b"120000", b"12000")
    monkeypatch.setattr(outpost, "_PROGRAM", base64.b64encode(program).decode())
    monkeypatch.setattr(outpost, "_BEAT", 1.5)
    large, ignored = far.project / "large", far.project / ".geminiignore"
    large.write_text("old\n" * 125_000)
    facts = far.connect(within=("python3", "-c", SLOW_LINE), files=(".geminiignore",))
    # Less than a text takes; Node.js may need seconds to start.
    monkeypatch.setattr(outpost, "_SILENCE", 7)
    cli = far.cli()
    cli.connect()
    cli.open_diff(str(large), "new\n")
    # Never empty: that would arrive before.
    (far.project / "draft").write_text("new\n" * 125_000)
    (far.project / "draft").replace(large)
    ignored.write_text("secret\n")
    os.kill(facts["pid"], signal.SIGKILL)
    reports = far.alone.remote_facts
    until(lambda: [report["state"] for report in reports[-2:]] == ["lost", "connected"])
    assert far.copy(ignored).read_text() == "secret\n"
    assert far.copy(large).read_text() == "old\n" * 125_000
    until(lambda: far.copy(large).read_text() == large.read_text())
    reports.clear()
    ignored.write_text("more\n")
    until(lambda: [report["state"] for report in reports] == ["connected"])
    assert far.copy(ignored).read_text() == "more\n"


def test_each_host_has_its_own_token_and_its_own_files(
    far_of: Callable[[str], Far], alone: Alone, cli_of: CliOf
) -> None:
    a, b = far_of("a"), far_of("b")
    a.connect()
    shared = b.directory / "shared"
    shared.mkdir()
    b.connect(shared=(("/workspace", str(shared)),))
    clis = {"here": cli_of(alone), "a": a.cli(), "b": b.cli()}
    streams = [cli.connect() for cli in clis.values()]
    until(lambda: [len(ids) for ids in alone.emacs.sessions][-1:] == [3])
    copies = [str(far.copy(Path("/srv", far.directory.name))) for far in (a, b)]
    names = ["/here", *copies, *(str(shared / part) for part in ("c", "link/c"))]
    # A link may lead to another file on the other host.
    (shared / "link").symlink_to("/srv")
    copies_of_b = b.outpost.copies
    names_of_b = [
        copies_of_b.local_name(f"/workspace/{name}") for name in ("c", "link/c")
    ]
    assert names_of_b == [names[3], str(b.copy(Path("/workspace/link/c")))]
    alone.do(alone.sessions.broadcast, [File(x, 1) for x in names])
    paths = [paths_of(part.next()) for part in streams]
    assert paths == [["/here", *names[3:]], ["/srv/a"], ["/srv/b", "/workspace/c"]]
    for host, cli in clis.items():
        for other, another in clis.items():
            thief = FakeCli(cli.port, another.token)
            assert (thief.post(PING)[0] == 401) == (host != other), (host, other)
    # A session of another host is unknown.
    thief = clis["b"]
    own, thief.session_id = thief.session_id, clis["a"].session_id
    assert thief.post(PING)[0] == 404
    thief.session_id = own
    # Models on other hosts ask no questions about local files.
    alone.linked.turn(True)
    assert thief.request("POST", "{}", path="/tools")[0] == 404
    # Strangers who hold connections keep nobody out.
    address = "127.0.0.1", a.cli().port
    strangers = [socket.create_connection(address) for _ in range(400)]
    a.cli().connect()
    for stranger in strangers:
        stranger.close()
    # Emacs may send an older context after the end of a connection.
    alone.run(alone.hosts.stop(a.name))
    alone.do(alone.sessions.broadcast, [File(x, 2) for x in names])
    assert paths_of(streams[0].next()) == ["/here", *names[3:]]


def test_a_host_cannot_pose_as_a_cli_of_this_machine(
    far: Far, alone: Alone, cli_of: CliOf
) -> None:
    far.connect()
    there = far.cli()
    pid = os.getpid()
    local = FakeCopilot(alone.port, alone.token + ".copilot")
    local.initialize()
    session = alone.do(alone.sessions.find, local.id)
    assert session
    local_facts = session.facts
    assert (local_facts["pid"], local_facts["client"]) == (pid, "copilot")
    # A CLI that needs a socket of its own host cannot run there.
    assert FakeCopilot(there.port, there.token + ".copilot").post(PING)[0] == 401
    for bearer in (there.token, there.token + ".qwen"):
        thief = FakeCopilot(there.port, bearer)
        events = thief.connect()
        thief.open_diff(str(far.project / bearer), "new\n")
        assert alone.emacs.facts["remote"] == far.name
        assert "pid" not in alone.emacs.facts
        events.close()
    # Even one that knows the session of a CLI here, which is still to come.
    first, here = FakeCli(there.port, there.token), cli_of(alone)
    first.session_id = here.session_id = "known"
    first.open_diff(str(far.project / "a"), "new\n")
    assert alone.emacs.facts["remote"] == far.name
    here.open_diff(str(far.project / "a"), "new\n")
    facts = alone.emacs.facts
    assert (facts["id"], "remote" in facts) == ("known", False)
    assert len({diff.session_id for diff in alone.emacs.opened[-2:]}) == 2
    first.session_id = local.session_id
    assert first.post(PING)[0] == 404


def test_a_file_that_a_host_does_not_send_is_reported(
    far: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outpost, "_ANSWER", 0.5)
    # As when the file is on a mount there that does not answer.
    process = psutil.Process(far.connect()["pid"])
    far.cli().connect()
    until(lambda: far.alone.emacs.sessions)
    session = far.alone.do(far.alone.sessions.find, far.alone.emacs.sessions[-1][0])
    assert session
    process.suspend()
    far.alone.run(far.alone.diffs.open(session, str(far.project / "a"), "new\n"))
    (warning,) = far.alone.emacs.warnings
    assert "test:far did not answer within 0.5 s" in warning
    assert not far.alone.emacs.opened
    assert "did not answer" in far.write(far.project / "b", "new\n", b"")
    process.resume()


def test_a_connection_that_is_not_read_holds_up_no_other(
    far: Far, alone: Alone, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tunnel, "_MOST_UNREAD", 1_000_000)
    far.connect()
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        # The next connection leads to a server that does not read.
        port, far.outpost.tunnel._port = far.outpost.tunnel._port, deaf.getsockname()[1]
        stalled = socket.create_connection(("127.0.0.1", far.cli().port))
        stalled.sendall(b"x")
        until(lambda: far.outpost.tunnel._writers)
        far.outpost.tunnel._port = port
        stalled.settimeout(BOUND)
        with suppress(OSError):
            for _ in range(500):
                stalled.sendall(b"x" * 100_000)
        far.cli().connect()
        with suppress(ConnectionError):
            assert stalled.recv(1) == b""
        stalled.close()


def test_what_is_no_name_of_a_file_there_is_not_reviewed(far: Far) -> None:
    far.connect()
    cli = far.cli()
    cli.connect()
    for path in ("a", "/a/../b", "/a//b", "/a/", "/a\0b", "", "C:\\a"):
        answer = cli.tool("openDiff", filePath=path, newContent="x")
        assert answer["result"]["isError"]
    cli.open_diff(str(far.project), "new\n")
    (warning,) = far.alone.emacs.warnings
    assert "is not a regular file" in warning
    assert not far.alone.emacs.opened
    cli.open_diff(str(far.project / "new"), "new\n")  # It has no copy.
    assert not far.copy(far.project / "new").exists()
    assert len(far.alone.emacs.opened) == 1
    # Names of TRAMP are text.
    for path in ("/ssh:other:/etc/passwd", "/sudo::/x", "/~/a", "/$HOME"):
        name = far.outpost.copies.local_name(path)
        assert name == f"{far.directory}/copies{path}"
        assert far.outpost.copies.remote_name(name) == path


def test_an_outcome_waits_for_the_next_outpost_but_no_context_does(
    far: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outpost, "_SILENCE", 5)
    monkeypatch.setattr(outpost, "_BEAT", 0.5)
    facts = far.connect(within=("sh", "-c", HALF_OPEN, str(far.directory)))
    relay = psutil.Process(facts["pid"]).parents()[0]
    file = far.project / "a.txt"
    file.write_text("old\n")
    context = [File(str(far.copy(file)), 1)]
    cli = far.cli()
    events = cli.connect()
    until(lambda: far.alone.emacs.sessions)
    far.alone.do(far.alone.sessions.broadcast, context)
    assert events.next()["method"] == "ide/contextUpdate"
    cli.open_diff(str(file), "new\n")
    (diff,) = far.alone.emacs.opened
    relay.suspend()
    far.alone.do(far.alone.diffs.decide, diff.id, "mine\n")
    assert events.nothing()
    count = len(far.alone.remote_facts)
    relay.kill()
    file.write_text("new\n")
    until(lambda: len(far.alone.remote_facts) == count + 2)
    lost, back = far.alone.remote_facts[count:]
    assert (lost["state"], back["state"]) == ("lost", "connected")
    # Emacs names the files of the reviews that end.
    assert lost["roots"] == back["roots"] != []
    assert (back["port"], back["token"]) == (facts["port"], facts["token"])
    until(lambda: far.copy(file).read_text() == "new\n")
    assert far.alone.emacs.written == []
    assert events.end()
    far.cli().connect().close()
    events = cli.listen()
    assert events.next()["params"]["content"] == "mine\n"
    until(lambda: far.alone.emacs.written == [diff.id])
    # Emacs decides again what is shared.
    assert events.nothing()
    far.alone.do(far.alone.sessions.broadcast, context)
    assert events.next()["method"] == "ide/contextUpdate"
    # A new server follows what the previous one copied.
    far.alone.run(far.alone.hosts.stop(far.name))
    far.connect()
    file.write_text("newer\n")
    until(lambda: far.copy(file).read_text() == "newer\n")


def test_another_program_that_takes_the_port_there_has_no_token(
    far: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outpost, "_SILENCE", 3)
    monkeypatch.setattr(outpost, "_BEAT", 0.5)
    facts = far.connect()
    count = len(far.alone.remote_facts)

    def steal() -> socket.socket:
        os.kill(facts["pid"], signal.SIGKILL)
        while True:
            with suppress(OSError):
                return socket.create_server(("127.0.0.1", facts["port"]))

    # The next outpost starts after that.
    with far.alone.do(steal):
        until(lambda: len(far.alone.remote_facts) == count + 2)
    port = far.alone.remote_facts[-1]["port"]
    assert port != facts["port"]
    far.cli().connect().close()
    thief = FakeCli(port, facts["token"])
    assert thief.post(PING)[0] == 401


def test_only_own_stale_files_of_this_host_are_removed(
    far: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outpost, "_BEAT", 0.1)
    directory = far.directory / "tmp/gemini/ide"
    directory.mkdir(parents=True, mode=0o700)
    # Both hosts share the home.
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    lock = far.directory / f"home/.qwen/ide/{port}.lock"
    lock.parent.mkdir(parents=True)
    lock.write_text("here")
    far.alone.hosts = Hosts(port, far.alone.remote_facts.append, lambda name: ())
    own = lock.with_name(f"{far.connect()['port']}.lock")
    assert (lock.read_text(), own.exists()) == ("here", True)
    (path,) = directory.iterdir()
    assert path.stat().st_mode & 0o777 == 0o600
    content = path.read_text()
    path.unlink()
    until(path.exists)  # It is written again.
    assert path.read_text() == content
    far.alone.run(far.alone.hosts.stop(far.name))
    until(lambda: not path.exists())
    stale = {"ideInfo": {"name": "emacs"}, "ppid": dead_pid(), "host": "another"}
    (directory / "other.json").write_text(json.dumps(stale))
    (directory / "link.json").symlink_to("/dev/zero")
    os.mkfifo(directory / "fifo.json")
    stale["host"] = this_host()
    (directory / "stale.json").write_text(json.dumps(stale))
    assert far.connect()["problems"] == []
    names = {"other.json", "link.json", "fifo.json"}
    assert {file.name for file in directory.iterdir()} > names
    assert not (directory / "stale.json").exists()


def test_a_directory_or_port_that_cannot_be_used_is_reported(
    far_of: Callable[[str], Far], monkeypatch: pytest.MonkeyPatch
) -> None:
    far, other = far_of("far"), far_of("other")
    (far.directory / "tmp/gemini").symlink_to(far.project)
    (problem,) = far.connect()["problems"]
    assert "is not your own directory" in problem
    program = base64.b64decode(outpost._PROGRAM).replace(b"127.0.0.1", b"192.0.2.1")
    monkeypatch.setattr(outpost, "_PROGRAM", base64.b64encode(program).decode())
    facts = other.connect()
    assert (facts["state"], "EADDRNOTAVAIL" in facts["problem"]) == ("ended", True)
    monkeypatch.setattr(outpost, "remote_clients", None)  # An error of the server.
    assert "see its log" in far_of("third").connect()["problem"]


def test_the_oldest_copies_go_when_there_are_too_many(
    far: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copies, "_LARGEST_COPIES", 3 * 4096)
    monkeypatch.setattr(copies, "_FOLLOWED", 0.05)
    monkeypatch.setattr(outpost, "_BEAT", 0.1)
    names = (".geminiignore", "a", "b", "c")
    ignore, *files = (far.project / name for name in names)
    ignore.write_text("x\n")
    far.connect(files=(ignore.name,))
    cli = far.cli()
    cli.connect()
    for file in files:
        file.write_text("old\n")
        cli.open_diff(str(file), "new\n")
    (warning,) = far.alone.emacs.warnings
    assert "too many files are being reviewed" in warning
    far.alone.do(far.alone.diffs.decide, far.alone.emacs.opened[0].id)

    def has_room() -> bool:
        with suppress(RemoteError):
            far.update(files[2])
            return True
        return False

    until(has_room)
    exist = [far.copy(far.project / name).exists() for name in names]
    assert exist == [True, False, True, True]


HELLO = "echo gemini-companion-outpost; echo nonsense"
NOISE = 'eval "$0"; while echo noise | tee /dev/stderr; do sleep 0.05; done'


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        (("/none/such",), "cannot run /none/such"),
        (("sh", "-c", "echo noise; echo 'a\33[1mb' >&2; exit 3"), "a [1mb"),
        (("sh", "-c", "echo 'Error: x' >&2; echo usage >&2"), "Error: x"),
        (("sh", "-c", f"{HELLO}; echo Password: >&2"), "malformed output: Password:"),
        (("head", "-c", "99999", "/dev/zero"), "malformed output"),
        (("sh", "-c", NOISE, ":"), "no answer: noise"),
        (("sh", "-c", NOISE, f"{HELLO} >&2; exec 3>&1 >&2"), "no answer: noise"),
    ],
)
def test_a_failed_start_is_reported(
    far: Far, command: tuple[str, ...], problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        for name, value in (("_LONGEST_LINE", 10_000), ("_BEAT", 0.1), ("_SILENCE", 2)):
            patch.setattr(outpost, name, value)
        facts = far.connect(command=command)
    assert (facts["state"], facts["problem"][: len(problem)]) == ("ended", problem)
    assert far.write(far.project, None, b"") == "test:far is not connected"
    assert far.connect()["state"] == "connected"  # It can be tried again.


def test_a_host_that_sends_much_leaves_turns_to_others(
    far: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn, read = 0, []
    readuntil = asyncio.StreamReader.readuntil

    async def count_turns() -> None:
        nonlocal turn
        while not far.alone.remote_facts:
            await asyncio.sleep(0)
            turn += 1

    async def read_one(reader: asyncio.StreamReader, *end: bytes) -> bytes:
        read.append(turn)
        return await readuntil(reader, *end)

    monkeypatch.setattr(asyncio.StreamReader, "readuntil", read_one)
    far.alone.start(count_turns())
    lines = "yes '[\"C\", 1]' | head -n 500"
    far.connect(command=("sh", "-c", f"{lines}; {HELLO.partition(';')[0]}; {lines}"))
    assert len(read) == len(set(read)) > 1000


@pytest.mark.parametrize(
    ("rest", "problem"),
    [
        ("cat >/dev/null; exit", None),
        ("exec sleep 1000", None),
        ("exec yes", "malformed output"),
        # As ssh does with a connection that others may use.
        ("sleep 1000 >/dev/null & echo $! >$0; exit 3", "exit status 3"),
    ],
)
def test_nothing_is_left_of_a_host_and_its_end_is_reported(
    tmp_path: Path, rest: str, problem: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid, child = tmp_path / "pid", tmp_path / "child"
    pid.touch()
    facts: list[dict[str, Any]] = []

    def refuse(_: object) -> None:
        raise PermissionError

    async def connect_and_stop() -> None:
        hosts = Hosts(1, facts.append, lambda name: ())
        command = f"echo gemini-companion-outpost; echo $$ >{pid}; {rest}"
        wanted = {"name": "/test:far:", "copies": f"{tmp_path}/m", "directories": []}
        hosts.start({**wanted, "command": ["sh", "-c", command, str(child)]})
        await asyncio.to_thread(until, lambda: facts if problem else pid.read_text())
        await hosts.stop_all()

    if rest == "exec yes":
        # The process of sudo belongs to another user.
        monkeypatch.setattr("subprocess.Popen.kill", refuse)
    asyncio.run(connect_and_stop())
    if child.exists():
        os.kill(int(child.read_text()), signal.SIGKILL)
    assert [fact["problem"] for fact in facts] == ([problem] if problem else [])
    assert not psutil.pid_exists(int(pid.read_text()))
    # This would warn of what is left, which is an error.
    gc.collect()


@pytest.mark.parametrize("name", ["home", "home/", "link", "link/../link/"])
def test_a_directory_that_cannot_be_a_root_is_reported(far: Far, name: str) -> None:
    home = str(far.directory / "home")
    (far.directory / "link").symlink_to(home)
    Path(home, ".git").mkdir()
    Path(home, "notes").mkdir()
    far.home = name
    never = ("/none", "/", "/usr/..", home, str(far.directory / "link"))
    facts = far.connect(directories=(*never, f"{home}/notes"))
    assert facts["roots"][-1] == [f"{home}/notes", f"{home}/notes"]
    assert facts["roots"][:-1] == [[directory, None] for directory in never]
    # Another directory is added to a connected host, after the disk was full.
    (discovery_file,) = far.directory.glob("tmp/gemini/ide/*.json")
    Path(f"{discovery_file}.tmp").touch()
    directories = [home, str(far.project / "sub")]
    facts = far.connect(directories=directories)
    assert facts["roots"] == [[home, None], [directories[1], str(far.project)]]
    assert json.loads(discovery_file.read_text())["workspacePath"] == str(far.project)


def is_zombie(process: psutil.Process) -> bool:
    return bool(process.status() == psutil.STATUS_ZOMBIE)


def test_an_outpost_that_hears_nothing_gives_its_port_to_the_next_one(
    far: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outpost, "_BEAT", 0.5)
    monkeypatch.setattr(outpost, "_SILENCE", 3)
    facts = far.connect(within=("sh", "-c", HALF_OPEN, str(far.directory)))
    previous = psutil.Process(facts["pid"])
    (file,) = far.directory.glob("tmp/gemini/ide/*.json")
    count = len(far.alone.remote_facts)
    previous.parents()[0].kill()
    until(lambda: len(far.alone.remote_facts) == count + 2)
    back = far.alone.remote_facts[-1]
    assert (back["port"], back["token"]) == (facts["port"], facts["token"])
    until(lambda: not psutil.pid_exists(previous.pid) or is_zombie(previous))
    assert not file.exists()
    far.cli().connect()


def test_copies_that_are_no_longer_our_own_ends_the_connection(
    far: Far, tmp_path: Path
) -> None:
    copies, theirs = far.directory / "copies", tmp_path / "theirs"
    file = far.project / "a"
    file.write_text("old\n")
    for way in ("link", "owner"):
        if way == "owner" and os.geteuid() != 0:
            continue
        theirs.write_text("victim\n")
        facts = far.connect()
        assert facts["state"] == "connected"
        far.update(file)
        # A cleanup has removed it, and another user was faster.
        shutil.rmtree(copies)
        if way == "link":
            (tmp_path / "planted").mkdir()
            copies.symlink_to(tmp_path / "planted")
        else:
            copies.mkdir(mode=0o777)
            os.chown(copies, 65534, 65534)
        (copies / ".draft").symlink_to(theirs)
        file.write_text(f"{way}\n")
        with pytest.raises(RemoteError, match="copies of its files cannot be made"):
            far.update(file)
        until(lambda: far.alone.remote_facts[-1]["state"] == "ended")
        problem = far.alone.remote_facts[-1]["problem"]
        expected = "is not a directory" if way == "link" else "belongs to another user"
        assert expected in problem
        assert theirs.read_text() == "victim\n"
        assert [path.name for path in copies.iterdir()] == [".draft"]
        # It is not used when it is tried again, either.
        assert far.connect()["state"] == "ended"
        if way == "link":
            copies.unlink()
        else:
            shutil.rmtree(copies)
    assert far.connect()["state"] == "connected"


def test_what_a_killed_server_left_in_the_copies_is_no_way_out(
    far: Far, tmp_path: Path
) -> None:
    theirs = tmp_path / "theirs"
    theirs.write_text("victim\n")
    copies, file = far.directory / "copies", far.project / "a"
    (copies / ".draft-old").write_text("half of a te")
    far.connect()
    assert not (copies / ".draft-old").exists()
    file.write_text("old\n")
    (copies / ".draft").symlink_to(theirs)
    far.update(file)
    assert far.copy(file).read_text() == "old\n"
    assert theirs.read_text() == "victim\n"


HOSTILE = """
import base64, json, sys
facts, names, size = json.loads(sys.argv[1]), json.loads(sys.argv[2]), int(sys.argv[3])
text = base64.b64encode(bytes(size)).decode()
def send(*line):
    print(json.dumps(line), flush=True)
print("gemini-companion-outpost", flush=True)
for line in sys.stdin:
    kind, number, *rest = [*json.loads(line), None]
    if kind == "H":
        send("H", facts, number)
        for path, true in names:
            send("F", {"path": path, "true": true, "stamp": "1-1", "text": text})
    elif kind == "F":
        for i in range(20):
            true = f"/x{i}" + "/y" * 20
            file = {"path": rest[0], "true": true, "stamp": "1-1", "text": text}
            send("F", file)
        send("F", file, number)
"""


def test_a_host_stores_only_what_it_was_asked_for(
    far: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copies, "_LARGEST_COPIES", 500_000)
    there, project = str(far.project / "sub"), str(far.project)
    facts = {
        **dict.fromkeys(("port", "pid"), 1),
        "node": "20.1.0",
        "home": "/home/me",
        "tmp": "/",
        "container": False,
        "problems": [],
        "versions": {},
        # Only one of these directories was named.
        "roots": {there: project, "/other": "/other"},
    }
    wanted = [f"{project}/.geminiignore", "/home/me/.gemini/settings.json"]
    refused = [
        *(f"{top}/.geminiignore" for top in ("", "/other", f"{project}/sub", "/etc")),
        *(f"{project}{name}" for name in ("/.gemini/settings.json", "/a.geminiignore")),
        *("/home/you/.gemini/settings.json", f"{project}/a", "/.draft", "/.draft/a"),
    ]
    names = [[name, name] for name in (*wanted, *refused)]
    # A wanted name may lead to any number of others.
    names += [[wanted[0], f"/z{number}"] for number in range(20)]
    arguments = json.dumps(facts), json.dumps(names), "100000"
    top = far.directory / "copies"
    command = ("python3", "-c", HOSTILE, *arguments)
    files = (".geminiignore", "~/.gemini/settings.json")
    assert far.connect(command=command, files=files)["state"] == "connected"
    file = far.project / "asked"
    far.update(file)
    far.update(file)  # The lines before have been read.

    present = [str(path)[len(str(top)) :] for path in top.rglob("*") if path.is_file()]
    named = {path for path in present if path[:2] not in ("/x", "/z")}
    assert named == {*wanted, str(file)}
    assert far.copy(file).is_symlink()
    regular = [path for path in top.rglob("*") if stat.S_ISREG(path.lstat().st_mode)]
    assert len(regular) == 3
    assert sum(path.stat().st_size for path in regular) == 300_000
    assert len([*top.rglob("*")]) < 80
    # So many files were asked for that there is no room.
    problems = []
    for number in range(5):
        try:
            far.update(file.with_name(f"{number}"))
        except RemoteError as error:
            problems.append(str(error))
    assert len(problems) == 3
    assert "too many files" in problems[0]
    used = sum(path.lstat().st_blocks * 512 for path in top.rglob("*"))
    assert used < 2_000_000


LIAR = """
import json, random, sys
lies, seed = json.loads(sys.argv[1]), random.Random(int(sys.argv[2]))
print("gemini-companion-outpost", flush=True)
for line in sys.stdin:
    for lie in [lies[0], lies[0], *seed.sample(lies, 5)]:
        print(json.dumps(lie) if isinstance(lie, list) else lie, flush=True)
"""


@pytest.mark.parametrize("seed", range(2))
def test_a_lying_outpost_writes_nothing_and_names_no_file_here(
    far: Far, tmp_path: Path, seed: int
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    facts = {
        "port": 1,
        "pid": 1,
        "node": "20.1.0-nightly",
        "home": "/",
        "tmp": "/",
        "container": 0,
        "roots": {},
        "problems": ["x"] * 3,
        "versions": {"gemini": "0.61.0-nightly.1", "other": "x"},
        # What only Emacs and the server decide.
        "copies": "/",
        "name": "/sudo::",
        "token": "x",
        "state": "connected",
    }
    there = str(far.project / "sub")
    text = {"mtime": 1, "text": "c3RvbGVu"}
    names = [str(secret), f"/../../..{secret}", "/.draft", "a", "/a\0", 1, None]
    lies = [
        ["H", {**facts, "roots": {there: there}}],
        *(["F", {"path": name, **text}] for name in names),
        *(["H", {**facts, "roots": {there: name}}] for name in names[1:]),
        *(["H", {**facts, "home": name}] for name in names[1:]),
        *(["H", {**facts, "port": value}] for value in ("1", 1e999, -1, None)),
        *(["D", 1, "x"], ["C", []], ["O", 1], ["O", {}], ["P", "x"], ["?"]),
        *("[" * 100_000, "{}", "nonsense", "[]", "null", '"H"', "[1,2,3,4,5]"),
    ]
    far.connect(command=("python3", "-c", LIAR, json.dumps(lies), str(seed)))
    until(lambda: far.alone.remote_facts[-1]["state"] in ("lost", "ended"))
    assert not list((far.directory / "copies").rglob("*"))
    far.alone.run(far.alone.hosts.stop(far.name))
    assert secret.read_text() == "secret"
    states = [reported["state"] for reported in far.alone.remote_facts]
    assert ["connected"] * 2 not in [states[i : i + 2] for i in range(len(states))]
    for reported in far.alone.remote_facts:
        assert reported["name"] == far.name
        assert reported.get("node") in (None, "20.1.0")
        assert reported.get("versions") in (None, [["gemini", "0.61.0"]])
        assert len(reported.get("problems", [])) <= 2
        assert reported["token"] != "x"
        assert "copies" not in reported
        assert reported["roots"] in ([], [[there, there]])
    assert far.connect()["state"] == "connected"


def test_both_sides_have_the_same_kinds_of_lines() -> None:
    source = Path(outpost.__file__).with_name("outpost.js").read_text()
    table = source.partition("const Kind = {")[2].partition("};")[0]
    kinds = dict(re.findall(r"^  ([A-Z]+): '(.)',", table, re.MULTILINE))
    assert kinds == {kind.name: kind.value for kind in outpost_lines.Kind}
