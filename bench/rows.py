# SPDX-License-Identifier: GPL-3.0-or-later
"""One line of the table: what was measured, and whether its goal is met."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import TypeVar

from client import Broken

Samples = dict[str, list[float]]
Figure = TypeVar("Figure")
TIMES = (" ms", " µs")
COLUMNS = ("what", "ours", "comparator", "limit", "ratio", "spread", "goal", "met")


@dataclass(frozen=True)
class Row:
    """A row as it is printed and written; the unit is the last word of `what`."""

    what: str
    ours: float
    comparator: float | None
    limit: float | None
    ratio: float | None
    spread: float
    goal: str
    met: bool


def alternate(rounds: int, **sides: Callable[[], Figure]) -> dict[str, list[Figure]]:
    """Measure ``sides`` in turn, ``rounds`` times; the order turns around each time."""
    samples: dict[str, list[Figure]] = {name: [] for name in sides}
    names = list(sides)
    for number in range(rounds):
        for name in names if number % 2 == 0 else reversed(names):
            samples[name].append(sides[name]())
    return samples


@dataclass(frozen=True)
class Goal:
    """Limit of ours: ``times`` another side, or ``more`` above it."""

    times: float | None = None
    more: float = 0
    side: str = "comparator"

    def __str__(self) -> str:
        if self.times is not None:
            return f"≤ {self.times:g} × {self.side}"  # noqa: RUF001  # the sign is meant
        return f"≤ {self.side} + {self.more:g}"

    def is_met(self, figures: dict[str, float]) -> bool:
        """Return whether ``figures``, by side, reach it."""
        if self.times is not None:
            return figures["ours"] <= self.times * figures[self.side]
        return figures["ours"] <= figures[self.side] + self.more


def row(what: str, samples: Samples, *goals: Goal, part: float = 0.5) -> Row:
    """Return the row of ``samples``; ``part`` of them are at most the figures.

    Other programs delay most samples of about 1 ms on a busy machine, but not the
    fastest tenth, and a regression delays that, too.
    """
    if what.endswith(TIMES) and min(map(min, samples.values())) <= 0:
        raise Broken(f"{what}: something took no time")
    figures = {name: quantile(values, part) for name, values in samples.items()}
    side = next((goal.side for goal in goals if goal.times is not None), "comparator")
    other = figures.get(side)
    return Row(
        what,
        _short(figures["ours"]),
        _maybe(figures.get("comparator")),
        _maybe(figures.get("limit")),
        _short(figures["ours"] / other) if other else None,
        _short(spread(samples, side)),
        ", ".join(map(str, goals)),
        all(goal.is_met(figures) for goal in goals),
    )


def quantile(values: Sequence[float], at: float) -> float:
    """Return the value below which the part ``at`` of ``values`` lies."""
    if len(values) == 1:
        return values[0]
    return quantiles(values, n=100, method="inclusive")[round(at * 100) - 1]


def spread(samples: Samples, side: str) -> float:
    """Return the spread of the middle half of the ratios of the rounds."""
    ours, other = samples["ours"], samples.get(side)
    if other and len(other) == len(ours) and all(other):
        ours = [
            our_time / other_time
            for our_time, other_time in zip(ours, other, strict=True)
        ]
    if len(ours) < 4:
        middle = median(ours)
        return (max(ours) - min(ours)) / middle if middle else 0.0
    low, middle, high = quantiles(ours, n=4, method="inclusive")
    return (high - low) / middle if middle else 0.0


def _short(value: float) -> float:
    return float(f"{value:.3g}")


def _maybe(value: float | None) -> float | None:
    return None if value is None else _short(value)


def table(rows: Sequence[Row]) -> str:
    """Return ``rows`` as a table that Org reads."""
    lines = [[_cell(getattr(row, name)) for name in COLUMNS] for row in rows]
    widths = [max(map(len, cells)) for cells in zip(COLUMNS, *lines, strict=True)]
    rule = "|-" + "-+-".join("-" * width for width in widths) + "-|"
    head = _line(COLUMNS, widths)
    return "\n".join([head, rule, *(_line(line, widths) for line in lines)])


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [cell.ljust(width) for cell, width in zip(cells, widths, strict=True)]
    return "| " + " | ".join(padded) + " |"


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "NO"
    if isinstance(value, float):
        return f"{value:.0f}" if value >= 100 else f"{value:g}"
    return str(value)


def write(rows: Sequence[Row], path: Path) -> None:
    """Write ``rows`` as JSON."""
    objects = [asdict(row) for row in rows]
    text = json.dumps(objects, indent=2, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")


def publish(rows: Sequence[Row], path: Path) -> None:
    """Replace the table at the end of ``path``, an Org file, by that of ``rows``."""
    text = path.read_text(encoding="utf-8")
    head, mark, _ = text.partition("#+name: figures\n")
    path.write_text(head + mark + table(rows) + "\n", encoding="utf-8")
