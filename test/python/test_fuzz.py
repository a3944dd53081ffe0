# SPDX-License-Identifier: GPL-3.0-or-later
"""Arbitrary input over HTTP and EPC: nothing may break, hang or leak.

300 inputs; GC_FUZZ sets another number.  GC_FUZZ_SEED repeats a run, whose
seed is printed at its end.
"""

import json
import logging
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import psutil
import pytest
import sexpdata
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from sexpdata import Symbol

from conftest import FUZZ_INPUTS, FUZZ_SEED, Alone, CliOf, ServeAlone, Start, until
from fake_cli import BOUND, Events, FakeCli

texts = st.text(st.characters(), max_size=20)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4)
    ),
    max_leaves=6,
)
paths = st.sampled_from(["/a", "/b", "/c", "", "a", "/ssh:host:/a", "/\0"]) | texts
arguments = st.fixed_dictionaries(
    {},
    optional={
        "filePath": paths | values,
        "newContent": texts | values,
        "suppressNotification": values,
    },
)
methods = st.sampled_from(
    ["initialize", "notifications/initialized", "notifications/cancelled", "ping",
     "tools/list", "tools/call", "resources/list", "logging/setLevel"]
)  # fmt: skip
calls = st.fixed_dictionaries(
    {}, optional={"name": st.sampled_from(["openDiff", "closeDiff"]) | values,
                  "arguments": arguments | values, "_meta": values}
)  # fmt: skip
messages = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0"), "method": methods | texts},
    optional={"id": st.integers() | values, "params": calls | values},
)
bodies = (messages | values | st.lists(messages, max_size=3)).map(
    lambda body: json.dumps(body).encode()
)


def spoiled(whole: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    """Return ``whole`` with bytes lost or changed."""

    def spoil(data: bytes, at: int, by: bytes | None) -> bytes:
        at %= len(data) + 1
        return data[:at] + (b"" if by is None else by + data[at + len(by) :])

    changes = st.none() | st.binary(max_size=4)
    return st.builds(spoil, whole, st.integers(0, 10_000), changes)


def _fuzz(
    inputs: st.SearchStrategy[Any], share: float, attack: Callable[[Any], None]
) -> None:
    profile = settings(
        max_examples=max(1, int(FUZZ_INPUTS * share)),
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),  # pyright: ignore[reportArgumentType]
    )
    seed(FUZZ_SEED)(profile(given(inputs)(attack)))()


def _descriptors(pid: int | None = None) -> int:
    return int(psutil.Process(pid).num_fds())


def _talk(port: int, data: bytes) -> bytes:
    """Send ``data`` and nothing more; return the beginning of the answer."""
    answer = b""
    with (
        suppress(ConnectionError),  # it may have been closed by now
        socket.create_connection(("127.0.0.1", port), BOUND) as peer,
    ):
        peer.sendall(data)
        with suppress(OSError):
            peer.shutdown(socket.SHUT_WR)
        while part := peer.recv(65536):
            answer += part
            if b"text/event-stream" in answer:
                break
    return answer


def _works(alone: Alone, cli: FakeCli, events: Events) -> None:
    """Check that the client is answered, and is the only one that is left."""
    assert cli.ask("ping", {})["result"] == {}
    cli.open_diff("/last", "x")
    alone.do(alone.diffs.decide, alone.emacs.opened[-1].id)
    while events.next()["params"].get("filePath") != "/last":
        pass
    until(lambda: list(alone.sessions._sessions) == [cli.session_id])


# Most requests have no line but these, and are whole.
no_lines: list[bytes] = []
line_lists = st.just(no_lines) | st.lists(
    st.sampled_from(
        b"""Origin: null
Content-Length: 5
Content-Length: x
Transfer-Encoding: chunked
Transfer-Encoding: gzip
Expect: 100-continue
Upgrade: websocket
Upgrade: h2c
Connection: Upgrade
Connection: close
Last-Event-ID: 1""".splitlines()
    ),
    max_size=3,
)
start_lines = st.just(b"POST /mcp") | st.builds(
    lambda method, where: method + b" " + where,
    st.sampled_from([b"GET", b"POST", b"DELETE", b"HEAD", b"PRI", b"X"]),
    st.sampled_from([b"/mcp", b"/", b"*", b"http://x/mcp", b"/mcp?a=%ff"]),
)


def test_any_request_is_answered_or_ended(
    serve_alone: ServeAlone, cli_of: CliOf, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    alone = serve_alone(headers_time=1000, comment_interval=0.05, session_grace=0.2)
    cli = cli_of(alone)
    events = cli.connect()
    descriptors = _descriptors()
    host = f"Host: 127.0.0.1:{alone.port}".encode()

    def request(start: bytes, session: str, lines: list[bytes], body: bytes) -> bytes:
        headers = cli.headers(session).items()
        lines = [
            *(start + b" HTTP/1.1", host, b"Content-Length: %d" % len(body)),
            *(f"{name}: {value}".encode() for name, value in headers),
            *lines,
        ]
        return b"\r\n".join([*lines, b"", body])

    sessions = st.sampled_from(["fuzz", ""])
    any_body = bodies | spoiled(bodies)
    requests = st.builds(request, start_lines, sessions, line_lists, any_body)
    post, lines = st.just(b"POST /mcp"), st.just(no_lines)
    whole = st.builds(request, post, sessions, lines, any_body)
    others = requests | spoiled(requests) | st.binary(max_size=100)

    def attack(sent: tuple[bytes, bool]) -> None:
        data, is_whole = sent
        answer = _talk(alone.port, data)
        assert not answer.startswith(b"HTTP/1.1 500")
        assert answer.startswith(b"HTTP/1.1 ") or not is_whole

    inputs = st.tuples(whole, st.just(True)) | st.tuples(others, st.just(False))
    _fuzz(inputs, 0.7, attack)
    _works(alone, cli, events)
    until(lambda: _descriptors() <= descriptors + 2)
    bad = [record.getMessage() for record in caplog.records if record.levelno > 30]
    assert bad == []
    assert not any(record.exc_info for record in caplog.records)


forms = st.recursive(
    st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
    | st.sampled_from([Symbol("t"), Symbol("nil"), Symbol(":path"), Symbol(":file")]),
    lambda inner: st.lists(inner, max_size=4),
    max_leaves=8,
)
# All but `stop' and `hand-over', which end the server.
names = st.sampled_from(
    ["hello", "context-update", "roots-update", "diff-accepted", "diff-rejected",
     "adopt-diff", "no-such-method"]
).map(Symbol)  # fmt: skip
kinds = st.sampled_from(["call", "return", "return-error", "epc-error", "methods", "x"])
epc_messages = st.tuples(
    kinds.map(Symbol), st.integers(1000, 1_000_000) | forms, names | forms, forms
).map(lambda message: sexpdata.dumps(list(message)).encode())


def test_any_message_of_emacs_is_survived(start: Start) -> None:
    emacs = start()
    assert emacs.call("diff-rejected", 1) is True
    descriptors = _descriptors(emacs.process.pid)

    def attack(message: bytes) -> None:
        emacs.epc.send_bytes(b"%06x" % len(message) + message)
        assert not emacs.epc.closed.is_set()

    _fuzz(epc_messages | spoiled(epc_messages) | st.binary(max_size=60), 0.3, attack)
    assert emacs.call("diff-rejected", 1) is True
    until(lambda: _descriptors(emacs.process.pid) <= descriptors + 2)
    emacs.close()
    emacs.log.clear()  # calls with other arguments than those of Emacs
