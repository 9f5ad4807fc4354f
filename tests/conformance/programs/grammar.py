"""The grammar: templates by kind, read from `grammar.txt`, and pieces of the world, read from the folder `pieces`.

What stands in `arguments.txt` are the forms that the arguments of `f` have.

In these files `== name` begins a piece, with the source text that makes it; `-- kind` begins the templates of a kind.

Words
-----
piece     something that stands outside of the functions of a program: source text that makes it, and templates of what
          can be done with it. Two of its kinds stand for no part of a function: `change`, what may happen to it between
          two calls, and `argument`, expressions for a parameter of `f` of a kind of its own.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

Sections = dict[str, list[str]]

HERE = Path(__file__).parent
LONG = {
    "compound",
    "loops",
    "escape",
    "inner",
}  # templates of several lines, set apart by empty ones
MODULES = """\
import bisect, collections, contextlib, copy, dataclasses, functools, heapq, itertools, math, operator, random
import statistics
import numpy as np
"""


class Piece:
    """Something that stands outside of the functions."""

    def __init__(self, name: str, source: str, sections: Sections) -> None:
        self.name = name
        self.source = source
        self.sections = sections
        self.globals = list(defined(source))


def sections(text: str) -> Sections:
    """The templates of a text by kind."""
    found: Sections = {}
    for kind, body in headed("--", text):
        parts = body.split("\n\n") if kind in LONG else body.split("\n")
        found.setdefault(kind, []).extend(part.strip("\n") for part in parts if part.strip())
    return found


def headed(mark: str, text: str) -> Iterator[tuple[str, str]]:
    """What stands under each headline of a text."""
    _, *parts = re.split(rf"(?m)^{mark} ", text)
    for part in parts:
        head, _, body = part.partition("\n")
        yield head.strip(), body


def defined(source: str) -> Iterator[str]:
    """The global variables that a source makes."""
    for statement in ast.parse(source).body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            yield statement.name
        elif isinstance(statement, ast.Assign):
            for node in ast.walk(statement):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    yield node.id


def pieces() -> Iterator[Piece]:
    for path in sorted((HERE / "pieces").glob("*.txt")):
        for name, body in headed("==", path.read_text(encoding="utf-8")):
            source, mark, rest = body.partition("\n-- ")
            yield Piece(name, source.strip("\n"), sections(mark + rest))


COMMON = sections((HERE / "grammar.txt").read_text(encoding="utf-8"))
ARGUMENTS = sections((HERE / "arguments.txt").read_text(encoding="utf-8"))
PIECES = {piece.name: piece for piece in pieces()}
