# SPDX-License-Identifier: GPL-3.0-or-later
"""A world per test, which is reported when the test fails."""

from collections import Counter
from collections.abc import Generator, Iterator, Mapping

import pytest
from harness.tools import Tools
from harness.world import World


# Before that of xdist, which reads the groups.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if name := group(item):
            # One process runs those with the same world.
            item.add_marker(pytest.mark.xdist_group(name))
    sizes = Counter(map(group, items))
    items.sort(key=lambda item: place(item, sizes))


def group(item: pytest.Item) -> str:
    """Return the name of the group of a test, or "" if its world is its own."""
    name = world_name(item)
    return "" if name is None else name or item.path.stem


def place(item: pytest.Item, sizes: Mapping[str, int]) -> tuple[bool, bool, int, str]:
    """Return the sort key of a test: long tests, then those that share a world.

    Those that share one follow one another in a single process, too; the most begin.
    """
    name = group(item)
    is_long = item.get_closest_marker("long") is not None
    return not is_long, not name, -sizes[name], name


def world_name(item: pytest.Item) -> str | None:
    """Return the name of the world that a test shares with others, or None."""
    marker = item.get_closest_marker("shared")
    is_shared = marker and not item.get_closest_marker("fresh")
    return str(*marker.args) if marker and is_shared else None


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
        world, self._world = self._world, None
        if world:
            world.close()


@pytest.fixture(scope="session")
def shared(tools: Tools) -> Iterator[Shared]:
    shared = Shared(tools)
    yield shared
    shared.close()


def contract_row(item: pytest.Item) -> str:
    """Return the row of the contract that a test begins with, or an empty text."""
    marker = item.get_closest_marker("contract")
    return str(*marker.args) if marker else ""


PASSED = pytest.StashKey[bool]()


@pytest.fixture
def world(
    request: pytest.FixtureRequest, tools: Tools, shared: Shared
) -> Iterator[World]:
    name = world_name(request.node)
    world = World(tools) if name is None else shared.world(name)
    world.row = contract_row(request.node)
    yield world
    if name is None:
        world.close()
    elif not request.node.stash.get(PASSED, False):
        shared.close()
    else:
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
        # One that is skipped half way leaves a CLI that may have no connection.
        item.stash[PASSED] = report.passed
    world = getattr(item, "funcargs", {}).get("world")
    if report.when == "call" and report.failed and world:
        report.sections.append(("the world", world.report()))
    row = world.row if world else contract_row(item)
    if report.failed and row:
        report.user_properties.append(("row", row))
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for kind in ("failed", "error"):
        for report in terminalreporter.getreports(kind):
            # That of a file that is not collected has none.
            for name, row in getattr(report, "user_properties", ()):
                if name == "row":
                    terminalreporter.write_line(f"CONTRACT failed: {row}")
