"""How decisions came out in the programs that are kept of a function."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from .cache import Entry, entries, is_made_of, key_of
from .programs import decision_at


def known_decisions(f: Any) -> dict[str, set[str]]:
    """The outcomes that some program has a way for, by the name of the decision (see `decision_at`)."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    key = key_of(f)
    for made_of, entry in list(entries.items()):
        if is_made_of(made_of, key):
            for name, outcome in [*by_path(entry), *by_regions(entry)]:
                found[name].add(outcome)
    return dict(found)


def by_path(entry: Entry) -> Iterator[tuple[str, str]]:
    """Those of programs that stand for one path, and those within their loops."""
    for program in entry.programs:
        for guard in program.guards.values():
            if guard.check == "decision":
                yield guard.name, guard.held
        yield from program.in_loops


def by_regions(entry: Entry) -> Iterator[tuple[str, str]]:
    """Those of programs that have all ways."""
    for kinds, known in [*entry.folding.known.items()]:
        if entry.folding.programs.get(kinds) is not None:
            for site, outcome in known.folded.decisions():
                yield decision_at(site), repr(outcome)
