# SPDX-License-Identifier: GPL-3.0-or-later
import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from conftest import StubEmacs
from gemini_companion_epc.clients import CLIENTS
from gemini_companion_epc.config import Config
from gemini_companion_epc.exceptions import MalformedArgument
from gemini_companion_epc.ide import Ide
from gemini_companion_epc.session import COMMENT, Session, Stream
from gemini_companion_epc.types import CloseReason, Diff, File, IdeContext

BOUND = 120.0


class Rig:
    """An Ide and its stub of an Emacs."""

    def __init__(self, **fields: Any) -> None:
        self.emacs = StubEmacs()
        config = Config(secret="s", emacs_pid=1, **fields)
        self.ide = Ide(config, self.emacs, lambda port: None)

    def session(self) -> tuple[Session, Stream]:
        session = self.ide.new_session(CLIENTS[0])
        return session, self.ide.open_stream(session)


def _run(scene: Callable[[Rig], Awaitable[None]], **fields: Any) -> None:
    async def run() -> None:
        await asyncio.wait_for(scene(Rig(**fields)), BOUND)

    asyncio.run(run())


def _context(path: str) -> IdeContext:
    return IdeContext.of([File(path, 1)])


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
        session = rig.ide.new_session(CLIENTS[0])
        for path in ("/a", "/b", "/c"):
            rig.ide.open_diff(session, path, "x")
        rig.ide.accept(2, "two")
        rig.ide.reject(1)
        stream = rig.ide.open_stream(session)
        assert await _take(stream) == _accepted("/b", "two")
        rig.ide.close_stream(session, stream)
        rig.ide.accept(3, "three")
        stream = rig.ide.open_stream(session)
        assert await _take(stream) == _rejected("/a")
        assert await _take(stream) == _accepted("/c", "three")
        assert await stream.next(0.01) == COMMENT

    _run(scene)


def test_an_outcome_that_was_not_written_is_kept() -> None:
    async def scene(rig: Rig) -> None:
        session, stalled = rig.session()
        rig.ide.open_diff(session, "/a", "x")
        rig.ide.reject(1)
        event = await stalled.next(BOUND)
        assert event is not None
        newer = rig.ide.open_stream(session)
        stalled.written(event)
        assert await stalled.next(BOUND) is None
        assert await _take(newer) == _rejected("/a")

    _run(scene)


def test_the_latest_context_comes_first_and_is_not_repeated() -> None:
    async def scene(rig: Rig) -> None:
        session = rig.ide.new_session(CLIENTS[0])
        rig.ide.open_diff(session, "/a", "x")
        rig.ide.reject(1)
        rig.ide.broadcast(_context("/old"))
        rig.ide.broadcast(_context("/new"))
        stream = rig.ide.open_stream(session)
        method, params = await _take(stream)
        assert method == "ide/contextUpdate"
        assert params["workspaceState"]["openFiles"][0]["path"] == "/new"
        assert await _take(stream) == _rejected("/a")
        rig.ide.broadcast(_context("/new"))
        assert await stream.next(0.01) == COMMENT
        again = rig.ide.open_stream(session)
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
        rig.ide.end_session(session.id)
        await _until(lambda: rig.emacs.sessions[-1] == [])
        rig.ide.broadcast(_context("/old"))
        session, stream = rig.session()
        await _until(lambda: rig.emacs.sessions[-1] == [session.id])
        assert await stream.next(0.01) == COMMENT
        rig.ide.broadcast(_context("/new"))
        _, params = await _take(stream)
        assert params["workspaceState"]["openFiles"][0]["path"] == "/new"

    _run(scene)


def test_an_open_stream_receives_a_change() -> None:
    async def scene(rig: Rig) -> None:
        _, stream = rig.session()
        waiting = asyncio.ensure_future(_take(stream))
        await asyncio.sleep(0)
        rig.ide.broadcast(_context("/a"))
        assert (await waiting)[0] == "ide/contextUpdate"

    _run(scene)


def test_an_outcome_goes_to_the_session_that_asked_only() -> None:
    async def scene(rig: Rig) -> None:
        (one, one_stream), (two, two_stream) = rig.session(), rig.session()
        rig.ide.open_diff(one, "/same", "1")
        rig.ide.open_diff(two, "/same", "2")
        rig.ide.accept(2, "second")
        rig.ide.accept(1, "first")
        assert await _take(one_stream) == _accepted("/same", "first")
        assert await _take(two_stream) == _accepted("/same", "second")
        assert await one_stream.next(0.01) == COMMENT

    _run(scene)


def test_a_diff_has_one_outcome() -> None:
    async def scene(rig: Rig) -> None:
        session, stream = rig.session()
        rig.ide.open_diff(session, "/a", "x")
        rig.ide.reject(1)
        rig.ide.accept(1, "late")
        rig.ide.reject(99)
        assert await _take(stream) == _rejected("/a")
        assert await stream.next(0.01) == COMMENT

    _run(scene)


def test_a_newer_proposal_takes_the_place_of_the_older() -> None:
    async def scene(rig: Rig) -> None:
        session, stream = rig.session()
        rig.ide.open_diff(session, "/a", "old")
        rig.ide.open_diff(session, "/a", "new")
        await _until(lambda: rig.emacs.closed)
        assert rig.emacs.closed == [(1, "closed")]
        rig.ide.accept(1, "old text")
        rig.ide.accept(2, "new text")
        assert await _take(stream) == _accepted("/a", "new text")

    _run(scene)


def test_an_emptied_proposal_is_not_accepted_and_stays_open() -> None:
    async def scene(rig: Rig) -> None:
        session, stream = rig.session()
        rig.ide.open_diff(session, "/a", "x")
        rig.ide.open_diff(session, "/b", "")
        with pytest.raises(MalformedArgument, match="cannot be accepted"):
            rig.ide.accept(1, "")
        rig.ide.accept(2, "")
        rig.ide.reject(1)
        assert await _take(stream) == _accepted("/b", "")
        assert await _take(stream) == _rejected("/a")

    _run(scene)


def test_closing_returns_the_text_of_emacs_and_notifies_no_client() -> None:
    async def scene(rig: Rig) -> None:
        session, stream = rig.session()
        rig.ide.open_diff(session, "/a", "x")
        rig.emacs.texts[1] = "edited\ud800"
        assert await rig.ide.close_diff(session, "/a") == "edited\ufffd"
        rig.ide.accept(1, "late")
        assert await rig.ide.close_diff(session, "/a") is None
        assert await stream.next(0.01) == COMMENT
        assert rig.emacs.closed == [(1, "closed")]

    _run(scene)


def test_closing_takes_the_text_of_an_accept_that_crossed_it() -> None:
    async def scene(rig: Rig) -> None:
        session, stream = rig.session()
        rig.ide.open_diff(session, "/a", "x")
        rig.emacs.before_answer = lambda diff_id: rig.ide.accept(diff_id, "mine")
        assert await rig.ide.close_diff(session, "/a") == "mine"
        assert await stream.next(0.01) == COMMENT

    _run(scene)


def test_closing_without_emacs_returns_the_proposal() -> None:
    async def scene(rig: Rig) -> None:
        session, _ = rig.session()
        rig.ide.open_diff(session, "/a", "proposal")
        rig.emacs.is_gone = True
        assert await rig.ide.close_diff(session, "/a") == "proposal"

    _run(scene)


def test_closing_reaches_emacs_although_the_client_has_gone() -> None:
    async def scene(rig: Rig) -> None:
        session, _ = rig.session()
        rig.ide.open_diff(session, "/a", "proposal")
        closing = asyncio.create_task(rig.ide.close_diff(session, "/a"))
        await asyncio.sleep(0)
        closing.cancel()
        await rig.ide.finish_closing(BOUND)
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
        rig.ide.open_diff(session, "/a", "proposal")
        assert await rig.ide.close_diff(session, "/a") == "proposal"

    _run(scene, close_limit=0.01)


def test_a_client_that_ctrl_c_left_waiting_is_freed() -> None:
    async def scene(rig: Rig) -> None:
        session, stream = rig.session()
        rig.ide.open_diff(session, "/interrupted", "x")
        assert await rig.ide.close_diff(session, "/next") is None
        rig.ide.open_diff(session, "/next", "y")
        assert await _take(stream) == _rejected("/interrupted")
        assert await _take(stream) == _rejected("/next")
        await _until(lambda: rig.emacs.closed)
        assert rig.emacs.closed == [(1, "interrupted")]
        rig.ide.open_diff(session, "/next", "y")
        assert [diff.path for diff in rig.emacs.opened] == ["/interrupted", "/next"]

    _run(scene)


def test_a_close_that_crosses_its_outcome_ends_no_other_diff() -> None:
    async def scene(rig: Rig) -> None:
        session, _ = rig.session()
        rig.ide.open_diff(session, "/a", "x")
        rig.ide.open_diff(session, "/b", "y")
        rig.ide.reject(rig.emacs.opened[0].id)
        assert await rig.ide.close_diff(session, "/a") is None
        assert list(session.diffs) == ["/b"]
        assert await rig.ide.close_diff(session, "/c") is None
        assert list(session.diffs) == []

    _run(scene)


def test_a_later_proposal_is_not_part_of_an_interrupted_one() -> None:
    async def scene(rig: Rig) -> None:
        session, _ = rig.session()
        rig.ide.open_diff(session, "/interrupted", "x")
        await rig.ide.close_diff(session, "/next")
        await asyncio.sleep(0.02)
        rig.ide.open_diff(session, "/next", "y")
        assert rig.emacs.opened[-1].path == "/next"

    _run(scene, cancel_window=0.01)


def test_the_diffs_of_a_session_outlive_its_stream_by_the_grace_time() -> None:
    async def scene(rig: Rig) -> None:
        session, stream = rig.session()
        rig.ide.open_diff(session, "/a", "x")
        rig.ide.close_stream(session, stream)
        again = rig.ide.open_stream(session)
        await asyncio.sleep(0.1)
        assert not rig.emacs.closed
        rig.ide.close_stream(session, again)
        await _until(lambda: rig.emacs.closed)
        assert rig.emacs.closed == [(1, "disconnected")]
        rig.ide.accept(1, "late")
        last = rig.ide.open_stream(session)
        assert await last.next(0.01) == COMMENT

    _run(scene, review_grace=0.05)


def test_what_is_accepted_after_the_grace_time_is_not_written_later() -> None:
    async def scene(rig: Rig) -> None:
        session, stream = rig.session()
        for path in ("/a", "/b"):
            rig.ide.open_diff(session, path, "x")
        rig.ide.close_stream(session, stream)
        rig.ide.accept(1, "edited")
        rig.ide.reject(2)
        await _until(lambda: rig.emacs.undelivered)
        assert rig.emacs.undelivered == [1]
        again = rig.ide.open_stream(session)
        assert await _take(again) == _rejected("/b")
        assert await again.next(0.01) == COMMENT
        assert rig.emacs.written == [2]

    _run(scene, review_grace=0.05)


def test_emacs_may_drop_the_rejections_of_a_session_that_ends() -> None:
    async def scene(rig: Rig) -> None:
        session = rig.ide.new_session(CLIENTS[0])
        for path in ("/a", "/b", "/c"):
            rig.ide.open_diff(session, path, "x")
        rig.ide.reject(1)
        rig.ide.accept(2, "edited")
        await rig.ide.close_diff(session, "/d")
        rig.ide.end_session(session.id)
        assert rig.emacs.written == [1]
        assert rig.emacs.undelivered == [2]

    _run(scene)


def test_what_is_accepted_in_the_grace_time_is_delivered() -> None:
    async def scene(rig: Rig) -> None:
        session, stream = rig.session()
        rig.ide.open_diff(session, "/a", "x")
        rig.ide.close_stream(session, stream)
        rig.ide.accept(1, "edited")
        again = rig.ide.open_stream(session)
        assert await _take(again) == _accepted("/a", "edited")
        await asyncio.sleep(0.1)
        assert rig.emacs.undelivered == []

    _run(scene, review_grace=0.05)


def _adopted(number: int, path: str = "/a") -> Diff:
    return Diff(number, "previous", path, "proposal")


def test_an_adopted_diff_is_settled_when_its_session_reconnects() -> None:
    async def scene(rig: Rig) -> None:
        rig.ide.adopt(_adopted(7))
        rig.ide.adopt(_adopted(5, "/b"))
        rig.ide.accept(7, "edited")
        session = rig.ide.session("previous")
        stream = rig.ide.open_stream(session)
        assert rig.emacs.written == []
        assert await _take(stream) == _accepted("/a", "edited")
        assert rig.emacs.written == [7]
        assert await rig.ide.close_diff(session, "/b") == "proposal"
        rig.ide.open_diff(session, "/c", "x")
        assert [diff.id for diff in rig.emacs.opened] == [8]

    _run(scene)


def test_the_id_of_a_previous_process_is_not_used_before_its_adoption() -> None:
    async def scene(rig: Rig) -> None:
        rig.ide.open_diff(rig.ide.session("previous"), "/b", "x")
        assert rig.emacs.opened[0].id > 1_000_000
        rig.ide.adopt(_adopted(1))
        with pytest.raises(MalformedArgument, match="open already"):
            rig.ide.adopt(_adopted(1))

    _run(scene, port=4711)


def test_an_adopted_diff_whose_session_does_not_reconnect_is_dismissed() -> None:
    async def scene(rig: Rig) -> None:
        rig.ide.adopt(_adopted(7))
        await _until(lambda: rig.emacs.closed)
        assert rig.emacs.closed == [(7, "disconnected")]

    _run(scene, review_grace=0.01)


def test_a_newer_proposal_wins_over_an_adopted_one() -> None:
    async def scene(rig: Rig) -> None:
        session = rig.ide.session("previous")
        stream = rig.ide.open_stream(session)
        rig.ide.open_diff(session, "/a", "newer")
        rig.ide.adopt(_adopted(7))
        await _until(lambda: rig.emacs.closed)
        assert rig.emacs.closed == [(7, "closed")]
        rig.ide.accept(rig.emacs.opened[0].id, "x")
        assert await _take(stream) == _accepted("/a", "x")

    _run(scene, port=1)


def test_the_later_of_two_adopted_proposals_wins() -> None:
    async def scene(rig: Rig) -> None:
        session = rig.ide.session("previous")
        stream = rig.ide.open_stream(session)
        rig.ide.adopt(_adopted(7))
        rig.ide.adopt(_adopted(8))
        rig.ide.adopt(_adopted(6))
        await _until(lambda: len(rig.emacs.closed) == 2)
        assert rig.emacs.closed == [(7, "closed"), (6, "closed")]
        rig.ide.drop(7)
        rig.ide.accept(8, "x")
        assert await _take(stream) == _accepted("/a", "x")

    _run(scene)


def test_a_dropped_diff_has_no_outcome() -> None:
    async def scene(rig: Rig) -> None:
        session = rig.ide.session("previous")
        for is_accepted in (False, True):
            rig.ide.adopt(_adopted(7))
            if is_accepted:
                rig.ide.accept(7, "edited")
            rig.ide.drop(7)
            rig.ide.reject(7)
            assert not session.outcomes
            assert set(rig.emacs.written) == {7}
        assert await rig.ide.close_diff(session, "/a") is None

    _run(scene)


def test_what_is_adopted_during_a_stop_is_rejected() -> None:
    async def scene(rig: Rig) -> None:
        rig.ide.reject_all()
        rig.ide.adopt(_adopted(7))
        stream = rig.ide.open_stream(rig.ide.session("previous"))
        assert await _take(stream) == _rejected("/a")

    _run(scene)


def test_an_idle_session_is_forgotten_with_its_diffs() -> None:
    async def scene(rig: Rig) -> None:
        session = rig.ide.new_session(CLIENTS[0])
        with rig.ide.request(session):
            rig.ide.open_diff(session, "/a", "x")
            await asyncio.sleep(0.05)
            assert rig.ide.session(session.id) is session
        await _until(lambda: rig.emacs.closed)
        assert rig.ide.session(session.id) is not session

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
        rig.ide.close_stream(session, stream)
        await reported(other)
        assert rig.ide.end_session(other.id)
        assert not rig.ide.end_session(other.id)
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
        rig.ide.open_diff(session, "/a", "x")
        rig.ide.reject_all()
        rig.ide.open_diff(session, "/b", "y")
        flushed = asyncio.ensure_future(rig.ide.flush(BOUND))
        assert await _take(stream) == _rejected("/a")
        await asyncio.sleep(0)
        assert not flushed.done()
        assert await _take(stream) == _rejected("/b")
        await flushed
        ended = asyncio.ensure_future(rig.ide.end_streams())
        assert await stream.next(BOUND) is None
        rig.ide.close_stream(session, stream)
        await ended

    _run(scene)


def test_a_stalled_client_delays_a_stop_by_the_limits_only() -> None:
    async def scene(rig: Rig) -> None:
        session, _ = rig.session()
        rig.ide.open_diff(session, "/a", "x")
        rig.ide.reject_all()
        await rig.ide.flush(0.01)
        await rig.ide.end_streams()

    _run(scene, end_limit=0.01)


def test_streams_that_end_with_the_server_are_not_reported() -> None:
    async def scene(rig: Rig) -> None:
        session = rig.ide.session("one")
        stream = rig.ide.open_stream(session)
        await _until(lambda: rig.emacs.sessions)
        await rig.ide.end_streams()
        rig.ide.close_stream(session, stream)
        await asyncio.sleep(0.02)
        assert len(rig.emacs.sessions) == 1

    _run(scene, end_limit=0.01, report_interval=0)
