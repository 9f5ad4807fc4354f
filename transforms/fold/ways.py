"""Ways: the blocks of a region as nodes, in the form in which code is written forwards and backwards.

Words
-----
node     ops that run one after another, and what comes then: a decision with a node for each outcome, or an end.
step     of a node: an op, a `Check`, or a `Same`.
inlined  a scope with one way only, whose ops are steps of the node that it stands in.
home     the nodes that give an op its value.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...tracer.fold.region import (
    EXHAUSTED,
    Block,
    End,
    Invoke,
    Loop,
    Op,
    Reference,
    Region,
    Scope,
    Several,
    Take,
    results_of,
)

DEEP = 80  # decisions inside one another: Python takes a hundred levels of indentation


class Unemittable(Exception):
    """There is no program for a region; the message says why."""


class Check(NamedTuple):
    """The pass goes on only where ``subject`` has this outcome."""

    subject: Op
    outcome: Any


class Same(NamedTuple):
    """The pass goes on only where all candidates of the reference are one object."""

    reference: Reference


Step = Op | Check | Same


class Node:
    """Steps, and then a decision or an end.

    ``trying`` is the op whose exceptions are the outcomes (None: it raised none). ``given`` is an op that has its
    value when the node begins: the one that was tried, or the item of a loop.
    """

    __slots__ = ("end", "given", "kids", "parent", "steps", "subject", "trying")

    def __init__(self, parent: Node | None, given: Op | None = None) -> None:
        self.parent = parent
        self.given = given
        self.steps: list[Step] = []
        self.subject: Any = None
        self.trying: Op | None = None
        self.kids: dict[Any, Node] = {}
        self.end: End | None = None

    @property
    def ops(self) -> list[Op]:
        given = [] if self.given is None else [self.given]
        return given + [x for x in self.steps if isinstance(x, Op)]

    @property
    def path(self) -> list[Node]:
        """The nodes from the root to this one."""
        found: list[Node] = [self]
        while found[-1].parent is not None:
            found.append(found[-1].parent)
        return found[::-1]

    def leaves(self) -> list[Node]:
        """The nodes with an end, in order."""
        if self.end is not None:
            return [self]
        return [leaf for kid in self.kids.values() for leaf in kid.leaves()]


class Turn(NamedTuple):
    """The body of a loop for one state: the node of a pass, and of a counted loop that of having nothing left."""

    state: Any
    region: Region
    root: Node
    exhausted: Node | None

    @property
    def roots(self) -> list[Node]:
        return [self.root] if self.exhausted is None else [self.root, self.exhausted]


def has_one_way(scope: Scope) -> bool:
    """Whether all passes through a scope did the same."""
    block = scope.region.root
    while True:
        if len(block.cases) > 1 or any(op.exits for op in block.ops):
            return False
        if not block.cases:
            return block.end is not None and len(scope.results) < 2
        (block,) = block.cases.values()


class Ways:
    """The nodes of regions, and where each op has its home."""

    def __init__(self) -> None:
        self.home: dict[Op, list[Node]] = {}

    def region(self, region: Region) -> Node:
        """The nodes of a scope or a function."""
        root = Node(None)
        self.settle(region.parameters, root)
        self.grow(root, region.root, 0)
        return root

    def turns(self, loop: Loop) -> list[Turn]:
        """The nodes of a loop's bodies."""
        found = []
        for state, body in loop.bodies.items():
            if not loop.counted:
                found.append(Turn(state, body, self.region(body), None))
                continue
            root, exhausted = Node(None), Node(None)
            if body.root.ops or body.root.subject not in (EXHAUSTED, None):
                raise Unemittable("a loop over integers does something before its head")
            for outcome, block in body.root.cases.items():
                if outcome:
                    self.grow(exhausted, block, 0)
                elif block.ops:  # the first of which is the item
                    root.given = block.ops[0]
                    self.settle([root.given], root)
                    self.grow(root, block, 1)
            for node in (root, exhausted):
                self.settle(body.parameters, node)
            found.append(Turn(state, body, root, exhausted))
        return found

    def settle(self, ops: list[Op], node: Node) -> None:
        """Say that the node gives these ops their values."""
        for op in ops:
            self.home.setdefault(op, []).append(node)

    def grow(self, node: Node, block: Block, start: int) -> None:
        """Add what a block does, from one of its ops on, and what may follow."""
        if len(node.path) > DEEP:
            raise Unemittable(f"more than {DEEP} decisions inside one another")
        while True:
            subject = block.subject
            for i in range(start, len(block.ops)):
                op = block.ops[i]
                if op is subject and is_condition(op) and i == len(block.ops) - 1:
                    break
                if op.exits:
                    node.trying = op
                    rest = node.kids[None] = Node(node, op)
                    self.settle([op], rest)
                    self.grow(rest, block, i + 1)
                    for kind, other in op.exits.items():
                        kid = node.kids[kind] = Node(node)
                        self.grow(kid, other, 0)
                    return
                self.step(node, op)
            if block.end is not None or not block.cases:
                node.end = block.end
                return
            if len(block.cases) > 1:
                break
            ((outcome, block),) = block.cases.items()
            self.decided(node, node, subject, outcome)
            node.steps.append(Check(subject, outcome))
            start = 0
        node.subject = subject
        for outcome, other in block.cases.items():
            kid = node.kids[outcome] = Node(node)
            self.decided(kid, node, subject, outcome)
            self.grow(kid, other, 0)

    def step(self, node: Node, op: Op) -> None:
        """Add one op, or all those of a scope with one way."""
        self.settle([op], node)
        if isinstance(op, Several):
            self.settle(results_of(op), node)
        if type(op) is not Scope or not has_one_way(op):
            node.steps.append(op)
            return
        self.grow(node, op.region.root, 0)
        assert node.end is not None
        node.steps += [Same(x) for x in node.end.outs if isinstance(x, Reference)]
        node.end = None

    def decided(self, to: Node, at: Node, subject: Any, outcome: Any) -> None:
        """Results of a state have their value where it was found to be the state."""
        if isinstance(subject, (Loop, Scope, Invoke, Take)):
            self.settle(subject.results.get(outcome, []), to)


def is_condition(op: Op) -> bool:
    """Whether an op that a block decides on is written where it decides."""
    return not op.exits and not isinstance(op, (Loop, Scope, Invoke, Take))
