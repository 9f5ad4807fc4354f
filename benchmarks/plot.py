"""The ratios to the hand-written gradients, one line a program, on a logarithmic scale."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from .contenders import CACHED, FIRST, TRACED
from .report import Row

# Colours of Okabe and Ito, and a shape of its own for each: it reads without colours as well.
LOOKS = {
    CACHED: ("#D55E00", "D", "Wengert, cached"),
    TRACED: ("#E69F00", "o", "Wengert, traced each time"),
    FIRST: ("#F0C987", "<", "Wengert, first call"),
    "autograd": ("#0072B2", "s", "autograd"),
    "tangent": ("#009E73", "^", "tangent"),
    "jax": ("#999999", "P", "JAX"),
    "jax.jit": ("#000000", "X", "JAX, jit"),
    "torch": ("#CC79A7", "v", "PyTorch"),
}


def draw(rows: list[Row], contenders: list[str], caption: str, path: Path) -> None:
    figure, axes = plt.subplots(figsize=(11, 1.6 + 0.36 * len(rows)), layout="constrained")
    heights, names = [], []
    height, family = 0.0, None
    for row in rows:
        if row.family != family:
            height += 0.8 if family else 0.0
            axes.text(
                1.005,
                height,
                row.family,
                transform=axes.get_yaxis_transform(),
                weight="bold",
                va="center",
            )
            family = row.family
        found = [r for name in contenders if (r := row.ratio(name)) is not None]
        axes.plot([min(1.0, *found), max(found)], [height, height], color="#e4e4e4", zorder=1)
        heights.append(height)
        names.append(row.name)
        height += 1
    axes.axvline(1, color="black", linewidth=1, zorder=1)
    for name in reversed(contenders):
        colour, marker, label = LOOKS[name]
        points = [(row.ratio(name), h) for row, h in zip(rows, heights) if name in row.seconds]
        if points:
            ours = name == CACHED
            axes.scatter(
                *zip(*points),
                s=70 if ours else 42,
                color=colour,
                marker=marker,
                label=label,
                edgecolor="white",
                linewidth=0.6,
                zorder=4 if ours else 3,
            )
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:,g}")
    axes.set_yticks(heights, names)
    axes.set_ylim(height - 0.3, -0.7)
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.grid(axis="x", color="#f0f0f0", zorder=0)
    axes.set_xlabel(
        f"time as a multiple of the gradient written by hand (1 = as fast)\n{caption}", fontsize=9
    )
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(
        handles[::-1],
        labels[::-1],
        loc="outside upper center",
        ncols=len(labels),
        frameon=False,
        fontsize=9,
    )
    figure.savefig(path, dpi=130)
    plt.close(figure)
