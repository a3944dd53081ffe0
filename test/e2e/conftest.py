# SPDX-License-Identifier: GPL-3.0-or-later
"""A world per test, which is reported when the test fails."""

from __future__ import annotations

from collections.abc import Generator, Iterator

import pytest
from harness.tools import Tools
from harness.world import World


# Before that of xdist, which reads the groups.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if is_shared(item):
            # One process runs those with the same world.
            item.add_marker(pytest.mark.xdist_group(world_name(item) or item.path.stem))
    items.sort(key=place)


def place(item: pytest.Item) -> tuple[bool, ...]:
    """Return the sort key of a test: long tests, then those that share a world."""
    is_long = item.get_closest_marker("long") is not None
    return not is_long, not is_shared(item), not world_name(item)


def world_name(item: pytest.Item) -> str:
    """Return the name of the world that a test shares with others."""
    marker = item.get_closest_marker("shared")
    return str(*marker.args) if marker and is_shared(item) else ""


def is_shared(item: pytest.Item) -> bool:
    """Return whether a test has the world of those before it."""
    has = item.get_closest_marker
    return bool(has("shared") and not has("fresh"))


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
