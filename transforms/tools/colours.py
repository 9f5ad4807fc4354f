"""Coloured listings of a tape: HTML for notebooks, and for terminals by way of ``rich``."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Any

from ...tracer.tape import Op, Tape
from .listing import rows

FORWARD, REVERSE = "#1f5fa8", "#b03a2e"  # the two colours, of pictures as well
DIM = "#888888"
LONGEST = 500  # lines of a listing that a notebook shows by itself
PIECES = re.compile(
    r"(?P<dim> +:: .*| +# .*)|(?P<variable>%\d+|(?<![\w.])[^\W\d][\w.]*(?= =))|(?P<call>[\w.]+(?=\())"
)


def is_reverse(tape: Tape, op: Op) -> bool:
    """Whether an op belongs to the reverse sweep."""
    return tape.forward is not None and op not in tape.forward and op.kind != "input"


def lines_of(tape: Tape) -> Iterator[tuple[str, str]]:
    """The lines of a tape as it is printed, each with its colour."""
    for text, op in rows(tape, **tape.options):
        yield text, "" if op is None else REVERSE if is_reverse(tape, op) else FORWARD


def pieces(line: str) -> Iterator[tuple[str, str]]:
    """The pieces of a line, and what each is: ``dim``, ``variable``, ``call`` or nothing of these."""
    end = 0
    for found in PIECES.finditer(line):
        yield line[end : found.start()], ""
        yield found.group(), str(found.lastgroup)
        end = found.end()
    yield line[end:], ""


def html_of(tape: Tape) -> str:
    """The tape as coloured HTML, on its own; of a long one the first lines."""
    lines = []
    listed = list(lines_of(tape))
    if len(listed) > LONGEST:
        rest = f"  … {len(listed) - LONGEST} more lines, which print() shows"
        listed[LONGEST - 1 : -1] = [(rest, "")]
    for line, colour in listed:
        styles = {
            "dim": f"color:{DIM}",
            "variable": f"color:{colour}" if colour else "",
            "call": f"color:{colour};font-weight:bold" if colour else "",
        }
        text = ""
        for piece, kind in pieces(line):
            shown = html.escape(piece)
            style = styles.get(kind)
            text += f'<span style="{style}">{shown}</span>' if style else shown
        lines.append(text)
    return '<pre style="line-height:1.3">' + "\n".join(lines) + "</pre>"


def text_of(tape: Tape) -> Any:
    """The tape as a ``rich.text.Text``, which ``rich.print(tape)`` shows."""
    from rich.text import Text

    text = Text()
    for number, (line, colour) in enumerate(lines_of(tape)):
        text.append("\n" if number else "")
        styles = {"dim": DIM, "variable": colour, "call": f"bold {colour}".strip()}
        for piece, kind in pieces(line):
            text.append(piece, styles.get(kind) or None)
    return text


def shown(tape: Tape, terminal: bool) -> str:
    """The tape as a terminal shows it: in colours where ``rich`` is installed, else as plain text."""
    if not terminal:
        return str(tape)
    try:
        from rich.console import Console
    except ModuleNotFoundError:
        return str(tape)
    console = Console(force_terminal=True, soft_wrap=True)
    with console.capture() as captured:
        console.print(text_of(tape), end="")
    return captured.get()
