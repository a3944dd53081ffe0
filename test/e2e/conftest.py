# SPDX-License-Identifier: GPL-3.0-or-later
"""A world per test, which is shown when the test fails."""

from __future__ import annotations

from collections.abc import Generator, Iterator

import pytest
from harness.scratch import Scratch
from harness.tools import Tools
from harness.world import World


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
