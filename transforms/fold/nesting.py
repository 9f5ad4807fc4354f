"""Expressions inside one another: what is computed for one statement only stands in that statement.

CPython then keeps the value on its stack, and writes the result of an operation into the object of an operand that
nobody else holds. Order and operations stay what they were, so values do to the bit.
"""

from __future__ import annotations

import re
from collections import Counter

from ..silence import QUIET

WORD = re.compile(r"[A-Za-z_]\w*")
MADE = re.compile(r"([a-z]\w*) = ([^=\[\]{}'\"#]+)")
ALONE = re.compile(r"[\w.]+")
CALL = re.compile(r"[\w\])]\(| if | else |,")
USES = re.compile(r"([\w, ]+ = |[\w.]+\.append\(|return |if )[^'\"]*")
BORDER = f"{QUIET} = True"  # behind which NumPy does not warn
NEAR = 6  # statements between an expression and its user
DEEP = 8  # parentheses in an expression that is put into another one


def nested(lines: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """The lines of a function, each with its depth, with the arithmetic that is used once written where it is used."""
    uses = Counter(WORD.findall("\n".join([text for _, text in lines])))
    found: list[tuple[int, str]] = []
    known: list[tuple[str, str] | None] = []  # of these: the name and the text of what may be moved
    begin = 0  # where the statements begin that run one after another
    for depth, line in lines:
        if found and (found[-1][0] != depth or found[-1][1] == BORDER):
            begin = len(found)
        for i in range(len(found) - 1, max(len(found) - 1 - NEAR, begin - 1), -1):
            made = known[i]
            if made is None or made[0] not in line:
                continue
            at = place(made[0], line)
            if at < 0 or not movable(made[1], found[i + 1 :]) or not USES.fullmatch(line):
                continue
            line = put(made[1], line[:at], line[at + len(made[0]) :])
            del found[i], known[i]
        found.append((depth, line))
        match = MADE.fullmatch(line) if uses[line.partition(" = ")[0]] == 2 else None
        known.append((match[1], match[2]) if match else None)
    return found


def place(name: str, line: str) -> int:
    """Where a variable is read in a line; -1 if it is not."""
    start = line.find(" = ") + 1
    while (at := line.find(name, start)) >= 0:
        start = at + len(name)
        before, after = line[at - 1 : at], line[start : start + 1]
        if not (before.isalnum() or after.isalnum() or before in (".", "_") or after == "_"):
            return at
    return -1


def movable(text: str, over: list[tuple[int, str]]) -> bool:
    """Whether an expression is arithmetic, of variables that the lines in between leave alone."""
    if CALL.search(text) or text.count("(") > DEEP:
        return False
    parts = [line.replace(" += ", " = ").partition(" = ") for _, line in over]
    stored = [left for left, equal, _ in parts if equal]
    return not stored or {*WORD.findall(text)}.isdisjoint(WORD.findall(" ".join(stored)))


def put(text: str, before: str, after: str) -> str:
    """The line with an expression in the place of a variable."""
    alone = ALONE.fullmatch(text) or (not after and before.endswith(" = "))
    return f"{before}{text}{after}" if alone else f"{before}({text}){after}"
