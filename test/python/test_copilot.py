# SPDX-License-Identifier: GPL-3.0-or-later
"""The protocol of Copilot CLI, by HTTP and in the event loop."""

import asyncio
import json
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from conftest import Alone, until
from fake_cli import BOUND, FakeCli, FakeCopilot
from gemini_companion_epc import calls, copilot
from gemini_companion_epc.copilot import Copilot
from gemini_companion_epc.protocol import Reviews
from gemini_companion_epc.types import File, Json
from test_questions import request


@pytest.fixture
def cli(alone: Alone) -> Iterator[FakeCopilot]:
    cli = FakeCopilot(alone.port, alone.token + ".copilot")
    cli.initialize()
    yield cli
    cli.close()
    alone.do(alone.sessions.end, cli.id)
    cli.pool.shutdown()


@pytest.mark.parametrize("names", [(), ("X-Copilot-PID",), ("X-Copilot-Session-Id",)])
def test_clients_that_do_not_name_themselves_share_no_session(
    alone: Alone, names: tuple[str, ...]
) -> None:
    class Nameless(FakeCli):
        def headers(self, session_id: str = "", accept: str = "") -> dict[str, str]:
            accept = accept or "application/json, text/event-stream"
            same = dict.fromkeys(names, "1")
            return {**super().headers(session_id, accept), **same}

    clis = [Nameless(alone.port, alone.token + ".copilot") for _ in range(2)]
    for cli in clis:
        cli.connect()
    first, second = (client.session_id for client in clis)
    assert first != second
    until(lambda: alone.emacs.sessions[-1] == [first, second])
    for cli in clis:
        cli.close()


def test_a_review_may_be_closed_before_it_is_open(
    alone: Alone, cli: FakeCopilot
) -> None:
    closed = cli.later("close_diff", tab_name="1")
    review = cli.review("/a", "x", "1")
    assert review.result(BOUND)["result"] == "REJECTED"
    closed.result(BOUND)
    assert alone.emacs.closed == [(1, "closed")]

    opens = asyncio.Event()
    alone.emacs.before_opening = opens.wait
    review = cli.review("/b", "x", "2")
    until(lambda: len(alone.emacs.opened) == 2)
    assert alone.emacs.acknowledged == [1]
    cli.later("close_diff", tab_name="2").result(BOUND)
    alone.do(opens.set)
    assert review.result(BOUND)["result"] == "REJECTED"
    assert alone.emacs.closed[1:] == [(2, "closed")]


def test_a_review_stays_open_when_the_cli_connects_again(
    alone: Alone, cli: FakeCopilot
) -> None:
    first = cli.review("/a", "x", "1")
    until(lambda: alone.emacs.acknowledged)
    second = cli.review("/a", "x", "2")
    assert first.result(BOUND)["result"] == "REJECTED"  # nobody reads it
    closed = cli.later("close_diff", tab_name="2")
    third = cli.review("/a", "x", "3")
    second.result(BOUND)
    closed.result(BOUND)
    assert (len(alone.emacs.opened), alone.emacs.closed) == (1, [])
    # One of the reviews may be answered that the CLI opens in passing.
    alone.do(alone.diffs.decide, 1, "mine")
    assert third.result(BOUND)["result"] == "SAVED"
    assert cli.review("/a", "x", "4").result(BOUND)["result"] == "SAVED"
    assert len(alone.emacs.opened) == 1


@pytest.mark.parametrize(("age", "is_closed"), [(1, False), (60, True)])
def test_a_review_is_closed_at_once_except_while_the_cli_connects(
    monkeypatch: pytest.MonkeyPatch, age: float, is_closed: bool
) -> None:
    monkeypatch.setattr(copilot, "_REOPENING", 0.1)
    closed: list[str] = []

    async def opened(path: str, proposal: str) -> bool:
        return False

    async def close(path: str) -> None:
        closed.append(path)

    async def close_and_reopen() -> None:
        is_reopened = asyncio.Event()

        async def decided(path: str, proposal: str) -> None:
            # Another call for the file ends this one.
            await is_reopened.wait()

        reviews = Reviews("session", opened, close, decided, lambda: age, print, print)
        call = partial(Copilot().call, reviews)
        review: Json = {"original_file_path": "/a", "new_file_contents": "x"}
        opening = asyncio.create_task(call("open_diff", {**review, "tab_name": "1"}))
        await asyncio.sleep(0)
        closing = asyncio.create_task(call("close_diff", {"tab_name": "1"}))
        await asyncio.sleep(0)
        is_reopened.set()
        await asyncio.gather(closing, opening)

    asyncio.run(close_and_reopen())
    assert closed == (["/a"] if is_closed else [])


def answer_again(
    alone: Alone, cli: FakeCopilot, path: str, content: str | None
) -> None:
    """Answer a review of ``path`` that was sent again, as after a restart."""
    first = cli.review(path, "x", "1")
    until(lambda: alone.emacs.acknowledged)
    second = cli.review(path, "x", "2")
    first.result(BOUND)
    alone.do(alone.diffs.decide, 1, content)
    result = "REJECTED" if content is None else "SAVED"
    assert second.result(BOUND)["result"] == result


def test_the_same_proposal_is_reviewed_once_the_file_is_written(
    alone: Alone, cli: FakeCopilot, tmp_path: Path
) -> None:
    file = tmp_path / "a"
    file.write_text("old")
    answer_again(alone, cli, str(file), "mine")
    # The CLI writes its own text, and Emacs the accepted one over it.
    file.write_text("mine")
    again = cli.review(str(file), "x", "3")
    until(lambda: len(alone.emacs.acknowledged) == 2)
    alone.do(alone.diffs.decide, 2)
    assert again.result(BOUND)["result"] == "REJECTED"


@pytest.mark.parametrize("content", ["mine", None])
def test_an_answer_counts_no_longer_than_the_cli_connects_again(
    alone: Alone,
    cli: FakeCopilot,
    monkeypatch: pytest.MonkeyPatch,
    content: str | None,
) -> None:
    now = [1000.0]
    monkeypatch.setattr(copilot, "monotonic", lambda: now[0])
    answer_again(alone, cli, "/a", content)
    now[0] += 1
    last = cli.review("/a", "x", "3").result(BOUND)
    assert last["result"] == ("REJECTED" if content is None else "SAVED")
    assert len(alone.emacs.opened) == 1
    now[0] += 1.5
    again = cli.review("/a", "x", "4")
    until(lambda: len(alone.emacs.acknowledged) == 2)
    alone.do(alone.diffs.decide, 2)
    again.result(BOUND)


def test_an_answer_long_after_a_connection_is_one_to_that_call_only(
    alone: Alone, cli: FakeCopilot, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(copilot, "monotonic", lambda: now[0])
    first = cli.review("/a", "x", "1")
    until(lambda: alone.emacs.acknowledged)
    second = cli.review("/a", "x", "2")
    first.result(BOUND)
    now[0] += 60
    alone.do(alone.diffs.decide, 1)
    assert second.result(BOUND)["result"] == "REJECTED"
    again = cli.review("/a", "x", "3")
    until(lambda: len(alone.emacs.acknowledged) == 2)
    alone.do(alone.diffs.decide, 2, "x")
    assert again.result(BOUND)["result"] == "SAVED"


def decide_without_call(alone: Alone, cli: FakeCopilot, text: str) -> None:
    """Accept ``text`` in a review whose call has ended, as when a server crashes."""
    first = cli.review("/a", "x", "1")
    until(lambda: alone.emacs.acknowledged)
    session = alone.do(alone.sessions.find, cli.id)
    assert session
    alone.do(session.calls.release, "/a")
    first.result(BOUND)
    alone.do(alone.diffs.decide, 1, text)


def test_an_answer_waits_for_the_cli_that_connects_again(
    alone: Alone, cli: FakeCopilot
) -> None:
    decide_without_call(alone, cli, "mine")
    assert alone.emacs.written == []
    assert cli.review("/a", "x", "2").result(BOUND)["result"] == "SAVED"
    assert (len(alone.emacs.opened), alone.emacs.written) == (1, [1])


@contextmanager
def call_that_is_cut(alone: Alone, cli: FakeCopilot, path: str) -> Iterator[None]:
    """Open a review of ``path`` by a call whose connection is closed at the end."""
    arguments = dict.fromkeys(("original_file_path", "tab_name"), path)
    params = {
        "name": "open_diff",
        "arguments": {**arguments, "new_file_contents": "x"},
    }
    call = {"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": params}
    count = len(alone.emacs.acknowledged)
    with closing(HTTPConnection("127.0.0.1", alone.port, BOUND)) as connection:
        headers = cli.headers(cli.session_id)
        connection.request("POST", "/mcp", json.dumps(call), headers)
        until(lambda: len(alone.emacs.acknowledged) > count)
        yield


def test_an_outcome_whose_call_is_gone_is_reported_as_lost(
    alone: Alone, cli: FakeCopilot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "_CALL_AGAIN", 0.1)
    session = alone.do(alone.sessions.find, cli.id)
    assert session
    with call_that_is_cut(alone, cli, "/a"):
        pass
    until(lambda: not session.calls.has_call_for("/a"))
    alone.do(alone.diffs.decide, 1, "mine")
    until(lambda: alone.emacs.undelivered == [1])
    assert alone.emacs.written == []
    # The same proposal is another review, and its outcome arrives.
    again = cli.review("/a", "x", "2")
    until(lambda: len(alone.emacs.opened) == 2)
    alone.do(alone.diffs.decide, 2, "mine")
    assert again.result(BOUND)["result"] == "SAVED"
    assert (alone.emacs.written, alone.emacs.undelivered) == ([2], [1])


def test_a_client_that_calls_again_in_time_gets_the_outcome(
    alone: Alone, cli: FakeCopilot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "_CALL_AGAIN", BOUND)
    session = alone.do(alone.sessions.find, cli.id)
    assert session
    with call_that_is_cut(alone, cli, "/a"):
        pass
    until(lambda: not session.calls.has_call_for("/a"))
    alone.do(alone.diffs.decide, 1, "mine")
    assert cli.review("/a", "x", "2").result(BOUND)["result"] == "SAVED"
    assert (alone.emacs.written, alone.emacs.undelivered) == ([1], [])


def test_an_answer_for_another_proposal_is_not_taken(
    alone: Alone, cli: FakeCopilot
) -> None:
    decide_without_call(alone, cli, "x")
    second = cli.review("/a", "y", "2")
    until(lambda: len(alone.emacs.acknowledged) == 2)
    alone.do(alone.diffs.decide, 2)
    assert second.result(BOUND)["result"] == "REJECTED"
    assert alone.emacs.written == [2]


def test_another_proposal_for_a_file_is_another_review(
    alone: Alone, cli: FakeCopilot
) -> None:
    first = cli.review("/a", "x", "1")
    until(lambda: len(alone.emacs.acknowledged) == 1)
    second = cli.review("/a", "y", "2")
    until(lambda: len(alone.emacs.acknowledged) == 2)
    assert alone.emacs.closed == [(1, "closed")]
    alone.do(alone.diffs.decide, 2, "y")
    assert second.result(BOUND)["result"] == "SAVED"
    assert first.result(BOUND)["result"] == "REJECTED"


@pytest.mark.parametrize(
    "name", ["tab_name", "original_file_path", "new_file_contents"]
)
def test_a_missing_argument_of_copilot_is_named(cli: FakeCopilot, name: str) -> None:
    arguments = {"tab_name": "1", "original_file_path": "/a", "new_file_contents": "x"}
    del arguments[name]
    result = cli.tool("open_diff", **arguments)["result"]
    assert result["isError"] is True
    assert name in result["content"][0]["text"]


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("ab", (1, 4), (1, 6)),
        ("a\nb\U0001f600c", (1, 4), (2, 4)),
        ("a\n", (1, 4), (2, 0)),
        ("", (1, 0), (1, 0)),
    ],
)
def test_a_selection_has_its_start_and_end(
    text: str, start: tuple[int, int], end: tuple[int, int]
) -> None:
    where = {"start_line": 2, "start_character": 5} if text else {}
    file = File(
        "/a b", 1, active=True, line=2, character=9, selected_text=text, **where
    )
    params: Any = Copilot().context([File("/x", 2), file])["params"]
    assert (params["filePath"], params["fileUrl"]) == ("/a b", "file:///a%20b")
    selection = params["selection"]
    positions = [tuple(selection[side].values()) for side in ("start", "end")]
    assert (positions, selection["isEmpty"]) == ([start, end], not text)


def test_without_an_active_file_the_selection_is_empty() -> None:
    params: Any = Copilot().context([File("/x", 2)])["params"]
    assert (params["text"], params["filePath"]) == ("", "")
    assert params["selection"]["isEmpty"]


def test_what_emacs_adds_to_a_prompt_is_the_context_of_copilot(alone: Alone) -> None:
    alone.answer({"text": "undone"})
    event = {"prompt": "go", "cwd": "/", "sessionId": "one"}
    body = {"method": "event", "event": event, "confirms": True, "pid": os.getpid()}
    answer = request(alone.port, f"{alone.token}.copilot", body)
    assert answer == (200, {"additionalContext": "undone"})
    assert alone.emacs.asked_of("turn", "addition", "ended") == ["turn", "addition"]


def test_the_directory_of_a_session_is_that_of_the_last_event(
    alone: Alone, cli: FakeCopilot, tmp_path: Path
) -> None:
    cli.listen()
    until(lambda: alone.emacs.sessions)
    (session,) = alone.sessions._sessions.values()
    assert session.facts["directory"] == os.getcwd()
    alone.answer({})

    def report(where: str, expected: str) -> None:
        event = {"sessionId": "1", "cwd": where, "prompt": "x"}
        body = {"method": "event", "pid": os.getpid(), "event": event}
        request(alone.port, alone.token + ".copilot", body)
        assert session.facts["directory"] == expected

    count = len(alone.emacs.sessions)
    for _ in range(2):
        report(str(tmp_path), str(tmp_path))
    until(lambda: len(alone.emacs.sessions) == count + 1)
    # What is no directory of this Emacs is none of its CLIs.
    alone.linked.roots = [str(tmp_path)]
    report("/", str(tmp_path))
