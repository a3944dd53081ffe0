# SPDX-License-Identifier: GPL-3.0-or-later
"""The corrected defects of `epc`, over real sockets."""

import contextlib
import socket
import threading
from typing import Any

import pytest
import sexpdata
from hypothesis import given
from hypothesis import strategies as st
from sexpdata import Symbol

from endpoint import SECRET, Endpoint, diff_of
from fake_cli import BOUND
from fake_emacs import ReturnedError, plist
from gemini_companion_epc import __version__
from gemini_companion_epc.epc_server import parse
from gemini_companion_epc.texts import LARGE_TEXT


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
def test_another_first_call_fails(epc: Endpoint, method: str, args: list[Any]) -> None:
    stranger = epc.connect()
    with pytest.raises(ConnectionError):
        stranger.call(method, *args)
    assert stranger.closed.wait(BOUND)
    answer = plist(epc.connect().call("hello", SECRET, __version__))
    assert answer["version"] == __version__
    assert (answer["port"], answer["token"], answer["discovery"]) == (1, "t", [])
    assert epc.taken.empty()


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
def test_garbage_is_refused(epc: Endpoint, data: bytes) -> None:
    stranger = epc.connect()
    stranger.send_bytes(data)
    with contextlib.suppress(OSError):  # it may have been closed by now
        stranger.socket.shutdown(socket.SHUT_WR)
    assert stranger.closed.wait(BOUND)
    epc.peer()


def test_silent_connections_exclude_no_one(epc: Endpoint) -> None:
    strangers = [epc.connect() for _ in range(50)]
    strangers[0].send_bytes(b"0000")
    peer = epc.peer()
    assert peer.call("diff-rejected", 1) is True


def test_calls_arrive_in_the_order_of_their_sending(epc: Endpoint) -> None:
    """Defect 2: a thread for each message lets them overtake each other."""
    peer = epc.peer()
    for number in range(300):
        text = "x" * (50_000 if number % 50 == 0 else 1)
        peer.send(
            [Symbol("call"), 1000 + number, Symbol("diff-accepted"), [number, text]]
        )
    assert [epc.next()[1] for _ in range(300)] == list(range(300))


@pytest.mark.parametrize(
    ("method", "args"),
    [("late", [1]), ("diff-rejected", [[Symbol(":id")]]), ("no-such-method", [])],
)
def test_a_wrong_call_is_answered_with_an_error(
    epc: Endpoint, method: str, args: list[Any]
) -> None:
    peer = epc.peer()
    with pytest.raises(ReturnedError):
        peer.call(method, *args)
    assert peer.call("diff-rejected", 1) is True


def test_what_is_not_a_message_is_passed_over(epc: Endpoint) -> None:
    """Defect 3: the thread that reads ends at what it cannot decode."""
    peer = epc.peer()
    cut = '(call 77 stop ("', "(call 77 stop", "(call 77 stop ())) x", "(call 77)"
    odd = "()", "(x)", "(call)", "(1 2)", "(other 1)", "x"
    for text in (*cut, *odd, "(return 99 nil)", "(return 98)", "(epc-error 97 nil)"):
        peer.send_text(text)
    assert peer.call("diff-rejected", 1) is True


def test_large_messages_do_not_mix(epc: Endpoint) -> None:
    """Defect 1: concurrent sends interleave."""
    peer = epc.peer()
    texts = [chr(ord("a") + n) * (LARGE_TEXT - 1) for n in range(8)]
    for text in texts:
        epc.open(diff_of(text))
    threads = [
        threading.Thread(target=peer.call, args=("diff-rejected", n)) for n in range(8)
    ]
    for thread in threads:
        thread.start()
    assert [peer.expect("open-diff")[3] for _ in texts] == texts
    for thread in threads:
        thread.join(BOUND)
        assert not thread.is_alive()


def test_a_stopped_emacs_does_not_block_the_event_loop(epc: Endpoint) -> None:
    with socket.create_connection(("127.0.0.1", epc.port), BOUND) as peer:
        hello = sexpdata.dumps(
            [Symbol("call"), 1, Symbol("hello"), [SECRET, __version__]]
        )
        peer.sendall(b"%06x" % len(hello) + hello.encode())
        assert peer.recv(6)
        for _ in range(60):
            epc.open(diff_of("x" * (LARGE_TEXT - 1)))
        assert epc.do(lambda: True)


def test_a_message_that_is_too_long_fails_alone(epc: Endpoint) -> None:
    """Defect 4: its length overflows and the stream is lost."""
    peer = epc.peer()
    epc.do(epc.emacs.warn, "x" * 0x1000000)
    epc.do(epc.emacs.warn, "short")
    assert peer.expect("warn") == ["short"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r'("\377\303x")', "\ufffd\ufffdx"),
        (r'("a\\b\"c\\377")', 'a\\b"c\\377'),
        (r'("\n\t\11b\0c\0331")', "\n\t\tb\0c\x1b1"),
        ('("a\udcffb")', "a\ufffdb"),
    ],
)
def test_strings_are_read_as_emacs_writes_them(text: str, expected: str) -> None:
    assert parse(text.encode(errors="surrogateescape")) == [expected]


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_every_text_is_read_back(text: str) -> None:
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    assert parse(f'("{quoted}")'.encode()) == [text]
    assert parse(sexpdata.dumps([text]).encode()) == [text]


@pytest.mark.parametrize(
    "text",
    ["", "a", "(", ")", '("', '("\\', "(a) (b)", "(a]", "'", "(" * 100_000, "\xff"],
)
def test_what_is_not_one_list_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not"):
        parse(text.encode("latin-1"))
