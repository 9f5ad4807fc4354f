"""Callers: the lines of the user's that led to the libraries in which operations lie."""

from __future__ import annotations

from ...tracer.active import active
from ...tracer.places import called_from, is_others
from ...tracer.tape import Op, Site, Tape


class Callers:
    """By op of a run, the line of the user's; noted while the run goes on."""

    def __init__(self) -> None:
        self.known: dict[int, Site] = {}  # by the number of the op that comes next

    def note(self, site: Site) -> Site:
        """The line of the user's that an operation at a place is about to be done for."""
        caller = called_from(site)
        if caller is None:
            return site
        self.known[len(active.tracer.tape.ops)] = caller
        return caller

    def close(self, tape: Tape) -> None:
        """The run has ended. What is no call, a decision or a write, has the line of the call before it."""
        self.by_op: dict[Op, Site] = {}
        last = None
        for i, op in enumerate(tape.ops):
            last = self.known.get(i, last)
            if last is not None and is_others(op.site.filename):
                self.by_op[op] = last

    def of(self, op: Op) -> Site:
        """The line of the user's that an op comes from."""
        return self.by_op.get(op, op.site)
