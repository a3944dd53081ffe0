# SPDX-License-Identifier: GPL-3.0-or-later
import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from conftest import StubEmacs
from gemini_companion_epc.clients import CLIENTS
from gemini_companion_epc.config import Config
from gemini_companion_epc.diffs import LARGEST_PROPOSAL, Diffs
from gemini_companion_epc.exceptions import MalformedArgument
from gemini_companion_epc.session import COMMENT, Session, Stream
from gemini_companion_epc.sessions import Sessions
from gemini_companion_epc.types import CloseReason, Diff

BOUND = 120.0


class Rig:
    """The diffs, their sessions and the stub of an Emacs."""

    def __init__(self, **fields: Any) -> None:
        self.emacs = StubEmacs()
        config = Config(secret="s", emacs_pid=1, **fields)
        self.sessions = Sessions(
            config,
            lambda peer: None,
            self.emacs.sessions_update,
            self.emacs.outcome_written,
        )
        self.diffs = Diffs(config, self.sessions, self.emacs)

    def stop(self) -> None:
        self.sessions.is_stopping = True
        self.diffs.reject_all()

    def session(self) -> tuple[Session, Stream]:
        session = self.sessions.new(CLIENTS[0])
        return session, self.sessions.open_stream(session)


def _run(scene: Callable[[Rig], Awaitable[None]], **fields: Any) -> None:
    async def run() -> None:
        await asyncio.wait_for(scene(Rig(**fields)), BOUND)

    asyncio.run(run())


def _context(path: str) -> list[dict[str, Any]]:
    return [{"path": path, "timestamp": 1}]


async def _take(stream: Stream) -> Any:
    """Return the next notification as (method, params), written at once."""
    event = await stream.next(BOUND)
    assert event is not None
    stream.written(event)
    message = json.loads(event.split(b"data: ")[1])
    return message["method"], message["params"]


def _accepted(path: str, content: str) -> Any:
    return "ide/diffAccepted", {"filePath": path, "content": content}


def _rejected(path: str) -> Any:
    return "ide/diffRejected", {"filePath": path}


async def _until(condition: Callable[[], object]) -> None:
    for _ in range(5000):
        if condition():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("it did not come to hold")


def test_outcomes_wait_for_a_stream_and_leave_in_order_once() -> None:
    async def scene(rig: Rig) -> None:
        session = rig.sessions.new(CLIENTS[0])
        for path in ("/a", "/b", "/c"):
            await rig.diffs.open(session, path, "x")
        rig.diffs.accept(2, "two")
        rig.diffs.reject(1)
        stream = rig.sessions.open_stream(session)
        assert await _take(stream) == _accepted("/b", "two")
        rig.sessions.close_stream(session, stream)
        rig.diffs.accept(3, "three")
        stream = rig.sessions.open_stream(session)
        assert await _take(stream) == _rejected("/a")
        assert await _take(stream) == _accepted("/c", "three")
        assert await stream.next(0.01) == COMMENT

    _run(scene)


def test_an_outcome_that_was_not_written_is_kept() -> None:
    async def scene(rig: Rig) -> None:
        session, stalled = rig.session()
        await rig.diffs.open(session, "/a", "x")
        rig.diffs.reject(1)
        event = await stalled.next(BOUND)
        assert event is not None
        newer = rig.sessions.open_stream(session)
        stalled.written(event)
        assert await stalled.next(BOUND) is None
        assert await _take(newer) == _rejected("/a")

    _run(scene)


def test_the_latest_context_comes_first_and_is_not_repeated() -> None:
    async def scene(rig: Rig) -> None:
        session = rig.sessions.new(CLIENTS[0])
        await rig.diffs.open(session, "/a", "x")
        rig.diffs.reject(1)
        rig.sessions.broadcast(_context("/old"))
        rig.sessions.broadcast(_context("/new"))
        stream = rig.sessions.open_stream(session)
        method, params = await _take(stream)
        assert method == "ide/contextUpdate"
        assert params["workspaceState"]["openFiles"][0]["path"] == "/new"
        assert await _take(stream) == _rejected("/a")
        rig.sessions.broadcast(_context("/new"))
        assert await stream.next(0.01) == COMMENT
        again = rig.sessions.open_stream(session)
        assert (await _take(again))[0] == "ide/contextUpdate"

    _run(scene)


def test_no_context_is_sent_before_emacs_has_sent_one() -> None:
    async def scene(rig: Rig) -> None:
        _, stream = rig.session()
        assert await stream.next(0.01) == COMMENT

    _run(scene)


def test_a_context_that_crosses_the_end_of_the_last_session_is_dropped() -> None:
    async def scene(rig: Rig) -> None:
        session, _ = rig.session()
        await _until(lambda: rig.emacs.sessions == [[session.id]])
        rig.sessions.end(session.id)
        await _until(lambda: rig.emacs.sessions[-1] == [])
        rig.sessions.broadcast(_context("/old"))
        session, stream = rig.session()
        await _until(lambda: rig.emacs.sessions[-1] == [session.id])
        assert await stream.next(0.01) == COMMENT
        rig.sessions.broadcast(_context("/new"))
        _, params = await _take(stream)
        assert params["workspaceState"]["openFiles"][0]["path"] == "/new"

    _run(scene)


def test_an_open_stream_receives_a_change() -> None:
    async def scene(rig: Rig) -> None:
        _, stream = rig.session()
        waiting = asyncio.ensure_future(_take(stream))
        await asyncio.sleep(0)
        rig.sessions.broadcast(_context("/a"))
        assert (await waiting)[0] == "ide/contextUpdate"

    _run(scene)


def test_an_outcome_goes_to_the_session_that_asked_only() -> None:
    async def scene(rig: Rig) -> None:
        (one, one_stream), (two, two_stream) = rig.session(), rig.session()
        await rig.diffs.open(one, "/same", "1")
        await rig.diffs.open(two, "/same", "2")
        rig.diffs.accept(2, "second")
        rig.diffs.accept(1, "first")
        assert await _take(one_stream) == _accepted("/same", "first")
        assert await _take(two_stream) == _accepted("/same", "second")
        assert await one_stream.next(0.01) == COMMENT

    _run(scene)


def test_a_diff_has_one_outcome() -> None:
    async def scene(rig: Rig) -> None:
        session, stream = rig.session()
        await rig.diffs.open(session, "/a", "x")
        rig.diffs.reject(1)
        rig.diffs.accept(1, "late")
        rig.diffs.reject(99)
        assert await _take(stream) == _rejected("/a")
        assert await stream.next(0.01) == COMMENT

    _run(scene)


def test_a_newer_proposal_takes_the_place_of_the_older() -> None:
    async def scene(rig: Rig) -> None:
        session, stream = rig.session()
        await rig.diffs.open(session, "/a", "old")
        await rig.diffs.open(session, "/a", "new")
        await _until(lambda: rig.emacs.closed)
        assert rig.emacs.closed == [(1, "closed")]
        rig.diffs.accept(1, "old text")
        rig.diffs.accept(2, "new text")
        assert await _take(stream) == _accepted("/a", "new text")

    _run(scene)


def test_an_emptied_proposal_is_not_accepted_and_stays_open() -> None:
    async def scene(rig: Rig) -> None:
        session, stream = rig.session()
        await rig.diffs.open(session, "/a", "x")
        await rig.diffs.open(session, "/b", "")
        with pytest.raises(MalformedArgument, match="cannot be accepted"):
            rig.diffs.accept(1, "")
        rig.diffs.accept(2, "")
        rig.diffs.reject(1)
        assert await _take(stream) == _accepted("/b", "")
        assert await _take(stream) == _rejected("/a")

    _run(scene)


def test_closing_returns_the_text_of_emacs_and_notifies_no_client() -> None:
    async def scene(rig: Rig) -> None:
        session, stream = rig.session()
        await rig.diffs.open(session, "/a", "x")
        rig.emacs.texts[1] = "edited\ud800"
        assert await rig.diffs.close(session, "/a") == "edited\ufffd"
        rig.diffs.accept(1, "late")
        assert await rig.diffs.close(session, "/a") is None
        assert await stream.next(0.01) == COMMENT
        assert rig.emacs.closed == [(1, "closed")]

    _run(scene)


def test_closing_takes_the_text_of_an_accept_that_crossed_it() -> None:
    async def scene(rig: Rig) -> None:
        session, stream = rig.session()
        await rig.diffs.open(session, "/a", "x")
        rig.emacs.before_answer = lambda diff_id: rig.diffs.accept(diff_id, "mine")
        assert await rig.diffs.close(session, "/a") == "mine"
        assert await stream.next(0.01) == COMMENT

    _run(scene)


def test_closing_without_emacs_returns_the_proposal() -> None:
    async def scene(rig: Rig) -> None:
        session, _ = rig.session()
        await rig.diffs.open(session, "/a", "proposal")
        rig.emacs.is_gone = True
        assert await rig.diffs.close(session, "/a") == "proposal"

    _run(scene)


def test_closing_reaches_emacs_although_the_client_has_gone() -> None:
    async def scene(rig: Rig) -> None:
        session, _ = rig.session()
        await rig.diffs.open(session, "/a", "proposal")
        closing = asyncio.create_task(rig.diffs.close(session, "/a"))
        await asyncio.sleep(0)
        closing.cancel()
        await rig.diffs.finish_closing(BOUND)
        assert rig.emacs.closed == [(1, "closed")]

    _run(scene)


def test_closing_does_not_wait_for_ever_for_emacs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scene(rig: Rig) -> None:
        async def never(diff_id: int, reason: CloseReason) -> str | None:
            await asyncio.Event().wait()
            return None

        monkeypatch.setattr(rig.emacs, "close_diff", never)
        session, _ = rig.session()
        await rig.diffs.open(session, "/a", "proposal")
        assert await rig.diffs.close(session, "/a") == "proposal"

    _run(scene, diff_limit=0.01)


def test_a_client_that_ctrl_c_left_waiting_is_freed() -> None:
    async def scene(rig: Rig) -> None:
        session, stream = rig.session()
        await rig.diffs.open(session, "/interrupted", "x")
        assert await rig.diffs.close(session, "/next") is None
        await rig.diffs.open(session, "/next", "y")
        assert await _take(stream) == _rejected("/interrupted")
        assert await _take(stream) == _rejected("/next")
        await _until(lambda: rig.emacs.closed)
        assert rig.emacs.closed == [(1, "interrupted")]
        await rig.diffs.open(session, "/next", "y")
        assert [diff.path for diff in rig.emacs.opened] == ["/interrupted", "/next"]

    _run(scene)


def test_a_close_that_crosses_its_outcome_ends_no_other_diff() -> None:
    async def scene(rig: Rig) -> None:
        session, _ = rig.session()
        await rig.diffs.open(session, "/a", "x")
        await rig.diffs.open(session, "/b", "y")
        rig.diffs.reject(rig.emacs.opened[0].id)
        assert await rig.diffs.close(session, "/a") is None
        assert list(session.diffs) == ["/b"]
        assert await rig.diffs.close(session, "/c") is None
        assert list(session.diffs) == []

    _run(scene)


def test_a_later_proposal_is_not_part_of_an_interrupted_one() -> None:
    async def scene(rig: Rig) -> None:
        session, _ = rig.session()
        await rig.diffs.open(session, "/interrupted", "x")
        await rig.diffs.close(session, "/next")
        await asyncio.sleep(0.02)
        await rig.diffs.open(session, "/next", "y")
        assert rig.emacs.opened[-1].path == "/next"

    _run(scene, cancel_window=0.01)


def test_the_diffs_of_a_session_outlive_its_stream_by_the_grace_time() -> None:
    async def scene(rig: Rig) -> None:
        session, stream = rig.session()
        await rig.diffs.open(session, "/a", "x")
        rig.sessions.close_stream(session, stream)
        again = rig.sessions.open_stream(session)
        await asyncio.sleep(0.1)
        assert not rig.emacs.closed
        rig.sessions.close_stream(session, again)
        await _until(lambda: rig.emacs.closed)
        assert rig.emacs.closed == [(1, "disconnected")]
        rig.diffs.accept(1, "late")
        last = rig.sessions.open_stream(session)
        assert await last.next(0.01) == COMMENT

    _run(scene, review_grace=0.05)


def test_what_is_accepted_after_the_grace_time_is_not_written_later() -> None:
    async def scene(rig: Rig) -> None:
        session, stream = rig.session()
        for path in ("/a", "/b"):
            await rig.diffs.open(session, path, "x")
        rig.sessions.close_stream(session, stream)
        rig.diffs.accept(1, "edited")
        rig.diffs.reject(2)
        await _until(lambda: rig.emacs.undelivered)
        assert rig.emacs.undelivered == [1]
        again = rig.sessions.open_stream(session)
        assert await _take(again) == _rejected("/b")
        assert await again.next(0.01) == COMMENT
        assert rig.emacs.written == [2]

    _run(scene, review_grace=0.05)


def test_emacs_may_drop_the_rejections_of_a_session_that_ends() -> None:
    async def scene(rig: Rig) -> None:
        session = rig.sessions.new(CLIENTS[0])
        for path in ("/a", "/b", "/c"):
            await rig.diffs.open(session, path, "x")
        rig.diffs.reject(1)
        rig.diffs.accept(2, "edited")
        await rig.diffs.close(session, "/d")
        rig.sessions.end(session.id)
        assert rig.emacs.written == [1]
        assert rig.emacs.undelivered == [2]

    _run(scene)


def test_what_is_accepted_in_the_grace_time_is_delivered() -> None:
    async def scene(rig: Rig) -> None:
        session, stream = rig.session()
        await rig.diffs.open(session, "/a", "x")
        rig.sessions.close_stream(session, stream)
        rig.diffs.accept(1, "edited")
        again = rig.sessions.open_stream(session)
        assert await _take(again) == _accepted("/a", "edited")
        await asyncio.sleep(0.1)
        assert rig.emacs.undelivered == []

    _run(scene, review_grace=0.05)


def _adopted(number: int, path: str = "/a") -> Diff:
    return Diff(number, "previous", path, "proposal")


def test_an_adopted_diff_is_settled_when_its_session_reconnects() -> None:
    async def scene(rig: Rig) -> None:
        rig.diffs.adopt(_adopted(7))
        rig.diffs.adopt(_adopted(5, "/b"))
        rig.diffs.accept(7, "edited")
        session = rig.sessions.get("previous")
        stream = rig.sessions.open_stream(session)
        assert rig.emacs.written == []
        assert await _take(stream) == _accepted("/a", "edited")
        assert rig.emacs.written == [7]
        assert await rig.diffs.close(session, "/b") == "proposal"
        await rig.diffs.open(session, "/c", "x")
        assert [diff.path for diff in rig.emacs.opened] == ["/c"]

    _run(scene)


def test_a_diff_is_adopted_once_and_its_id_is_not_used_again() -> None:
    async def scene(rig: Rig) -> None:
        rig.diffs.adopt(_adopted(1))
        for again in (_adopted(1, "/b"), _adopted(2)):
            with pytest.raises(MalformedArgument, match="open already"):
                rig.diffs.adopt(again)
        later = Diffs(Config("s", 1, port=1), rig.sessions, rig.emacs)
        await later.open(rig.sessions.get("previous"), "/c", "x")
        assert rig.emacs.opened[0].id > 1_000_000

    _run(scene)


def test_a_large_proposal_is_left_to_the_terminal() -> None:
    async def scene(rig: Rig) -> None:
        session, _ = rig.session()
        await rig.diffs.open(session, "/small", "x" * LARGEST_PROPOSAL)
        await rig.diffs.open(session, "/large", "x" * (LARGEST_PROPOSAL + 1))
        assert [diff.path for diff in rig.emacs.opened] == ["/small"]
        (message,) = rig.emacs.warnings
        assert "/large has more than 8 MB" in message
        assert "answer in the terminal" in message
        await rig.diffs.close(session, "/small")
        assert await rig.diffs.close(session, "/large") is None

    _run(scene)


def test_a_diff_is_acknowledged_when_emacs_has_it() -> None:
    async def scene(rig: Rig) -> None:
        is_free = asyncio.Event()
        rig.emacs.before_opening = is_free.wait
        session, _ = rig.session()
        opening = asyncio.ensure_future(rig.diffs.open(session, "/a", "x"))
        await asyncio.sleep(0.1)
        assert not opening.done()
        is_free.set()
        await opening

    _run(scene)


def test_an_adopted_diff_whose_session_does_not_reconnect_is_dismissed() -> None:
    async def scene(rig: Rig) -> None:
        rig.diffs.adopt(_adopted(7))
        await _until(lambda: rig.emacs.closed)
        assert rig.emacs.closed == [(7, "disconnected")]

    _run(scene, review_grace=0.01)


def test_an_idle_session_is_forgotten_with_its_diffs() -> None:
    async def scene(rig: Rig) -> None:
        session = rig.sessions.new(CLIENTS[0])
        with rig.sessions.request(session):
            await rig.diffs.open(session, "/a", "x")
            await asyncio.sleep(0.05)
            assert rig.sessions.get(session.id) is session
        await _until(lambda: rig.emacs.closed)
        assert rig.sessions.get(session.id) is not session

    _run(scene, session_grace=0.01)


def test_connected_sessions_are_reported_to_emacs() -> None:
    async def scene(rig: Rig) -> None:
        async def reported(*sessions: Session) -> None:
            expected = [one.id for one in sessions]
            await _until(lambda: rig.emacs.sessions[-1:] == [expected])

        session, stream = rig.session()
        await reported(session)
        other, _ = rig.session()
        await reported(session, other)
        rig.sessions.close_stream(session, stream)
        await reported(other)
        assert rig.sessions.end(other.id)
        assert not rig.sessions.end(other.id)
        await reported()

    _run(scene)


def test_many_sessions_are_reported_together() -> None:
    async def scene(rig: Rig) -> None:
        for _ in range(100):
            rig.session()
            await asyncio.sleep(0)
        await _until(lambda: len(rig.emacs.sessions[-1]) == 100)
        assert len(rig.emacs.sessions) < 10

    _run(scene)


def test_a_stop_rejects_everything_and_waits_until_it_has_left() -> None:
    async def scene(rig: Rig) -> None:
        session, stream = rig.session()
        await rig.diffs.open(session, "/a", "x")
        rig.stop()
        await rig.diffs.open(session, "/b", "y")
        flushed = asyncio.ensure_future(rig.sessions.flush(BOUND))
        assert await _take(stream) == _rejected("/a")
        await asyncio.sleep(0)
        assert not flushed.done()
        assert await _take(stream) == _rejected("/b")
        await flushed
        ended = asyncio.ensure_future(rig.sessions.end_streams())
        assert await stream.next(BOUND) is None
        rig.sessions.close_stream(session, stream)
        await ended

    _run(scene)


def test_a_stalled_client_delays_a_stop_by_the_limits_only() -> None:
    async def scene(rig: Rig) -> None:
        session, _ = rig.session()
        await rig.diffs.open(session, "/a", "x")
        rig.stop()
        await rig.sessions.flush(0.01)
        await rig.sessions.end_streams()

    _run(scene, end_limit=0.01)


def test_streams_that_end_with_the_server_are_not_reported() -> None:
    async def scene(rig: Rig) -> None:
        session = rig.sessions.get("one")
        stream = rig.sessions.open_stream(session)
        await _until(lambda: rig.emacs.sessions)
        await rig.sessions.end_streams()
        rig.sessions.close_stream(session, stream)
        await asyncio.sleep(0.02)
        assert len(rig.emacs.sessions) == 1

    _run(scene, end_limit=0.01, report_interval=0)
