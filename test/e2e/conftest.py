# SPDX-License-Identifier: GPL-3.0-or-later
"""A world per test, which is reported when the test fails."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from itertools import groupby

import pytest
from harness.scratch import Scratch
from harness.tools import Tools
from harness.world import World


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--shard", help="N/M: run the Nth of M parts, whole files")


# Last, so that it sees what is left to run.
@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    if shard := config.getoption("shard"):
        number, count = map(int, shard.split("/"))
        items[:] = shards(items, count)[number - 1]
    items.sort(key=world_name)


def world_name(item: pytest.Item) -> str:
    """Return the name of the world that a test shares with others."""
    marker = item.get_closest_marker("shared")
    return str(*marker.args) if marker and is_shared(item) else ""


def is_shared(item: pytest.Item) -> bool:
    """Return whether a test has the world of those before it."""
    has = item.get_closest_marker
    return bool(has("shared") and not has("fresh"))


def cost(items: list[pytest.Item]) -> int:
    """Return about how long tests take: programs that start cost most."""
    return sum(1 if is_shared(item) else 4 for item in items)


def shards(items: list[pytest.Item], count: int) -> list[list[pytest.Item]]:
    """Return ``items`` in ``count`` lists of about the same cost, files as wholes."""
    files = [list(group) for _, group in groupby(items, lambda item: item.path)]
    found: list[list[pytest.Item]] = [[] for _ in range(count)]
    for group in sorted(files, key=cost, reverse=True):
        min(found, key=cost).extend(group)
    return found


@pytest.fixture(scope="session")
def tools() -> Tools:
    return Tools.find()


class Shared:
    """The world that tests marked as shared use in turn."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._name = ""
        self._world: World | None = None

    def world(self, name: str) -> World:
        """Return the world called ``name``; end the one of another name."""
        if name != self._name:
            self.close()
        self._name = name
        self._world = self._world or World(self._tools)
        return self._world

    def close(self) -> None:
        """End the world, if any."""
        world, self._world = self._world, None
        if world:
            world.close()


@pytest.fixture(scope="session")
def shared(tools: Tools) -> Iterator[Shared]:
    shared = Shared(tools)
    yield shared
    shared.close()


FAILED = pytest.StashKey[bool]()


@pytest.fixture
def world(
    request: pytest.FixtureRequest, tools: Tools, shared: Shared
) -> Iterator[World]:
    if not is_shared(request.node):
        world = World(tools)
        yield world
        world.close()
        return
    world = shared.world(world_name(request.node))
    yield world
    if request.node.stash.get(FAILED, True):
        shared.close()
        return
    try:
        world.reset()
    except AssertionError as problem:
        report = world.report()
        shared.close()
        raise AssertionError(f"{problem}\n{report}") from problem


@pytest.fixture
def scratch(world: World) -> Scratch:
    return world.scratch


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.when == "call":
        item.stash[FAILED] = report.failed
    world = getattr(item, "funcargs", {}).get("world")
    if report.when == "call" and report.failed and world:
        report.sections.append(("the world", world.report()))
    return report
