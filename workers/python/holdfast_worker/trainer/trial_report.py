"""What came of an algorithm that was tried on a recorded batch, and how a person reads it."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

ROWS_MAX = 32
RowColumn = Literal["sequence", "draw", "reward", "advantage", "tokens", "stop", "loss", "gradient"]
COLUMNS: tuple[RowColumn, ...] = (
    "sequence",
    "draw",
    "reward",
    "advantage",
    "tokens",
    "stop",
    "loss",
    "gradient",
)


class ReportRow(TypedDict):
    sequence: int
    draw: int
    reward: float
    advantage: float
    tokens: int
    stop: str
    loss: float | None
    gradient: float


class ReportLoss(TypedDict):
    part: str
    update: int
    loss: float | None
    not_finite: str | None
    gradient: float
    metrics: dict[str, float]
    rows: list[ReportRow]


class Report(TypedDict):
    """All numbers, as `--json` prints them."""

    sequences: int
    advantage: ReportAdvantage
    credit: dict[str, dict[str, float]]
    notes: list[str]
    losses: list[ReportLoss]


class ReportAdvantage(TypedDict):
    mean: float
    not_0: int


def show(report: Report, title: str) -> None:
    """The report as text."""
    print(f"{title}: {report['sequences']} sequences")
    for note in report["notes"]:
        print(f"note       {note}")
    print(
        f"advantage  mean {report['advantage']['mean']:.4g}, {report['advantage']['not_0']} not 0"
    )
    for name, values in report["credit"].items():
        print(f"{name:<9}  {', '.join(f'{key} {value:.6g}' for key, value in values.items())}")
    for one in report["losses"]:
        update = (
            f" of step {one['update']}"
            if any(other["update"] > 1 for other in report["losses"])
            else ""
        )
        value = (
            f"not finite: first at {one['not_finite']}"
            if one["loss"] is None
            else f"{one['loss']:.6g}"
        )
        print(f"\n{one['part']}{update}  {value}")
        print(f"gradient   {one['gradient']:.6g}")
        for name, metric in one["metrics"].items():
            print(f"metric     {name} {metric:.6g}")
        rows = [[_cell(row[name]) for name in COLUMNS] for row in one["rows"][:ROWS_MAX]]
        widths = [max(map(len, column)) for column in zip(COLUMNS, *rows)]
        for row in [list(COLUMNS), *rows]:
            print("  ".join(cell.rjust(width) for cell, width in zip(row, widths)))
        if len(one["rows"]) > ROWS_MAX:
            print(f"and {len(one['rows']) - ROWS_MAX} more: --json has all")


def _cell(value: Any) -> str:
    return "-" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
