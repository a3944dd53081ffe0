# SPDX-License-Identifier: GPL-3.0-or-later
from gemini_companion_epc.clients import CLIENTS
from gemini_companion_epc.sessions import COMMENT
from scene import BOUND, Rig, context_of, in_loop, rejected, take


@in_loop()
async def test_an_outcome_that_was_not_written_is_kept(rig: Rig) -> None:
    session, stalled = rig.session()
    await rig.diffs.open(session, "/a", "x")
    rig.diffs.reject(1)
    event = await stalled.next(BOUND)
    assert event is not None
    newer = rig.sessions.open_stream(session)
    stalled.written(event)
    assert await stalled.next(BOUND) is None
    assert await take(newer) == rejected("/a")


@in_loop()
async def test_the_latest_context_comes_first_and_is_not_repeated(rig: Rig) -> None:
    session = rig.sessions.get("one", CLIENTS[0])
    await rig.diffs.open(session, "/a", "x")
    rig.diffs.reject(1)
    rig.sessions.broadcast(context_of("/old"))
    rig.sessions.broadcast(context_of("/new"))
    stream = rig.sessions.open_stream(session)
    method, params = await take(stream)
    assert method == "ide/contextUpdate"
    assert params["workspaceState"]["openFiles"][0]["path"] == "/new"
    assert await take(stream) == rejected("/a")
    rig.sessions.broadcast(context_of("/new"))
    assert await stream.next(0.01) == COMMENT
    again = rig.sessions.open_stream(session)
    assert (await take(again))[0] == "ide/contextUpdate"
