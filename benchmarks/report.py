"""The table in Markdown, the plot, and the raw figures."""

from __future__ import annotations

import json
import platform
import statistics
from dataclasses import dataclass, field
from pathlib import Path

import wengert

from .contenders import CACHED, FIRST, HAND, PEERS, TRACED, installed
from .extras import Figure
from .timing import ratio

OURS = (CACHED, TRACED, FIRST)
PACKAGES = ("numpy", *dict.fromkeys(package for package, _ in PEERS.values()))


@dataclass
class Row:
    """What was measured of one program; `skipped` says by contender why there is nothing."""

    name: str
    family: str
    bound: float
    seconds: dict[str, dict[int, float]] = field(default_factory=dict)
    extra: dict[str, dict[str, float]] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    wrong: str | None = None

    def ratio(self, name: str) -> float | None:
        return ratio(self.seconds[name], self.seconds[HAND]) if name in self.seconds else None

    def median(self, name: str) -> float:
        return statistics.median(self.seconds[name].values())

    def line(self) -> str:
        """The row on a terminal, as soon as it is known."""
        ratios = [f"{name} {short(self.ratio(name))}" for name in self.seconds if name != HAND]
        wrong = f"  WRONG: {self.wrong}" if self.wrong else ""
        return f"{self.name}: H {duration(self.median(HAND))}; {'; '.join(ratios)}{wrong}"


@dataclass
class Report:
    folder: Path
    peers: list[str]
    clock: str
    rows: list[Row] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)

    def write(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        text = self.markdown()
        (self.folder / "table.md").write_text(text, encoding="utf-8")
        (self.folder / "raw.json").write_text(json.dumps(self.raw(), indent=1), encoding="utf-8")
        print("\n" + text)
        self.plot()
        print(f"table, raw figures and plot: {self.folder}")

    # ------------------------------------------------------------------------------------- Markdown

    def markdown(self) -> str:
        contenders = [
            name for name in (*OURS, *self.peers) if any(name in row.seconds for row in self.rows)
        ]
        parts = [self.versions()]
        if self.rows:
            parts.append(
                "Medians of the ratios to H, the gradient written by hand: 1.0 is as fast, 2.0 takes twice as long.\n\n"
                + table(
                    ["program", "H", "bound", *contenders],
                    [
                        [
                            row.name,
                            duration(row.median(HAND)),
                            f"{row.bound:g}",
                            *(self.cell(row, name) for name in contenders),
                        ]
                        for row in self.rows
                    ],
                )
            )
        counted = [
            (name, kind)
            for name in self.peers
            for kind in ("converting", "compiling")
            if any(kind in row.extra.get(name, {}) for row in self.rows)
        ]
        if counted:
            parts.append(
                "Counted apart: converting the arguments, and compiling (for JAX with the first call).\n\n"
                + table(
                    ["program", *(f"{name}, {kind}" for name, kind in counted)],
                    [
                        [row.name]
                        + [
                            duration(row.extra[name][kind])
                            if kind in row.extra.get(name, {})
                            else "–"
                            for name, kind in counted
                        ]
                        for row in self.rows
                    ],
                )
            )
        if self.figures:
            parts.append(
                table(
                    ["figure", "measured", "bound"],
                    [
                        [
                            f.what,
                            mark(f"{f.value:.3g} {f.unit}", f.value <= f.bound),
                            f"{f.bound:g} {f.unit}",
                        ]
                        for f in self.figures
                    ],
                )
            )
        skipped = [
            f"- {row.name}, {name}: {reason}"
            for row in self.rows
            for name, reason in row.skipped.items()
        ]
        if skipped:
            parts.append("Not measured:\n\n" + "\n".join(skipped))
        return "\n\n".join(parts) + "\n"

    def cell(self, row: Row, name: str) -> str:
        found = row.ratio(name)
        if found is None:
            return "wrong" if row.skipped.get(name, "").startswith("WRONG") else "–"
        return mark(short(found), found <= row.bound) if name == CACHED else short(found)

    def versions(self) -> str:
        found = [f"Wengert {wengert.__version__}", f"CPython {platform.python_version()}"]
        found += [f"{package} {installed(package)}" for package in PACKAGES if installed(package)]
        return f"{', '.join(found)}; one thread, {self.clock} clock, {platform.machine()}, {platform.system()}."

    # -------------------------------------------------------------------------------- figures, plot

    def raw(self) -> dict[str, object]:
        return {
            "versions": self.versions(),
            "rows": [
                {
                    "name": row.name,
                    "family": row.family,
                    "bound": row.bound,
                    "seconds": {name: row.median(name) for name in row.seconds},
                    "rounds": {name: len(row.seconds[name]) for name in row.seconds},
                    "ratios": {name: row.ratio(name) for name in row.seconds},
                    "apart": row.extra,
                    "skipped": row.skipped,
                }
                for row in self.rows
            ],
            "figures": [vars(figure) for figure in self.figures],
        }

    def plot(self) -> None:
        try:
            from .plot import draw
        except ImportError:
            print("no plot: matplotlib is not installed")
        else:
            draw(self.rows, [*OURS, *self.peers], self.versions(), self.folder / "ratios.png")


def table(heads: list[str], rows: list[list[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(heads, *rows)]
    lines = [heads, ["-" * width for width in widths], *rows]
    return "\n".join(
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths)) + " |"
        for line in lines
    )


def mark(text: str, reached: bool) -> str:
    return text.strip() if reached else f"**{text.strip()}**"


def short(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.1f}"


def duration(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.0f} ns"
