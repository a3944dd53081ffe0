# SPDX-License-Identifier: GPL-3.0-or-later
"""The permissions that CLIs ask for, and the answers of Emacs.

A hook reports the question of a CLI, and Emacs displays it.  The CLI also asks in its
terminal, unless its hook waits for the answer of Emacs.  Then only one answer is a yes:
an answer of that Emacs, to that question, which allows exactly that text.  In all other
cases the answer is empty, and the CLI asks in its terminal.
"""

import asyncio
import hashlib
import json
import logging
from collections.abc import AsyncIterator, Coroutine
from typing import Any, Literal, TypeAlias
from uuid import uuid4

from sexpdata import Symbol

from .config import Config
from .emacs import Emacs
from .hooks import LONGEST_QUESTION, Question
from .processes import Watched
from .types import EmacsError, Facts, Json

logger = logging.getLogger(__name__)

HEARTBEAT = b"\n"
"""What JSON may begin with: a sign of life of the server for the hook that waits."""

ALLOW = {"behavior": "allow"}
"""The decision that is a yes."""

End: TypeAlias = Literal["ended", "returned"]
"""The end of a question that Emacs has not answered: the CLI asks no longer, or in its
terminal."""


class Permissions:
    """The permissions that CLIs ask for, while CLIs are linked."""

    def __init__(self, config: Config, emacs: Emacs) -> None:
        self._config = config
        self._emacs = emacs
        self._returns: set[asyncio.Event] = set()
        """An event for each open question; it is set to let the CLI ask itself."""
        self._is_ended = False

    def end(self) -> None:
        """Give all questions back to their CLIs, and stop asking Emacs."""
        self._is_ended = True
        self.give_back()

    def give_back(self) -> None:
        """Let all CLIs ask in their terminals."""
        for event in self._returns:
            event.set()

    async def stream(self, answer: Coroutine[Any, Any, Json]) -> AsyncIterator[bytes]:
        """Yield what the hook reads: signs of life, and at last ``answer`` as JSON.

        A server that hangs gives no sign, and the hook gives up.  Cancel
        ``answer`` if the hook hangs up.
        """
        task = asyncio.get_running_loop().create_task(answer)
        try:
            yield HEARTBEAT
            while not task.done():
                await asyncio.wait([task], timeout=self._config.ping_interval)
                if not task.done():
                    yield HEARTBEAT
            yield json.dumps(task.result()).encode()
        finally:
            task.cancel()

    async def ask(self, facts: Facts, question: Question, cli: Watched) -> Facts:
        """Return the answer of Emacs: ``behavior``, and maybe ``message``; or {}.

        It is empty if ``cli`` exits, if Emacs gives no sign of life, or if the question
        is given back.
        """
        text = question.as_text()
        # What was replaced in it on its way is not what the CLI would run.
        if "\\ufffd" in text or len(text) > LONGEST_QUESTION:
            return {}
        question_id = uuid4().hex
        answer = self._answer({**facts, "id": question_id}, question, text)
        limit = self._config.silence_limit
        decision = await self.wait(question_id, answer, cli, limit)
        if decision:
            logger.info("permission: %s", decision["behavior"])
        return decision

    async def wait(
        self, question_id: str, answering: Coroutine[Any, Any, Facts], cli: Watched,
        silence_limit: float,
    ) -> Facts:  # fmt: skip
        """Return the answer of the user to ``question_id``, by ``answering``; or {}.

        It is empty if ``cli`` exits, if Emacs gives no sign of life for
        ``silence_limit`` seconds, or if the question is given back.  Emacs then learns
        that nothing waits.
        """
        if self._is_ended:
            answering.close()
            return {}
        returned = asyncio.Event()
        self._returns.add(returned)
        loop = asyncio.get_running_loop()
        answer = loop.create_task(answering)
        ends: dict[asyncio.Task[Any], End] = {
            loop.create_task(self._exited(cli)): "ended",
            loop.create_task(returned.wait()): "returned",
            loop.create_task(self._silent(silence_limit)): "returned",
        }
        try:
            tasks: list[asyncio.Task[Any]] = [answer, *ends]
            await asyncio.wait(
                tasks,
                timeout=self._config.permission_limit,
                return_when=asyncio.FIRST_COMPLETED,
            )
            # An answer at the time of an end counts for nothing.
            for end, how in ends.items():
                if end.done():
                    return self._withdraw(question_id, how)
            decision = answer.result() if answer.done() else {}
            return decision or self._withdraw(question_id, "returned")
        except asyncio.CancelledError:
            self._withdraw(question_id, "ended")
            raise
        finally:
            self._returns.discard(returned)
            answer.cancel()
            for end in ends:
                end.cancel()

    def _withdraw(self, question_id: str, how: End) -> Facts:
        logger.info("withdrawn: %s", how)
        self._emacs.report("withdrawn", question_id, Symbol(how))
        return {}

    async def _answer(self, facts: Facts, question: Question, text: str) -> Facts:
        """Return the decision in what Emacs answers about ``text``, else {}.

        A yes counts only if ``question`` may be allowed.
        """
        try:
            decision = decision_in(await self._emacs.may_run(facts, text), text)
        except EmacsError:
            return {}
        return {} if decision == ALLOW and not question.may_be_allowed else decision

    async def _exited(self, cli: Watched) -> None:
        while not cli.has_exited():  # noqa: ASYNC110 - a process has no event
            await asyncio.sleep(self._config.process_check)

    async def _silent(self, limit: float) -> None:
        """Return when Emacs has given no sign of life for ``limit`` seconds."""
        interval = self._config.ping_interval
        wait = limit
        while True:
            try:
                await asyncio.wait_for(self._emacs.ping(), wait)
            except (EmacsError, asyncio.TimeoutError):
                return
            await asyncio.sleep(interval)
            wait = max(limit - interval, 0)


def decision_in(answer: object, text: str) -> Facts:
    """Return the decision about ``text`` in the ``answer`` of Emacs, or {}.

    A decision is ``{"behavior": "allow"}``, or ``{"behavior": "deny"}`` with a
    ``message``, the reason.
    The answer has the digest of the text that Emacs has displayed.  An answer of
    another form, or about another text, is no decision.
    """
    digest = hashlib.sha256(text.encode()).hexdigest()
    shown = [Symbol(":input"), digest]
    if answer == [Symbol(":behavior"), "allow", *shown]:
        return dict(ALLOW)
    if not isinstance(answer, list):
        return {}
    *others, reason = answer or [None]
    is_deny = others == [Symbol(":behavior"), "deny", *shown, Symbol(":message")]
    if is_deny and type(reason) is str and reason:
        return {"behavior": "deny", "message": reason}
    return {}
