"""Expressions inside one another: what is computed for one statement only stands in that statement.

CPython then keeps the value on its stack, and writes the result of an operation into the object of an operand that
nobody else holds. Order and operations stay what they were, so values do to the bit.
"""

from __future__ import annotations

import re
from collections import Counter

from ..silence import QUIET

WORD = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
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
    known: list[re.Match[str] | None] = []  # of these: what may be moved
    begin = 0  # where the statements begin that run one after another
    for depth, line in lines:
        if found and (found[-1][0] != depth or found[-1][1] == BORDER):
            begin = len(found)
        for i in range(len(found) - 1, max(len(found) - 1 - NEAR, begin - 1), -1):
            made = known[i]
            if not made or made[1] not in line or not USES.fullmatch(line):
                continue
            name, text = made.groups()
            if name in WORD.findall(line.partition(" = ")[2] or line):
                if movable(text, found[i + 1 :]):
                    line = put(text, name, line)
                    del found[i], known[i]
        found.append((depth, line))
        known.append(MADE.fullmatch(line) if uses[line.partition(" = ")[0]] == 2 else None)
    return found


def movable(text: str, over: list[tuple[int, str]]) -> bool:
    """Whether an expression is arithmetic, of variables that the lines in between leave alone."""
    if CALL.search(text) or text.count("(") > DEEP:
        return False
    read = {*WORD.findall(text)}
    return not any(
        read & {*WORD.findall(line.partition(" = ")[0])} and " = " in line for _, line in over
    )


def put(text: str, name: str, line: str) -> str:
    """The line with an expression in the place of a variable."""
    alone = line.endswith(f" = {name}") or ALONE.fullmatch(text)
    inner = text if alone else f"({text})"
    return WORD.sub(lambda found: inner if found[0] == name else found[0], line)
