# SPDX-License-Identifier: GPL-3.0-or-later
import asyncio

import pytest

from fake_cli import BOUND
from gemini_companion_epc.clients import CLIENTS
from gemini_companion_epc.sessions import COMMENT
from scene import Rig, context_of, rejected, take, until

pytestmark = pytest.mark.anyio


async def test_a_context_that_crosses_the_last_end_is_dropped(rig: Rig) -> None:
    session, _ = rig.session()
    await until(lambda: rig.emacs.sessions == [[session.id]])
    rig.sessions.end(session.id)
    await until(lambda: rig.emacs.sessions[-1] == [])
    rig.sessions.broadcast(context_of("/old"))
    session, stream = rig.session()
    await until(lambda: rig.emacs.sessions[-1] == [session.id])
    assert await stream.next(0.01) == COMMENT
    rig.sessions.broadcast(context_of("/new"))
    _, params = await take(stream)
    assert params["workspaceState"]["openFiles"][0]["path"] == "/new"


async def test_a_request_in_progress_keeps_a_session() -> None:
    rig = Rig(session_grace=0.01)
    session = rig.sessions.open("one", CLIENTS[0])
    with rig.sessions.request(session):
        await rig.diffs.open(session, "/a", "x")
        await asyncio.sleep(0.05)
        assert rig.sessions.has(session)
    await until(lambda: rig.emacs.closed)
    assert not rig.sessions.has(session)


async def test_clients_that_return_are_reported_together() -> None:
    rig = Rig(port=1)
    returned = [rig.session()[0].id for _ in range(2)]
    rig.sessions.begin_reports()
    await until(lambda: rig.emacs.sessions)
    assert rig.emacs.sessions == [returned]


async def test_an_outcome_that_was_not_received_is_kept(rig: Rig) -> None:
    session, stalled = rig.session()
    await rig.diffs.open(session, "/a", "x")
    rig.diffs.decide(1)
    event = await stalled.next(BOUND)
    assert event is not None
    newer = rig.sessions.open_stream(session)
    stalled.written(event)
    assert await stalled.next(BOUND) is None
    assert await take(newer) == rejected("/a")
    # The connection to another host may have lost what was written.
    session.is_alive = lambda: asyncio.sleep(0, result=True)
    await rig.diffs.open(session, "/b", "x")
    rig.diffs.decide(2)
    assert await take(newer) == rejected("/b")
    session.resume("1")
    assert await take(newer) == rejected("/b")
    session.resume("2")
    assert await newer.next(0.01) == COMMENT


@pytest.mark.parametrize("is_first", [True, False])
async def test_an_outcome_that_was_received_is_not_repeated(is_first: bool) -> None:
    # The previous process has crashed before it could report that.
    rig = Rig()
    facts = {"id": "previous", "client": "gemini"}
    for number, path in enumerate(["/a", "/b"], 1):
        rig.diffs.adopt(number, facts, path, "proposal")
    session = rig.sessions.open("previous", CLIENTS[0])
    if is_first:
        session.resume("1")
    rig.diffs.decide(1, "proposal")
    rig.diffs.decide(2)
    if not is_first:
        session.resume("1")
    assert rig.emacs.written == [1]
    stream = rig.sessions.open_stream(session)
    assert await take(stream) == rejected("/b")
    assert await stream.next(0.01) == COMMENT


async def test_the_latest_context_comes_first_and_is_not_repeated(rig: Rig) -> None:
    session = rig.sessions.open("one", CLIENTS[0])
    await rig.diffs.open(session, "/a", "x")
    rig.diffs.decide(1)
    rig.sessions.broadcast(context_of("/hidden-meanwhile"))
    stream = rig.sessions.open_stream(session)
    rig.sessions.broadcast(context_of("/old"))
    rig.sessions.broadcast(context_of("/new"))
    method, params = await take(stream)
    assert method == "ide/contextUpdate"
    assert params["workspaceState"]["openFiles"][0]["path"] == "/new"
    assert await take(stream) == rejected("/a")
    rig.sessions.broadcast(context_of("/new"))
    assert await stream.next(0.01) == COMMENT
    again = rig.sessions.open_stream(session)
    assert await again.next(0.01) == COMMENT
    rig.sessions.broadcast(context_of("/new"))
    assert (await take(again))[0] == "ide/contextUpdate"
