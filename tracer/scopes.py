"""Where the names of code that ``exec`` and ``eval`` run are looked up, and where they are stored.

Words
-----
globals    the dictionary that the code and the functions that it defines run with.
scope      what is known of such a dictionary, if the run itself chose it: how its names are read and written.
seen       the dictionary as the traced function knows it: itself, the shadow of one outside, the ``__dict__`` of an
           object.
execution  a code object that is running, with its globals and its local variables.

The globals of a module need none of this: they hold plain values, and the overlay has the traced ones. A dictionary
that was made by the run holds traced values itself, until the run ends.
"""

from __future__ import annotations

import builtins
import operator
from typing import Any

from . import attributes, meaning, protocols
from .intrinsic import intrinsic
from .kinds import isinstance
from .places import user_site
from .reads import Place
from .session import Tracer
from .tape import Site
from .writers import write_container

BUILTINS = vars(builtins)


class Scope:
    """Globals that the run itself has made: they hold traced values."""

    def __init__(self, own: dict[str, Any], seen: dict[str, Any]) -> None:
        self.globals = own
        self.seen = seen

    def load(self, tracer: Tracer, site: Site, name: str, value: Any) -> Any:
        """The value of a name, for which the dictionary itself (or its builtins) gave ``value``."""
        if name in self.globals:
            return self.held(tracer, name, value)
        return builtin(tracer, self.globals, name, value)

    def held(self, tracer: Tracer, name: str, value: Any) -> Any:
        return value

    def store(self, tracer: Tracer, site: Site, name: str, value: Any) -> Any:
        """Set a name: what the dictionary itself is to hold."""
        if tracer.loops is not None:
            tracer.loops.write()
        return value

    def delete(self, tracer: Tracer, site: Site, name: str) -> None:
        """A name is about to be deleted."""
        if tracer.loops is not None:
            tracer.loops.write()

    def settle(self, tracer: Tracer, memo: dict[int, Any]) -> None:
        """Take the boxes out, when the run has ended: functions that were defined there may live on."""
        for name, value in list(self.globals.items()):
            if value is not BUILTINS:
                plain = meaning.unboxing.lower(tracer, value, memo, True)
                if plain is not value:
                    self.globals[name] = plain


class Shadowed(Scope):
    """A dictionary outside, of which the traced function has a shadow. It is kept up to date."""

    def held(self, tracer: Tracer, name: str, value: Any) -> Any:
        return self.seen[name] if name in self.seen else value

    def store(self, tracer: Tracer, site: Site, name: str, value: Any) -> Any:
        write_container(tracer, site, operator.setitem, self.seen, (name, value), {})
        return self.globals[name]

    def delete(self, tracer: Tracer, site: Site, name: str) -> None:
        if name in self.seen:
            plain = self.globals[name]
            write_container(tracer, site, operator.delitem, self.seen, (name,), {})
            self.globals[name] = plain  # which is deleted in a moment

    def settle(self, tracer: Tracer, memo: dict[int, Any]) -> None:
        pass


class Owned(Scope):
    """The ``__dict__`` of an object outside."""

    def __init__(self, own: dict[str, Any], seen: dict[str, Any], owner: Any) -> None:
        super().__init__(own, seen)
        self.owner = owner

    def held(self, tracer: Tracer, name: str, value: Any) -> Any:
        place = attributes.noted(tracer, self.owner, name, value, "own")
        return attributes.leaf(tracer, self.owner, name, value, True, place)

    def store(self, tracer: Tracer, site: Site, name: str, value: Any) -> Any:
        attributes.write_own(tracer, site, self.owner, name, value)
        return meaning.unboxing.lower(tracer, value)

    def delete(self, tracer: Tracer, site: Site, name: str) -> None:
        if name in self.globals:
            plain = self.globals[name]
            attributes.remove(tracer, site, self.owner, name)
            self.globals[name] = plain  # which is deleted in a moment

    def settle(self, tracer: Tracer, memo: dict[int, Any]) -> None:
        pass


def scope_of(tracer: Tracer, seen: dict[str, Any]) -> dict[str, Any]:
    """The globals that code runs with which is given ``seen`` for them."""
    if isinstance(seen, attributes.Namespace):
        own = vars(seen.owner)
        tracer.rebound = True
        if not isinstance(seen.owner, attributes.MODULES):
            tracer.scopes.setdefault(id(own), Owned(own, seen, seen.owner))
        return own
    known = tracer.originals.get(id(seen))
    if known is not None:
        tracer.rebound = True
        tracer.scopes.setdefault(id(known[1]), Shadowed(known[1], seen))
        meaning.unboxing.lower(tracer, seen)
        return known[1]
    if id(seen) not in tracer.scopes:
        tracer.scopes[id(seen)] = Scope(seen, seen)
    return seen


def seen(tracer: Tracer, scope: dict[str, Any]) -> dict[str, Any]:
    """What the traced function sees of globals."""
    own = tracer.scopes.get(id(scope))
    if own is not None:
        return own.seen
    return attributes.namespace(tracer, attributes.Globals(scope))


def seen_globals(tracer: Tracer, site: Site, scope: dict[str, Any], what: str) -> dict[str, Any]:
    """The same, where the program asks for them."""
    if id(scope) not in tracer.scopes and tracer.reads is not None:
        tracer.reads.problem(f"{what} is used", site)
    return seen(tracer, scope)


def builtin(tracer: Tracer, scope: dict[str, Any], name: str, value: Any) -> Any:
    """The value of a builtin, which no name in ``scope`` hides."""
    inner = scope.get("__builtins__")
    space = inner if isinstance(inner, dict) else vars(inner)
    if space is not BUILTINS:  # the run's own
        return value
    place: Place | None = None
    if tracer.reads is not None:
        place = tracer.reads.note(tracer.reads.constant(space), "global", name, value)
    return meaning.boxing.enter(tracer, value, name, place)


class Execution:
    """A code object that runs."""

    __slots__ = ("globals", "locals")

    def __init__(self, own: dict[str, Any], variables: Any) -> None:
        self.globals = own
        self.locals = variables

    def has_own(self, name: str) -> bool:
        """Whether a name that was just looked up was found among the local variables, which are not the globals."""
        if self.locals is self.globals:
            return False
        if type(self.locals) is Variables:
            return self.locals.found == name
        return name in self.locals


class Variables:
    """Stands for a mapping of the traced function that holds the local variables of a code object."""

    __slots__ = ("found", "seen", "tracer")

    @intrinsic
    def __init__(self, tracer: Tracer, seen: Any) -> None:
        self.tracer = tracer
        self.seen = seen
        self.found: str | None = None

    @intrinsic
    def __getitem__(self, name: str) -> Any:
        self.found = None
        value = protocols.get_item(self.tracer, user_site(), self.seen, name)
        self.found = name
        return value

    @intrinsic
    def __setitem__(self, name: str, value: Any) -> None:
        protocols.set_item(self.tracer, user_site(), self.seen, name, value)

    @intrinsic
    def __delitem__(self, name: str) -> None:
        if self.tracer.loops is not None:
            self.tracer.loops.write()
        protocols.delete_item(self.tracer, user_site(), self.seen, name)

    @intrinsic
    def keys(self) -> Any:
        site = user_site()
        found = attributes.load(self.tracer, site, self.seen, "keys")
        return protocols.iterate_object(
            self.tracer, site, meaning.calls.call(self.tracer, site, found, (), {})
        )
