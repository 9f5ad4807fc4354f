"""The outline of a run: which calls and iterations of loops the lines of its tape come from, to print it by.

Words
-----
mark      noted while the function runs: a call begins or ends, an iteration begins, loops are left.
region    what some lines have in common: a call of a Python function, a run of a loop, or one pass of it.

Nothing of it has a meaning for the tape: whoever prints it may use what is known, and compares all that he folds.
"""

from __future__ import annotations

import functools
import operator
from collections import ChainMap, Counter
from collections.abc import Container, Hashable
from typing import Any

from .cycles import Loop
from .tape import Home, Op, Site, Tape

CALL, LOOP, PASS = "call", "loop", "pass"
MOST_MARKS = 10_000  # in a run that nobody may want to print


class Region:
    """A ``call`` of a function, a run of a ``loop``, or one ``pass`` of a loop; ``parent`` has it inside."""

    __slots__ = ("kind", "mirrored", "name", "parent", "site")

    def __init__(
        self,
        kind: str,
        name: str,
        site: Site,
        parent: Region | None,
        mirrored: Region | None = None,
    ) -> None:
        self.kind = kind
        self.name = name
        self.site = site
        self.parent = parent
        self.mirrored = mirrored or self  # the region that this is an image of

    def path(self) -> list[Region]:
        """The regions around a line, outer ones first."""
        found: list[Region] = []
        region: Region | None = self
        while region is not None:
            found.append(region)
            region = region.parent
        return found[::-1]


class Outline:
    """The marks of one run. Each stands behind the op that was the last one when it was made.

    While the function runs that is known by its place alone: nobody but the tape holds its ops.
    """

    calls = True  # whether calls are marked

    def __init__(self, tape: Tape) -> None:
        self.names: dict[Op, str] = {}  # of what no variable of the user's holds
        self.roles: dict[Op, Hashable] = {}  # of lines of a sweep: what they do for what they pull
        self.home: Home | None = tape.home
        self.running = tape.ops  # while the function runs
        self.places: list[tuple[int, Any, int]] = []
        self.marks: list[tuple[Op | None, Any, int]] = []

    def __getstate__(self) -> dict[str, Any]:
        known = {**vars(self), "regions": self.regions}
        return {
            **known,
            "marks": [],
            "home": None,
        }  # marks know of code objects, and are no longer needed

    @property
    def ops(self) -> list[Op]:
        tape = None if self.home is None else self.home()
        return [] if tape is None else tape.ops

    def mark(self, what: Any, frame: int = 0) -> None:
        self.places.append((len(self.running), what, frame))

    def end(self) -> None:
        """The run is over: from now on the tape may change."""
        ops, self.running = self.running, []
        last = len(ops)
        for place, what, frame in reversed(self.places):
            # What is no longer there (a checkpointed call is one line in the end) began there.
            last = min(last, place)
            self.marks.append((ops[last - 1] if last else None, what, frame))
        self.marks.reverse()
        self.places = []

    def replace(self, op: Op, new: Op) -> None:
        """An op stands for another one from now on."""
        self.replace_by(self, op, new)

    def replace_by(self, other: Outline, op: Op, new: Op) -> None:
        """An op stands for one of another outline."""
        for known, wanted in (
            (other.regions, self.regions),
            (other.names, self.names),
            (other.roles, self.roles),
        ):
            if op in known:
                wanted[new] = known[op]  # type: ignore[index, assignment]

    def roll(self, site: Site, first: Op, ops: list[Op]) -> None:
        """These ops stand for a run of the loop at a place, of which this was the first op."""
        path = [] if (region := self.regions.get(first)) is None else region.path()
        loops = [x for x in path if x.kind == LOOP and x.site == site]
        around = loops[-1].parent if loops else region
        for op in ops:
            if around is None:
                self.regions.pop(op, None)
            else:
                self.regions[op] = around

    def copied(self, tape: Tape, copies: dict[Op, Op]) -> Outline:
        """The outline of another tape, whose lines stand where those stood of which they are copies."""
        new = Outline(tape)
        if "regions" not in vars(self):  # which are found where they are asked for
            new.marks = [(copies.get(last, last), what, frame) for last, what, frame in self.marks]  # type: ignore[arg-type]
            return new
        for op, copy in copies.items():
            new.replace_by(self, op, copy)
        return new

    @functools.cached_property
    def regions(self) -> dict[Op, Region]:
        """The region of each line that is in any."""
        ops = self.ops
        index = {op: i for i, op in enumerate(ops)}
        walk = Walk()
        position = 0
        for last, what, frame in self.marks:
            stop = index.get(last, position - 1) + 1 if last is not None else 0
            for op in ops[position:stop]:
                walk.place(op)
            position = max(position, stop)
            walk.follow(what, frame)
        for op in ops[position:]:
            walk.place(op)
        return walk.found


class Memos:
    """What has been done already, by region: in another pass of a loop it is done again, as in all of them."""

    def __init__(self, outline: Outline | None) -> None:
        self.outline = outline
        self.known: dict[Region | None, ChainMap[Hashable, Op]] = {None: ChainMap()}

    def at(self, op: Op) -> ChainMap[Hashable, Op]:
        """What is known where an op stands: in the passes of loops that it is in, and outside of all loops."""
        region = None if self.outline is None else self.outline.regions.get(op)
        new: list[Region] = []
        while region not in self.known:
            assert region is not None
            new.append(region)
            region = region.mirrored.parent
        found = self.known[region]
        for x in reversed(new):
            found = found.new_child() if x.kind == PASS else found
            self.known[x] = self.known[x.mirrored] = found
        return found


class Iterations(Outline):
    """The outline of a run that is printed perhaps: iterations alone, and no more than a page could show."""

    calls = False

    def mark(self, what: Any, frame: int = 0) -> None:
        if len(self.places) < MOST_MARKS:
            self.places.append((len(self.running), what, frame))


class Walk:
    """Which regions are open while the marks of an outline are followed."""

    def __init__(self) -> None:
        self.found: dict[Op, Region] = {}
        self.open: list[Region] = []
        self.keys: list[Any] = []  # of the open regions: what tells them from others

    def place(self, op: Op) -> None:
        if self.open:
            self.found[op] = self.open[-1]

    def follow(self, what: Any, frame: int) -> None:
        if isinstance(what, Loop):
            self.head(what, frame)
        elif isinstance(what, tuple) and what and isinstance(what[0], Loop):
            for loop in what:
                if (loop, frame) in self.keys:
                    self.close(self.keys.index((loop, frame)))
        elif what is None:
            self.close(max(i for i, key in enumerate(self.keys) if key is CALL))
        else:
            name, site = what
            self.begin(CALL, CALL, name, site)

    def head(self, loop: Loop, frame: int) -> None:
        """An iteration begins; what was open inside of the one before is over."""
        key = loop, frame
        if key in self.keys:
            self.close(self.keys.index(key) + 1)
        else:
            self.begin(key, LOOP, loop.site.function, loop.site)
        self.begin(PASS, PASS, "", loop.site)

    def begin(self, key: Any, kind: str, name: str, site: Site) -> None:
        parent = self.open[-1] if self.open else None
        self.open.append(Region(kind, name, site, parent))
        self.keys.append(key)

    def close(self, start: int) -> None:
        del self.open[start:], self.keys[start:]


class Mirrored(Outline):
    """The outline of a sweep: its lines stand in an image of where what they pull, or push, stands."""

    def __init__(self, tape: Tape, outline: Outline | None) -> None:
        super().__init__(tape)
        self.regions = {} if outline is None else dict(outline.regions)
        if outline is not None:
            self.names.update(outline.names)
            self.roles.update(outline.roles)
        self.images: dict[Region, Region] = {}
        self.numbers: dict[Op, int] = {}  # which one it is, among the same in a pass of a loop
        counts: Counter[Hashable] = Counter()
        for op, region in self.regions.items():
            if region.kind == PASS:
                key = id(region), id(op.fn), op.site
                self.numbers[op] = counts[key]
                counts[key] += 1

    def image(self, region: Region) -> Region:
        found = self.images.get(region)
        if found is None:
            parent = None if region.parent is None else self.image(region.parent)
            image = Region(region.kind, region.name, region.site, parent, region.mirrored)
            found = self.images[region] = image
        return found

    def place(
        self, ops: list[Op], pulled: Op, active: Container[Op], cotangents: dict[Op, Any]
    ) -> None:
        """These are the lines that pull an op for its active operands, and the cotangents that there are now."""
        region = self.regions.get(pulled)
        if region is not None:
            self.regions.update(dict.fromkeys(ops, self.image(region)))
        pattern = tuple([x in active if isinstance(x, Op) else None for x in pulled.args])
        what = id(pulled.fn), pulled.site, self.numbers.get(pulled), pattern
        for i, x in enumerate(pulled.operands()):
            d = cotangents.get(x)
            if isinstance(d, Op) and d.fn is operator.add:
                self.roles.setdefault(d, (*what, i, "sum"))
        steps = [x for x in ops if x not in self.roles and x.site.filename]  # sums have no place
        for i, x in enumerate(steps):
            self.roles[x] = (*what, i, "step")
