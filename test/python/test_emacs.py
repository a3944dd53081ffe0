# SPDX-License-Identifier: GPL-3.0-or-later
"""The EPC endpoint over real sockets, and the corrected defects of `epc`."""

import asyncio
import contextlib
import gc
import logging
import os
import queue
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

import pytest
import sexpdata
from hypothesis import given
from hypothesis import strategies as st
from sexpdata import Symbol

from fake_emacs import BOUND, NO_ANSWER, PYTHON_PATH, EpcClient, ReturnedError, plist
from gemini_companion_epc import __version__
from gemini_companion_epc.config import Config
from gemini_companion_epc.directory import LARGE_TEXT
from gemini_companion_epc.emacs import Emacs
from gemini_companion_epc.exceptions import EmacsError, EmacsGone, MalformedArgument
from gemini_companion_epc.sexp import context_from, parse
from gemini_companion_epc.types import (
    Diff,
)

Result = TypeVar("Result")

SECRET = "the secret"
SESSION = {"id": "session", "since": 1790000000000, "pid": 12}


class Owner:
    """Receiver of the calls from Emacs, as a queue."""

    def __init__(self) -> None:
        self.taken: queue.Queue[tuple[Any, ...]] = queue.Queue()

    def hello(self) -> dict[str, object]:
        return {"version": __version__, "port": 1, "token": "t", "discovery": None}

    def context_update(self, context: list[Any]) -> None:
        self.taken.put(("context", context))

    def roots_update(self, roots: Sequence[str]) -> None:
        self.taken.put(("roots", tuple(roots)))

    def diff_accepted(self, diff_id: int, text: str) -> None:
        if diff_id == 404:
            raise MalformedArgument("no such diff")
        self.taken.put(("accepted", diff_id, text))

    def diff_rejected(self, diff_id: int) -> None:
        if diff_id == 500:
            raise RuntimeError("a bug")
        self.taken.put(("rejected", diff_id))

    def adopt_diff(self, *args: Any) -> None:
        self.taken.put(("adopted", *args))

    def hand_over(self) -> None:
        self.taken.put(("hand-over",))

    def stop(self) -> None:
        self.taken.put(("stop",))

    def methods(self) -> dict[str, Callable[..., object]]:
        return {
            "context-update": self.context_update,
            "roots-update": self.roots_update,
            "diff-accepted": self.diff_accepted,
            "diff-rejected": self.diff_rejected,
            "adopt-diff": self.adopt_diff,
            "hand-over": self.hand_over,
            "stop": self.stop,
        }

    def next(self) -> tuple[Any, ...]:
        return self.taken.get(timeout=BOUND)


class Rig:
    """The EPC endpoint in a thread, and the connections to it."""

    def __init__(self, **fields: Any) -> None:
        self.owner = Owner()
        self.emacs = Emacs(Config(secret=SECRET, emacs_pid=1, **fields))
        self.port = self.emacs.port
        self.clients: list[EpcClient] = []
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()
        self.do(self.emacs.listen, self.owner.hello, self.owner.methods())

    def do(self, function: Callable[..., Result], *args: Any) -> Result:
        """Return what ``function`` returns in the event loop."""

        async def call() -> Result:
            return function(*args)

        return self.run(call())

    def run(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(BOUND)

    def open(self, diff: Diff) -> "Future[None]":
        return asyncio.run_coroutine_threadsafe(
            self.emacs.open_diff(diff, SESSION), self.loop
        )

    def epc(self) -> EpcClient:
        self.clients.append(EpcClient(self.port))
        return self.clients[-1]

    def peer(self) -> EpcClient:
        epc = self.epc()
        epc.call("hello", SECRET, __version__)
        return epc

    def close(self) -> None:
        self.run(self.emacs.close())
        for epc in self.clients:
            epc.close()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(BOUND)
        self.loop.close()


@pytest.fixture
def rig_with() -> Iterator[Callable[..., Rig]]:
    rigs: list[Rig] = []

    def rig_with(**fields: Any) -> Rig:
        rigs.append(Rig(**fields))
        return rigs[-1]

    yield rig_with
    for rig in rigs:
        rig.close()


@pytest.fixture
def rig(rig_with: Callable[..., Rig]) -> Rig:
    return rig_with()


def _diff(text: str) -> Diff:
    return Diff(1, "session", "/a", text)


def _directory(rig: Rig) -> Path:
    assert rig.emacs.directory.path is not None
    return rig.emacs.directory.path


# S-expressions


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r'("\377\303x")', "\ufffd\ufffdx"),
        (r'("\101\0")', "A\0"),
        (r'("a\\b\"c")', 'a\\b"c'),
        (r'("\n\t\e")', "\n\te"),
        ('("a\\\nb\\ c")', "abc"),
        ('("\u2028\U0001f600\0")', "\u2028\U0001f600\0"),
    ],
)
def test_strings_are_read_as_emacs_writes_them(text: str, expected: str) -> None:
    assert parse(text.encode()) == [expected]


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_every_text_is_read_back(text: str) -> None:
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    assert parse(f'("{quoted}")'.encode()) == [text]
    assert parse(sexpdata.dumps([text]).encode()) == [text]


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_but_a_refusal(message: bytes) -> None:
    with contextlib.suppress(ValueError):
        parse(message)


def test_bytes_that_are_not_utf8_become_visible() -> None:
    assert parse(b'("a\xffb")') == ["a\ufffdb"]


@pytest.mark.parametrize(
    "text",
    ["", "a", "(", ")", '("', '("\\', "(a) (b)", "(a]", "'", "(" * 100_000, "\xff"],
)
def test_what_is_not_one_list_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not"):
        parse(text.encode("latin-1"))


def test_a_context_is_read_from_property_lists() -> None:
    form = parse(
        rb"""((:path "/a" :timestamp 5 :active t :line 11 :character 21
               :selected-text "x") (:path "/b" :timestamp 4 :active nil))"""
    )
    active = {"isActive": True, "cursor": {"line": 11, "character": 21}}
    assert context_from(form) == [
        {"path": "/a", "timestamp": 5, **active, "selectedText": "x"},
        {"path": "/b", "timestamp": 4},
    ]
    assert context_from([]) == []


@pytest.mark.parametrize(
    "entry",
    [
        "1",
        "nil",
        "(:path)",
        '(:path "/b")',
        "(:path b :timestamp 1)",
        '(:path "/b" :timestamp "1")',
        '(:path "/b" :timestamp 1.0e+INF)',
        '(:path "/b" :timestamp 1 :line "1")',
        '("path" "/b")',
    ],
)
def test_a_malformed_file_is_refused(entry: str) -> None:
    with pytest.raises(MalformedArgument):
        context_from(parse(f"({entry})".encode()))


# Authentication (defect 7)


def test_the_right_hello_is_answered_with_what_emacs_needs(rig: Rig) -> None:
    answer = plist(rig.epc().call("hello", SECRET, __version__))
    assert answer["version"] == __version__
    assert (answer["port"], answer["token"], answer["discovery"]) == (1, "t", [])
    assert stat.S_IMODE(Path(answer["directory"]).stat().st_mode) == 0o700


@pytest.mark.parametrize(
    ("method", "args"),
    [
        ("hello", ["wrong", __version__]),
        ("hello", ["wrong", "9"]),
        ("hello", []),
        ("hello", [SECRET]),
        ("hello", [Symbol("secret"), __version__]),
        ("hello", [[], []]),
        ("stop", []),
        ("diff-accepted", [1, "x"]),
    ],
)
def test_any_other_first_call_is_refused(
    rig: Rig, method: str, args: list[Any]
) -> None:
    stranger = rig.epc()
    with pytest.raises(ConnectionError):
        stranger.call(method, *args)
    assert stranger.closed.wait(BOUND)
    assert rig.peer().call("diff-rejected", 1) is True
    assert rig.owner.next() == ("rejected", 1)
    assert rig.owner.taken.empty()


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x00" * 6,
        b"-00001x",
        b"ffffff",
        b"001001",
        b"000005hello",
        b"00000e(return 1 nil)"[:20],
        b"00000a(methods 1)"[:16],
    ],
)
def test_garbage_is_refused(rig: Rig, data: bytes) -> None:
    stranger = rig.epc()
    stranger.send_bytes(data)
    with contextlib.suppress(OSError):  # it may have been closed by now
        stranger.socket.shutdown(socket.SHUT_WR)
    assert stranger.closed.wait(BOUND)
    rig.peer()


def test_silent_connections_do_not_stand_in_the_way_and_are_closed(rig: Rig) -> None:
    strangers = [rig.epc() for _ in range(50)]
    strangers[0].send_bytes(b"0000")
    peer = rig.peer()
    assert all(stranger.closed.wait(BOUND) for stranger in strangers)
    assert peer.call("diff-rejected", 1) is True


def test_one_peer_is_all_there_ever_is(rig: Rig) -> None:
    peer = rig.peer()
    with pytest.raises(OSError):  # noqa: PT011  refused, reset or closed, by timing
        rig.peer()
    assert peer.call("diff-rejected", 1) is True


def test_of_two_hellos_at_once_one_is_let_in(rig: Rig) -> None:
    clients = [rig.epc(), rig.epc()]
    for epc in clients:
        epc.send([Symbol("call"), 1, Symbol("hello"), [SECRET, __version__]])
    kinds = [epc.reply_to(1).get(timeout=BOUND)[0] for epc in clients]
    assert sorted(kinds) == ["closed", "return"]


def test_connections_during_the_hello_are_closed() -> None:
    for _ in range(20):
        rig = Rig()
        peer = rig.epc()
        peer.send([Symbol("call"), 1, Symbol("hello"), [SECRET, __version__]])
        late = [socket.socket() for _ in range(3)]
        for stranger in late:
            stranger.connect_ex(("127.0.0.1", rig.port))
            stranger.close()
        assert peer.reply_to(1).get(timeout=BOUND)[0] == "return"
        # An unclosed socket is a warning when its object is deleted.
        rig.close()
        gc.collect()


def test_another_version_gets_the_remedy_and_may_retry(rig: Rig) -> None:
    epc = rig.epc()
    with pytest.raises(
        ReturnedError, match=r"9\.9\.9.*install the same version"
    ) as error:
        epc.call("hello", SECRET, "9.9.9")
    assert __version__ in str(error.value)
    rig.peer()


# Calls of Emacs


def test_calls_arrive_in_the_order_of_their_sending(rig: Rig) -> None:
    """Defect 2: a thread for each message lets them overtake each other."""
    peer = rig.peer()
    for number in range(300):
        text = "x" * (50_000 if number % 50 == 0 else 1)
        peer.send(
            [Symbol("call"), 1000 + number, Symbol("diff-accepted"), [number, text]]
        )
    assert [rig.owner.next()[1] for _ in range(300)] == list(range(300))


def test_a_call_behind_the_hello_is_not_lost(rig: Rig) -> None:
    epc = rig.epc()
    epc.send([Symbol("call"), 1, Symbol("hello"), [SECRET, __version__]])
    epc.send([Symbol("call"), 2, Symbol("roots-update"), [["/a"]]])
    assert rig.owner.next() == ("roots", ("/a",))
    assert epc.reply_to(1).get(timeout=BOUND)[0] == "return"
    assert epc.reply_to(2).get(timeout=BOUND) == ("return", True)


@pytest.mark.parametrize(
    ("method", "args"),
    [
        ("diff-rejected", ["1"]),
        ("diff-rejected", []),
        ("diff-rejected", [1, 2]),
        ("diff-accepted", [1, Symbol("x")]),
        ("diff-accepted", [1, [Symbol(":file"), "/etc/hosts"]]),
        ("diff-accepted", [404, "x"]),
        ("diff-rejected", [500]),
        ("adopt-diff", [1, "session", "/a"]),
        ("adopt-diff", ["1", "session", "/a", "x"]),
        ("adopt-diff", [1, [], "/a", "x"]),
        ("adopt-diff", [1, "session", "/a", []]),
        ("context-update", ["x"]),
        ("roots-update", [[1]]),
        ("no-such-method", []),
    ],
)
def test_a_wrong_call_is_answered_with_an_error(
    rig: Rig, method: str, args: list[Any]
) -> None:
    peer = rig.peer()
    with pytest.raises(ReturnedError):
        peer.call(method, *args)
    assert peer.call("diff-rejected", 1) is True


@pytest.mark.parametrize(
    "text", ['(call 77 stop ("', "(call 77 stop", "(call 77 stop ())) x", "(call 77)"]
)
def test_what_cannot_be_decoded_is_answered(rig: Rig, text: str) -> None:
    """Defect 3: without its id the caller waits for ever."""
    peer = rig.peer()
    peer.send_text(text)
    assert peer.reply_to(77).get(timeout=BOUND)[0] == "epc-error"
    assert peer.call("diff-rejected", 1) is True


@pytest.mark.parametrize("text", ["()", "(x)", "(call)", "(1 2)", "(other 1)", "x"])
def test_what_has_no_id_is_passed_over(rig: Rig, text: str) -> None:
    peer = rig.peer()
    peer.send_text(text)
    assert peer.call("diff-rejected", 1) is True


def test_raw_bytes_of_emacs_arrive_visibly(rig: Rig) -> None:
    """Defect 9: sexpdata reads octal escapes as text."""
    peer = rig.peer()
    peer.send_text(r'(call 1 diff-accepted (1 "a\377b"))')
    assert rig.owner.next() == ("accepted", 1, "a\ufffdb")


def test_the_methods_are_listed(rig: Rig) -> None:
    peer = rig.peer()
    peer.send_text("(methods 5)")
    _, methods = peer.reply_to(5).get(timeout=BOUND)
    assert "diff-accepted" in [method[0].value() for method in methods]


def test_closing_the_connection_stops_the_server(rig: Rig) -> None:
    rig.peer().close()
    assert rig.owner.next() == ("stop",)


def test_a_diff_of_a_previous_process_is_handed_over(rig: Rig) -> None:
    peer = rig.peer()
    path = _directory(rig) / "emacs-1"
    path.write_text("large")
    peer.call("adopt-diff", 7, "session", "/a", {"file": str(path)})
    assert rig.owner.next() == ("adopted", 7, "session", "/a", "large")
    assert peer.call("hand-over") is True
    assert rig.owner.next() == ("hand-over",)


def test_emacs_learns_where_a_process_runs_and_with_which_environment(
    rig: Rig, tmp_path: Path
) -> None:
    environ = {"PATH": os.environ["PATH"], "GC_TEST": "é = \udcff"}
    with subprocess.Popen(
        [sys.executable, "-c", "input()"],
        cwd=tmp_path,
        env=environ,
        stdin=subprocess.PIPE,
    ) as child:
        pids = [child.pid, 2**40, -1]
        known, *unknown = map(plist, rig.peer().call("processes", pids))
        child.kill()
    assert known["pid"] == child.pid
    assert known["directory"] == str(tmp_path)
    assert {"GC_TEST=é = \ufffd", f"PATH={environ['PATH']}"} <= {*known["environment"]}
    assert ["gemini", "/tmp/gemini/ide"] in known["discovery"]
    assert unknown == [{"pid": 2**40}, {"pid": -1}]


# Calls to Emacs


def test_a_diff_reaches_emacs_and_its_text_comes_back(rig: Rig) -> None:
    peer = rig.peer()
    peer.answers["close-diff"] = lambda diff_id, reason: "held"
    rig.open(_diff("proposal"))
    diff_id, session, path, text = peer.expect("open-diff")
    assert (diff_id, path, text) == (1, "/a", "proposal")
    assert plist(session) == SESSION
    assert rig.run(rig.emacs.close_diff(1, "closed")) == "held"
    assert peer.expect("close-diff") == [1, Symbol("closed")]


def test_no_text_and_an_empty_text_are_two_things(rig: Rig) -> None:
    peer = rig.peer()
    peer.answers["close-diff"] = lambda diff_id, reason: None if diff_id == 1 else ""
    assert rig.run(rig.emacs.close_diff(1, "closed")) is None
    assert rig.run(rig.emacs.close_diff(2, "closed")) == ""


def test_an_error_of_emacs_is_an_error(rig: Rig) -> None:
    peer = rig.peer()
    peer.answers["close-diff"] = lambda diff_id, reason: NO_ANSWER
    waiting = asyncio.run_coroutine_threadsafe(
        rig.emacs.close_diff(1, "closed"), rig.loop
    )
    peer.expect("close-diff")
    peer.send_text('(return-error 1 "void-function")')
    with pytest.raises(EmacsError, match="void-function"):
        waiting.result(BOUND)


def test_an_unexpected_answer_is_ignored(rig: Rig) -> None:
    peer = rig.peer()
    for text in ("(return 99 nil)", "(return 98)", "(epc-error 97 nil)"):
        peer.send_text(text)
    assert peer.call("diff-rejected", 1) is True


def test_pending_calls_fail_when_emacs_leaves(rig: Rig) -> None:
    """Defect 5: they wait for ever."""
    peer = rig.peer()
    peer.answers["close-diff"] = lambda diff_id, reason: NO_ANSWER
    waiting = asyncio.run_coroutine_threadsafe(
        rig.emacs.close_diff(1, "closed"), rig.loop
    )
    peer.expect("close-diff")
    peer.close()
    with pytest.raises(EmacsGone):
        waiting.result(BOUND)
    with pytest.raises(EmacsGone):
        rig.run(rig.emacs.close_diff(2, "closed"))
    rig.do(rig.emacs.warn, "no peer receives it")


@pytest.mark.parametrize("failure", ["disk", "emacs"])
def test_a_proposal_that_cannot_be_sent_or_shown_is_an_error(
    rig: Rig, failure: str
) -> None:
    peer = rig.peer()
    if failure == "disk":
        _directory(rig).rmdir()
        _directory(rig).touch()
    else:
        peer.answers["open-diff"] = lambda *args: NO_ANSWER
    opening = rig.open(_diff("x" * 0x1000000))
    if failure == "emacs":
        peer.expect("open-diff")
        peer.send_text('(return-error 1 "void-function")')
    with pytest.raises(EmacsError):
        opening.result(BOUND)


def test_what_is_asked_before_the_hello_follows_it(rig: Rig) -> None:
    rig.do(rig.emacs.warn, "early")
    rig.open(_diff("text"))
    peer = rig.peer()
    assert peer.expect("warn") == ["early"]
    assert peer.expect("open-diff")[3] == "text"


def test_large_messages_do_not_mix(rig: Rig) -> None:
    """Defect 1: concurrent sends interleave."""
    peer = rig.peer()
    texts = [chr(ord("a") + n) * (LARGE_TEXT - 1) for n in range(8)]
    for text in texts:
        rig.open(_diff(text))
    threads = [
        threading.Thread(target=peer.call, args=("diff-rejected", n)) for n in range(8)
    ]
    for thread in threads:
        thread.start()
    assert [peer.expect("open-diff")[3] for _ in texts] == texts
    for thread in threads:
        thread.join(BOUND)
        assert not thread.is_alive()


def test_a_stopped_emacs_does_not_block_the_event_loop(rig: Rig) -> None:
    with socket.create_connection(("127.0.0.1", rig.port), BOUND) as peer:
        hello = sexpdata.dumps(
            [Symbol("call"), 1, Symbol("hello"), [SECRET, __version__]]
        )
        peer.sendall(b"%06x" % len(hello) + hello.encode())
        assert peer.recv(6)
        for _ in range(60):
            rig.open(_diff("x" * (LARGE_TEXT - 1)))
        assert rig.do(lambda: True)


def test_small_messages_do_not_wait_for_an_acknowledgement(rig: Rig) -> None:
    """With Nagle on, two calls in a row take 40 ms."""
    rig.peer()
    peer = rig.emacs._peer
    assert peer is not None
    assert peer.connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


# Large texts (defect 4)


@pytest.mark.parametrize(
    ("text", "is_file"),
    [
        ("x" * (LARGE_TEXT - 1), False),
        ("\u4e2d" * (LARGE_TEXT - 1), False),
        ("x" * LARGE_TEXT, True),
        ("\r\n\ufeff\0\U0001f600" * 5_000_000, True),
    ],
    ids=["small", "wide", "large", "50 MB"],
)
def test_a_large_text_goes_through_a_private_file(
    rig: Rig, text: str, is_file: bool
) -> None:
    peer = rig.peer()
    rig.open(_diff(text))
    sent = peer.expect("open-diff")[3]
    if is_file:
        path = Path(plist(sent)["file"])
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert path.parent == _directory(rig)
        sent = path.read_bytes().decode("utf-8")
    assert sent == text


def test_a_large_text_is_refused_when_no_file_can_be_written(rig: Rig) -> None:
    peer = rig.peer()
    _directory(rig).rmdir()
    _directory(rig).touch()
    text = "x" * LARGE_TEXT
    with pytest.raises(EmacsError, match="Not a directory"):
        rig.run(rig.emacs.open_diff(_diff(text), SESSION))
    _directory(rig).unlink()
    rig.open(_diff(text))
    assert Path(plist(peer.expect("open-diff")[3])["file"]).read_text() == text


def test_a_large_text_comes_back_through_a_file_that_is_deleted(rig: Rig) -> None:
    peer = rig.peer()
    text = "\r\n\ufeff\0\U0001f600" * 100_000
    path = _directory(rig) / "emacs-1"
    path.write_bytes(text.encode())
    peer.call("diff-accepted", 1, {"file": str(path)})
    assert rig.owner.next() == ("accepted", 1, text)
    assert not path.exists()
    path.write_bytes(b"held \xff")
    peer.answers["close-diff"] = lambda diff_id, reason: {"file": str(path)}
    assert rig.run(rig.emacs.close_diff(1, "closed")) == "held \ufffd"
    assert not path.exists()


def test_a_file_outside_of_the_directory_is_neither_read_nor_deleted(
    rig: Rig, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.write_text("x")
    link = _directory(rig) / "link"
    link.symlink_to(other)
    peer = rig.peer()
    for name in (str(other), str(link), "other"):
        with pytest.raises(ReturnedError, match="private directory"):
            peer.call("diff-accepted", 1, {"file": name})
    assert other.read_text() == "x"


def test_a_message_that_is_too_long_fails_alone(rig: Rig) -> None:
    """Defect 4: its length overflows and the stream is lost."""
    peer = rig.peer()
    rig.do(rig.emacs.warn, "x" * 0x1000000)
    rig.do(rig.emacs.warn, "short")
    assert peer.expect("warn") == ["short"]


# Noise (defects 6 and 8)


def test_epc_neither_writes_to_stderr_nor_describes_its_calls(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    peer = rig.peer()
    assert logging.getLogger("epc").handlers == []
    with caplog.at_level(logging.DEBUG):
        logging.getLogger("epc").setLevel(logging.ERROR)
        peer.call("diff-accepted", 1, "a text that is not logged")
    assert "a text that is not logged" not in caplog.text
    assert SECRET not in caplog.text


def test_a_large_call_costs_no_description(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    described: list[object] = []
    monkeypatch.setattr(
        "epc.utils.func_call_as_str", lambda *a, **k: described.append(a)
    )
    peer = rig.peer()
    described.clear()
    peer.call("diff-rejected", 1)
    rig.open(_diff("x"))
    peer.expect("open-diff")
    assert described == []


def test_nothing_heavy_is_imported_before_the_port_is_printed() -> None:
    code = (
        "import sys, gemini_companion_epc.server\n"
        "print([name for name in ('mcp', 'hypercorn', 'pydantic', 'starlette', 'anyio')"
        " if name in sys.modules])"
    )
    found = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": PYTHON_PATH},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert found.stdout == "[]\n"
