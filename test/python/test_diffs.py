# SPDX-License-Identifier: GPL-3.0-or-later
import asyncio

import pytest

from conftest import dead_pid
from fake_cli import BOUND
from gemini_companion_epc.clients import CLIENTS
from gemini_companion_epc.companion import EXTENDED
from gemini_companion_epc.diffs import LARGEST_PROPOSAL
from gemini_companion_epc.sessions import COMMENT
from gemini_companion_epc.types import CloseReason, Facts
from scene import Rig, accepted, rejected, take, until

pytestmark = pytest.mark.anyio


async def test_a_diff_has_one_outcome_for_the_session_that_asked(rig: Rig) -> None:
    (one, one_stream), (two, two_stream) = rig.session(), rig.session()
    await rig.diffs.open(one, "/same", "1")
    await rig.diffs.open(two, "/same", "2")
    for diff_id, text in (2, "second"), (1, None), (1, "late"), (99, None):
        rig.diffs.decide(diff_id, text)
    assert await take(one_stream) == rejected("/same")
    assert await take(two_stream) == accepted("/same", "second")
    for stream in (one_stream, two_stream):
        assert await stream.next(0.01) == COMMENT


async def test_closing_returns_the_text_and_notifies_no_client(rig: Rig) -> None:
    session, stream = rig.session()
    await rig.diffs.open(session, "/a", "x")
    rig.emacs.texts[1] = "edited"
    assert await rig.diffs.close(session, "/a") == "edited"
    rig.diffs.decide(1, "late")
    assert await rig.diffs.close(session, "/a") is None
    assert await stream.next(0.01) == COMMENT
    assert rig.emacs.closed == [(1, "closed")]


async def test_closing_takes_the_text_of_an_accept_that_crossed_it(rig: Rig) -> None:
    session, stream = rig.session()
    await rig.diffs.open(session, "/a", "x")
    rig.emacs.before_answer = lambda diff_id: rig.diffs.decide(diff_id, "mine")
    assert await rig.diffs.close(session, "/a") == "mine"
    assert await stream.next(0.01) == COMMENT


async def test_closing_without_emacs_returns_the_proposal() -> None:
    rig = Rig(diff_limit=0.01)
    session, _ = rig.session()
    for rig.emacs.is_gone, rig.emacs.is_silent in ((True, False), (False, True)):
        await rig.diffs.open(session, "/a", "proposal")
        assert await rig.diffs.close(session, "/a") == "proposal"


async def test_closing_reaches_emacs_although_the_client_has_gone(rig: Rig) -> None:
    session, _ = rig.session()
    await rig.diffs.open(session, "/a", "proposal")
    closing = asyncio.create_task(rig.diffs.close(session, "/a"))
    await asyncio.sleep(0)
    closing.cancel()
    await rig.diffs.finish_closing(BOUND)
    assert rig.emacs.closed == [(1, "closed")]


async def test_a_client_that_ctrl_c_left_waiting_is_freed(rig: Rig) -> None:
    session, stream = rig.session()
    await rig.diffs.open(session, "/crossed", "x")
    await rig.diffs.open(session, "/interrupted", "x")
    # A close that crosses its outcome ends no other diff.
    rig.diffs.decide(1)
    assert await take(stream) == rejected("/crossed")
    assert await rig.diffs.close(session, "/crossed") is None
    assert list(rig.diffs.of(session)) == ["/interrupted"]
    assert await rig.diffs.close(session, "/next") is None
    assert await take(stream) == rejected("/interrupted")
    await rig.diffs.open(session, "/next", "y")
    assert await take(stream) == rejected("/next")
    await until(lambda: rig.emacs.closed)
    assert rig.emacs.closed == [(2, "interrupted")]
    # Emacs keeps it until it is written, as the server may be restarted.
    rig.emacs.before_answer = rig.diffs.decide
    await rig.diffs.open(session, "/next", "y")
    assert [diff.path for diff in rig.emacs.opened][1:] == ["/interrupted", "/next"]
    assert await rig.diffs.close(session, "/other") is None
    assert await take(stream) == rejected("/next")
    assert rig.emacs.written == [1, 2, 3]


async def test_diffs_and_outcomes_outlive_a_stream_by_the_grace_time() -> None:
    rig = Rig(session_grace=0.05)
    session, stream = rig.session()
    for path in ("/a", "/b", "/c", "/open"):
        await rig.diffs.open(session, path, "x")
    rig.sessions.close_stream(session, stream)
    rig.diffs.decide(1, "edited")
    # In the grace time it is delivered.
    again = rig.sessions.open_stream(session)
    assert await take(again) == accepted("/a", "edited")
    await asyncio.sleep(0.1)
    assert not rig.emacs.closed
    rig.sessions.close_stream(session, again)
    rig.diffs.decide(2, "edited")
    rig.diffs.decide(3)
    await until(lambda: rig.emacs.undelivered and rig.emacs.closed)
    assert rig.emacs.undelivered == [2, 3]
    assert rig.emacs.closed == [(4, "disconnected")]
    rig.diffs.decide(4, "late")
    assert rig.emacs.written == [1, 4]
    assert rig.sessions.find(session.id) is None


async def test_a_review_that_is_not_opened_again_ends() -> None:
    rig = Rig(session_grace=0.05)
    (copilot,) = [client for client in CLIENTS if client.has_socket]
    session, _ = rig.session()
    other, _ = rig.session()
    session.client = copilot
    for path, owner in (("/a", session), ("/b", session), ("/c", other)):
        rig.diffs.adopt(ord(path[1]), owner.facts, path, "x")
    call = asyncio.create_task(session.calls.decided("/b", "x"))
    await until(lambda: rig.emacs.closed)
    await asyncio.sleep(0.05)
    assert rig.emacs.closed == [(ord("a"), "interrupted")]
    assert set(rig.diffs.of(session)) == {"/b"}
    rig.diffs.decide(ord("b"), "x")
    assert await call


@pytest.mark.parametrize(
    ("facts", "grace", "reason"),
    [({}, 0.01, "disconnected"), ({"pid": dead_pid(), "identity": 1}, 30, "exited")],
)
async def test_an_adopted_diff_ends_without_its_client(
    facts: Facts, grace: float, reason: CloseReason
) -> None:
    rig = Rig(session_grace=grace)
    facts = {"id": "previous", "client": "gemini", **facts}
    rig.diffs.adopt(1, facts, "/a", "proposal")
    await asyncio.wait_for(until(lambda: rig.emacs.closed), BOUND)
    assert rig.emacs.closed == [(1, reason)]


async def test_an_outcome_is_for_no_later_proposal(rig: Rig) -> None:
    # The client had it when the previous process crashed.
    facts = {"id": "previous", "client": "gemini"}
    rig.diffs.adopt(1, facts, "/a", "first")
    rig.diffs.decide(1, "first")
    session = rig.sessions.open("previous", CLIENTS[0])
    await rig.diffs.open(session, "/a", "second")
    assert rig.emacs.written == [1]
    stream = rig.sessions.open_stream(session)
    assert await stream.next(0.01) == COMMENT
    rig.diffs.decide(rig.emacs.opened[0].id)
    assert await take(stream) == rejected("/a")


async def test_a_large_proposal_is_left_to_the_terminal(rig: Rig) -> None:
    session, stream = rig.session()
    large = "x" * (LARGEST_PROPOSAL + 1)
    await rig.diffs.open(session, "/small", large[1:])
    await rig.diffs.open(session, "/large", large)
    assert [diff.path for diff in rig.emacs.opened] == ["/small"]
    (message,) = rig.emacs.warnings
    assert "/large has more than 8 MB" in message
    assert "answer in the terminal" in message
    # It rejects no other one, and after Ctrl-C it is rejected.
    assert await rig.diffs.close(session, "/large") == large
    assert list(rig.diffs.of(session)) == ["/small"]
    await rig.diffs.close(session, "/small")
    await rig.diffs.open(session, "/large", large)
    assert await rig.diffs.close(session, "/next") is None
    assert await take(stream) == rejected("/large")


async def test_a_session_does_not_grow_with_its_past() -> None:
    rig = Rig(cancel_window=0.01)
    session, stream = rig.session()
    for number in range(50):
        await rig.diffs.open(session, f"/{number}", "x")
        rig.diffs.decide(2 * number + 1)
        await rig.diffs.open(session, f"/interrupted/{number}", "x")
        await rig.diffs.close(session, f"/next/{number}")
        await take(stream)
        await take(stream)
    paths = rig.diffs.paths_of(session)
    await until(lambda: not paths.decided)
    await until(lambda: not paths.interrupted)


async def test_a_stop_rejects_everything_and_waits_until_it_has_left() -> None:
    rig = Rig(end_limit=BOUND)
    session, stream = rig.session()
    await rig.diffs.open(session, "/a", "x")
    rig.sessions.is_stopping = True
    rig.diffs.reject_all()
    opening = asyncio.ensure_future(rig.diffs.open(session, "/b", "y"))
    await asyncio.sleep(0)
    flushed = asyncio.ensure_future(rig.sessions.flush())
    assert await take(stream) == rejected("/a")
    await asyncio.sleep(0)
    assert not flushed.done()
    assert await take(stream) == rejected("/b")
    await flushed
    await opening
    ended = asyncio.ensure_future(rig.sessions.end_streams())
    assert await stream.next(BOUND) is None
    rig.sessions.close_stream(session, stream)
    await ended
    # It waits for an answer to no review that it cannot be told of.
    late = asyncio.ensure_future(rig.diffs.open(session, "/c", "z"))
    await asyncio.sleep(0.01)
    assert not late.done()
    late.cancel()
    # The end of the stream is not reported.
    assert rig.emacs.sessions == [[session.id]]


async def test_an_extension_has_the_reason_of_a_rejection_and_prompts(rig: Rig) -> None:
    (plain, plain_stream), (extended, stream) = rig.session(), rig.session(EXTENDED)
    for session in (plain, extended):
        await rig.diffs.open(session, "/a", "x")
    rig.diffs.reject(1, "in French")
    rig.diffs.reject(2, "in French")
    assert await take(plain_stream) == rejected("/a")
    name, params = rejected("/a")
    assert await take(stream) == (name, {**params, "reason": "in French"})
    await rig.diffs.open(extended, "/a", "y")
    rig.diffs.reject(3)
    prompts = [asyncio.ensure_future(extended.prompt(text)) for text in ("why?", "no")]
    assert not await plain.prompt("why?")
    assert await take(stream) == rejected("/a")
    for prompt, is_taken in zip(prompts, (True, False), strict=True):
        name, params = await take(stream)
        assert name == "ide/prompt"
        assert not prompt.done()
        extended.end_prompt("another", True)
        extended.end_prompt(params["id"], is_taken)
        assert await prompt is is_taken
    assert await plain_stream.next(0.01) == COMMENT


async def test_a_prompt_is_not_taken_if_the_session_ends(rig: Rig) -> None:
    session, stream = rig.session(EXTENDED)
    taken = asyncio.ensure_future(session.prompt("why?"))
    assert (await take(stream))[0] == "ide/prompt"
    rig.sessions.close_stream(session, stream)
    assert not taken.done()
    rig.sessions.end(session.id)
    assert not await taken


async def test_an_extension_closes_a_diff_twice_and_no_other(rig: Rig) -> None:
    session, _ = rig.session(EXTENDED)
    await rig.diffs.open(session, "/a", "x")
    assert await rig.diffs.close(session, "/none") is None
    await rig.diffs.finish_closing(BOUND)
    assert list(rig.diffs.of(session)) == ["/a"]
    assert rig.emacs.closed == []


async def test_a_stop_rejects_nothing_that_its_client_sends_again(rig: Rig) -> None:
    session, stream = rig.session(EXTENDED)
    await rig.diffs.open(session, "/a", "x")
    rig.sessions.is_stopping = True
    rig.diffs.reject_all()
    await rig.diffs.open(session, "/b", "y")
    await until(lambda: rig.emacs.closed)
    assert rig.emacs.closed == [(1, "lost")]
    await rig.sessions.flush()
    assert await stream.next(0.01) == COMMENT
