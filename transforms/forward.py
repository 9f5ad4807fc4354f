"""The forward sweep: tangents flow along the tape, from its inputs to its results.

Words
-----
steps     the ops that depend on the variables with a tangent, and that a result depends on.
tangents  what has been found so far, by op; a missing one is zero, and that of a tuple is a tuple of tangents.

Tangents are ops on a tape, so the sweep is a program that can be differentiated again. They belong to one sweep and
are looked up by variable: a sweep within another one cannot take the other's for its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..rules import registry
from ..tracer.errors import NoRuleError
from ..tracer.tape import Op, Site, Tape, append, element, fn_name, ops_in, primal, substitute
from .pushforward import pushforward_of
from .reverse import dependents


class Pusher:
    """Carries tangents along ops, and puts what that takes on a tape."""

    def __init__(self, tape: Tape, site: Site) -> None:
        self.tape = tape
        self.site = site
        self.tangents: dict[Op, Any] = {}
        self.momentary = ""  # the name of a function whose pushforward holds for this run only

    def sweep(self, ops: Iterable[Op], seeds: list[tuple[Op, Any]], results: list[Op]) -> list[Any]:
        """The tangents of ``results``, given those of some variables (``seeds``); None is a zero."""
        tangents = self.tangents
        tangents.update({op: t for op, t in seeds if t is not None})
        steps, _ = dependents(ops, list(tangents))
        with np.errstate(all="ignore"):
            for op in needed(steps, results):
                t = self.push(op)
                if t is not None:
                    tangents[op] = t
        return [self.known(op) for op in results]

    def known(self, op: Op) -> Any:
        t = self.tangents.get(op)
        if isinstance(t, registry.Missing):
            raise NoRuleError(t.why)
        return t

    def push(self, op: Op) -> Any:
        """The tangent of an op."""
        if op.fn is element:
            whole = self.tangents.get(op.args[0])
            return None if whole is None else whole[op.args[1]]
        for x in op.operands():
            self.known(x)
        pushforward, inputs = pushforward_of(op, self.tangents)
        if pushforward is None:
            return None
        if pushforward.momentary:
            self.momentary = fn_name(op.fn)
        return replayed(pushforward.tape, inputs, self.tape, op.site)


def replayed(small: Tape, inputs: list[Any], tape: Tape, site: Site) -> Any:
    """Put the ops of a small tape, with these inputs, on another tape; what its result is there."""
    known: dict[Op, Any] = dict(zip(small.inputs, inputs, strict=True))

    def now(x: Op) -> Any:
        return known[x]

    for x in small.ops:
        if x.kind == "call":
            args, kwargs = substitute(x.args, now), substitute(x.kwargs, now)
            value = x.fn(*primal(args), **primal(kwargs))
            known[x] = append(tape, x.fn, args, kwargs, value, site)
    return substitute(small.result, now)


def needed(steps: list[Op], results: Iterable[Op]) -> list[Op]:
    """The steps that the results depend on by way of a derivative."""
    wanted = set(results)
    kept: list[Op] = []
    for op in reversed(steps):
        if op in wanted:
            rule = registry.lookup(op.fn)
            if rule is None or rule.kind not in (registry.NONDIFF, registry.QUERY):
                kept.append(op)
                wanted.update(op.operands())
    return kept[::-1]
