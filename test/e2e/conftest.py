# SPDX-License-Identifier: GPL-3.0-or-later
"""A world per test, which is shown when the test fails."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from itertools import groupby

import pytest
from harness.scratch import Scratch
from harness.tools import Tools
from harness.world import World


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--shard", help="N/M: run the Nth of M parts, whole files")


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    if shard := config.getoption("shard"):
        number, count = map(int, shard.split("/"))
        items[:] = shards(items, count)[number - 1]


def shards(items: list[pytest.Item], count: int) -> list[list[pytest.Item]]:
    """Return ITEMS in COUNT lists of about the same length, files as wholes."""
    files = [list(group) for _, group in groupby(items, lambda item: item.path)]
    found: list[list[pytest.Item]] = [[] for _ in range(count)]
    for group in sorted(files, key=len, reverse=True):
        min(found, key=len).extend(group)
    return found


@pytest.fixture(scope="session")
def tools() -> Tools:
    return Tools.find()


@pytest.fixture
def world(tools: Tools) -> Iterator[World]:
    world = World(tools)
    yield world
    world.close()


@pytest.fixture
def scratch(world: World) -> Scratch:
    return world.scratch


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    world = getattr(item, "funcargs", {}).get("world")
    if report.when == "call" and report.failed and world:
        report.sections.append(("the world", world.report()))
    return report
