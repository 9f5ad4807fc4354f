"""Fold a tape: what a loop does in each of its passes becomes one block, whichever way it went.

Words
-----
block      items one after the other, gone through a number of times: its *passes*, in their order.
line       an item: one op for each pass of its block.
loop       an item with a block of its own, ``counts`` of whose passes belong to each pass around it.
branch     an item with several blocks, its ways: each pass around it takes one of them.
call       an item whose block comes from one call of a Python function.
key        what must be the same of two items, for them to be passes of one.

Folding loses nothing: `unfolded` gives the ops of the tape in their order, whatever the outline of the tape said; but
inputs that were met in a loop stand before it.
"""

from __future__ import annotations

import difflib
import types
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

from ...tracer.kinds import isinstance
from ...tracer.outline import CALL, LOOP, PASS, Region
from ...tracer.tape import Guard, Input, Op, Site, Tape, element, ops_in, type_name
from ..patterns import frame

LONGEST_PERIOD, FEWEST_PERIODS = 16, 4  # of what is repeated where nothing is known of a loop
DEEPEST = 40  # regions in regions: what recursion has deeper is a part of the last one
MOST_COMPARED = 32  # ways through an iteration, to find out what they have in common


class Item:
    """What stands in a block. ``block`` is set when that is complete, and ``place`` is where it stands there."""

    block: Block


class Line(Item):
    """One op for each pass."""

    def __init__(self, ops: list[Op]) -> None:
        self.ops = ops


class Loop(Item):
    """A loop with ``counts[p]`` passes of its ``body`` in the pass ``p`` around it."""

    def __init__(self, body: Block, counts: list[int], site: Site, known: bool) -> None:
        self.body = body
        self.counts = counts
        self.site = site
        self.known = known  # as a loop of the program; else it was found by what is repeated
        body.inside = self
        self.starts = [0]  # by pass around it: its first pass
        for count in counts:
            self.starts.append(self.starts[-1] + count)
        self.outer = [p for p, count in enumerate(counts) for _ in range(count)]


class Branch(Item):
    """In the pass ``p`` around it the way ``taken[p]`` is gone, for the ``inner[p]``-th time."""

    def __init__(self, ways: list[Block], taken: list[int]) -> None:
        self.ways = ways
        self.taken = taken
        self.outer: list[list[int]] = [[] for _ in ways]  # by way: the passes around it
        self.inner: list[int] = []
        for p, number in enumerate(taken):
            self.inner.append(len(self.outer[number]))
            self.outer[number].append(p)
        for way in ways:
            way.inside = self


class Call(Item):
    """A call of a function with this name, in each pass."""

    def __init__(self, body: Block, name: str, site: Site) -> None:
        self.body = body
        self.name = name
        self.site = site
        body.inside = self


class Block:
    """Items, and how often they are gone through. ``inside`` is the item that it is the body, or a way, of."""

    def __init__(self, items: list[Item], passes: int) -> None:
        self.items = items
        self.passes = passes
        self.inside: Loop | Branch | Call | None = None
        for item in items:
            item.block = self

    def outer(self, p: int) -> int:
        """The pass around it in which its pass ``p`` happens."""
        inside = self.inside
        if isinstance(inside, Loop):
            return inside.outer[p]
        if isinstance(inside, Branch):
            return inside.outer[inside.ways.index(self)][p]
        return p

    def lines(self) -> Iterator[Line]:
        """Each line in it, however deep."""
        for item in self.items:
            if isinstance(item, Line):
                yield item
            elif isinstance(item, Branch):
                for way in item.ways:
                    yield from way.lines()
            elif isinstance(item, (Loop, Call)):
                yield from item.body.lines()


# ------------------------------------------------------------------------------------------------ the tree


class Node:
    """A region of the tape: ops and regions in their order."""

    __slots__ = ("children", "key", "region")

    def __init__(self, region: Region | None) -> None:
        self.region = region
        self.children: list[Any] = []
        self.key: Hashable = None


def tree_of(tape: Tape) -> Node:
    """The regions of a tape, as its outline tells them; without what was read outside, and is taken by nothing.

    What was read outside stands in the innermost region around all that take it, but not in one pass of a loop. The
    run itself, and the sweep over it, are no regions of their own there.
    """
    regions = {} if tape.outline is None else tape.outline.regions
    root = Node(None)
    opened = [root]
    paths: dict[Region | None, list[Region]] = {None: []}
    path: list[Region] = []
    # By operand: the regions around all that take it.
    takers = {id(x): path for x in ops_in(tape.result)}
    for op in tape.ops:
        wanted = path_of(regions.get(op), paths)
        for x in op.operands():
            around = takers.setdefault(id(x), wanted)
            takers[id(x)] = around[: shared(around, wanted)]
    read: list[Op] = []  # and has no place yet

    def place(x: Op, depth: int) -> None:
        """Before what is in hand at this depth, a line or a region."""
        depth = next((i for i, around in enumerate(path[:depth]) if around.kind == LOOP), depth)
        before = opened[depth].children
        before.insert(len(before) - (depth < len(path)), x)

    for op in tape.ops:
        if isinstance(op, Input):
            if op.role != "outside":
                place(op, len(path))
            elif id(op) in takers:
                read.append(op)
            continue
        wanted = path_of(regions.get(op), paths)
        del opened[shared(path, wanted) + 1 :]
        for inner in wanted[len(opened) - 1 :]:
            node = Node(inner)
            opened[-1].children.append(node)
            opened.append(node)
        path = wanted
        for x in [x for x in read if shared(takers[id(x)], path) == len(takers[id(x)])]:
            whole = len(path) > 0 and not path[0].site.filename
            place(x, max(len(takers[id(x)]), whole))
            read.remove(x)
        opened[-1].children.append(op)
    root.children += read
    return root


def shared(a: Sequence[Region], b: Sequence[Region]) -> int:
    """How many regions two paths have in common."""
    least = min(len(a), len(b))
    return next((i for i in range(least) if a[i] is not b[i]), least)


def path_of(region: Region | None, known: dict[Region | None, list[Region]]) -> list[Region]:
    """The regions around a line, outer ones first, as deep as they are told apart."""
    new: list[Region] = []
    while region not in known:
        assert region is not None
        new.append(region)
        region = region.parent
    path = known[region]
    for x in reversed(new):
        path = known[x] = path if len(path) >= DEEPEST else [*path, x]
    return path


class Folder:
    """Folds the nodes of one tape. Lines are told apart by their ``roles`` too, where these are known."""

    def __init__(self, roles: dict[Op, Hashable]) -> None:
        self.keys: dict[Op, Hashable] = {}
        self.roles = roles

    def key(self, node: Any) -> Hashable:
        """What must be the same for two ops or regions to be one."""
        if isinstance(node, Node):
            region = node.region
            assert region is not None
            return region.kind, region.name, region.site
        found = self.keys.get(node)
        if found is None:
            role = self.roles.get(node)
            found = key_of(node) if role is None else (role, *key_of(node))
            self.keys[node] = found
        return found

    def prepared(self, node: Node) -> list[Any]:
        """The children of a region; what is repeated is a loop, known or not, and so are loops that are."""
        children, count = self.repeated(node.children), len(node.children)
        while len(children) < count:
            children, count = self.repeated(children), len(children)
        return children

    def repeated(self, children: list[Any]) -> list[Any]:
        """The same with what is done several times over, one after the other, as the passes of a loop."""
        keys = [self.key(x) for x in children]
        found: list[Any] = []
        i = 0
        while i < len(children):
            period, times = longest(keys, i)
            if times < FEWEST_PERIODS or isinstance(children[i], Input):
                found.append(children[i])
                i += 1
                continue
            first = children[i]
            site = first.site if isinstance(first, Op) else first.region.site
            loop = Node(Region(LOOP, "", site, None))
            for k in range(times):
                one = Node(Region(PASS, "", site, None))
                one.children = children[i + k * period : i + (k + 1) * period]
                loop.children.append(one)
            found.append(loop)
            i += period * times
        return found

    def block(self, passes: Sequence[list[Any]]) -> Block:
        """The block that is gone through in these ways: equal items first and last, branches between."""
        items: list[Item] = []
        at, least = 0, min(map(len, passes))
        while at < least and self.agree([x[at] for x in passes]):
            items += self.items([x[at] for x in passes])
            at += 1
        rests = [x[at:] for x in passes]
        if not any(rests):
            return Block(items, len(passes))
        last, least = 0, min(map(len, rests))
        while last < least and self.agree([x[-1 - last] for x in rests], last == 0):
            last += 1
        middles = [x[: len(x) - last] for x in rests]
        items += self.between(middles)
        for i in range(last):
            items += self.items([x[len(x) - last + i] for x in rests])
        return Block(items, len(passes))

    def between(self, passes: list[list[Any]]) -> list[Item]:
        """The items of passes that begin and end in different ways: what all of them do, and branches around that."""
        variants: dict[tuple[Hashable, ...], list[int]] = {}
        for p, nodes in enumerate(passes):
            variants.setdefault(tuple(map(self.key, nodes)), []).append(p)
        common = common_to(list(variants))
        stops: list[list[int]] = [[] for _ in passes]  # where each does what all of them do
        for keys, numbers in variants.items():
            found = places_of(common, keys)
            for p in numbers:
                stops[p] = found
        items: list[Item] = []
        for i in range(len(common) + 1):
            gaps = []
            for nodes, found in zip(passes, stops, strict=True):
                start = found[i - 1] + 1 if i else 0
                gaps.append(nodes[start : found[i] if i < len(common) else len(nodes)])
            if any(gaps):
                items.append(self.branch(gaps))
            if i < len(common):
                items += self.items([x[found[i]] for x, found in zip(passes, stops, strict=True)])
        return items

    def branch(self, passes: list[list[Any]]) -> Branch:
        """Ways that begin differently; but those that do mostly the same, with no decision, are one."""
        ways: dict[Hashable, list[list[Any]]] = {}
        taken = []
        for nodes in passes:
            key = self.key(nodes[0]) if nodes else None
            ways.setdefault(key, []).append(nodes)
            taken.append(key)
        numbers: dict[Hashable, int] = {}
        does: list[set[Hashable]] = []  # by way
        found: list[list[list[Any]]] = []
        for key, way in ways.items():
            keys = set() if not way[0] or isinstance(way[0][0], Guard) else {*map(self.key, way[0])}
            alike = (i for i, x in enumerate(does) if 2 * len(x & keys) > max(len(x), len(keys)))
            numbers[key] = next(alike, len(found))
            if numbers[key] == len(found):
                found.append([])
                does.append(keys)
        if len(found) == 1:  # they have nothing in common, in this order
            numbers = {key: i for i, key in enumerate(ways)}
            found = [[] for _ in ways]
        for nodes, key in zip(passes, taken, strict=True):
            found[numbers[key]].append(nodes)
        return Branch([self.block(x) for x in found], [numbers[key] for key in taken])

    def agree(self, nodes: list[Any], at_end: bool = False) -> bool:
        """Whether these are passes of one item; a decision ``at_end``, as of a ``while``, may come out in any way."""
        keys = {self.key(x) for x in nodes}
        if len(keys) > 1 and at_end:
            keys = {self.key(x)[:-1] if isinstance(x, Guard) else x for x in nodes}  # type: ignore[index]
        return len(keys) == 1

    def items(self, nodes: list[Any]) -> list[Item]:
        """The item of which these are the passes; what is inside of a loop that goes round but once."""
        first = nodes[0]
        if isinstance(first, Op):
            return [Line(nodes)]
        region = first.region
        if region.kind == CALL:
            body = self.block([self.prepared(x) for x in nodes])
            return [Call(body, region.name, region.site)]
        counts = [len(x.children) for x in nodes]
        body = self.block([self.prepared(x) for node in nodes for x in node.children])
        if max(counts) == 1:
            return body.items
        return [Loop(body, counts, region.site, bool(region.name))]


def common_to(variants: list[tuple[Hashable, ...]]) -> list[Hashable]:
    """What all of these sequences have in common, in this order."""
    common: Sequence[Hashable] = variants[0]
    for keys in variants[1:] if len(variants) <= MOST_COMPARED else ():
        blocks = difflib.SequenceMatcher(None, common, keys, autojunk=False).get_matching_blocks()
        common = [key for at, _, size in blocks for key in common[at : at + size]]
    return [] if len(variants) > MOST_COMPARED else list(common)


def places_of(common: list[Hashable], keys: Sequence[Hashable]) -> list[int]:
    """Where a sequence has what is common to it and others."""
    found = []
    at = 0
    for key in common:
        at = keys.index(key, at)
        found.append(at)
        at += 1
    return found


def longest(keys: list[Hashable], start: int) -> tuple[int, int]:
    """The period that covers most of what follows, and how often it is repeated."""
    best = (1, 1)
    for period in range(1, LONGEST_PERIOD + 1):
        stop = start + period
        while stop < len(keys) and keys[stop] == keys[stop - period]:
            stop += 1
        times = (stop - start) // period
        if times >= FEWEST_PERIODS and times * period > best[0] * best[1]:
            best = period, times
    return best


def key_of(op: Op) -> tuple[Hashable, ...]:
    """What must be the same of two ops for them to be passes of one line; their operands may differ."""
    if isinstance(op, Input):
        return "input", id(op)
    fn: Hashable = id(op.fn)
    if type(op.fn) in (types.MethodType, types.BuiltinMethodType, types.MethodWrapperType):
        fn = id(op.fn.__self__), op.fn.__name__  # made anew whenever it is asked for
    value: Hashable = op.value if op.kind == "guard" and type(op.value) is bool else None
    if op.fn is element:
        value = op.args[1]
    return op.kind, fn, frame(op), op.site, type_name(op.value), value


def folded(tape: Tape) -> Block:
    """The tape as a block that is gone through once."""
    folder = Folder({} if tape.outline is None else tape.outline.roles)
    return folder.block([folder.prepared(tree_of(tape))])


def unfolded(block: Block) -> Iterator[Op]:
    """The ops of a block in the order in which they were done."""

    def walk(block: Block, p: int) -> Iterator[Op]:
        for item in block.items:
            if isinstance(item, Line):
                yield item.ops[p]
            elif isinstance(item, Call):
                yield from walk(item.body, p)
            elif isinstance(item, Branch):
                yield from walk(item.ways[item.taken[p]], item.inner[p])
            elif isinstance(item, Loop):
                for q in range(item.starts[p], item.starts[p + 1]):
                    yield from walk(item.body, q)

    for p in range(block.passes):
        yield from walk(block, p)
