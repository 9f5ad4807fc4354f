"""How decisions came out in the programs that are kept of a function."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from ..tracer.kinds import isinstance
from ..tracer.tape import Op
from .branches import FROM_HERE
from .cache import Entry, entries, is_made_of, key_of
from .loops import LoopFunction
from .programs import Program, decision_at


def known_decisions(f: Any) -> dict[str, set[str]]:
    """The outcomes that some program has a way for, by the name of the decision (see `decision_at`)."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    key = key_of(f)
    for made_of, entry in list(entries.items()):
        if is_made_of(made_of, key):
            for name, outcome in [*by_paths(entry), *by_regions(entry)]:
                found[name].add(outcome)
    return dict(found)


def by_paths(entry: Entry) -> Iterator[tuple[str, str]]:
    """Those of programs that stand for paths: where they part, and in their loops."""
    for program in entry.programs:
        for guard in program.guards.values():
            if guard.check == "decision":
                for outcome in guard.held.removesuffix(FROM_HERE).split(", "):
                    yield guard.name, outcome
        yield from in_loops(program)


def in_loops(program: Program) -> Iterator[tuple[str, str]]:
    """Those within rolled loops."""
    for op in (op for path in program.paths for op in path.forward):
        loop = getattr(op.fn, "__self__", op.fn)  # or what it comes to where it is careful
        for choice in loop.family.choices() if isinstance(loop, LoopFunction) else ():
            if isinstance(choice.subject, Op):
                for outcome, _ in choice.branches:
                    yield decision_at(choice.subject.site), repr(outcome)


def by_regions(entry: Entry) -> Iterator[tuple[str, str]]:
    """Those of programs that have all ways."""
    for kinds, known in [*entry.folding.known.items()]:
        if entry.folding.programs.get(kinds) is not None:
            for site, outcome in known.folded.decisions():
                yield decision_at(site), repr(outcome)
