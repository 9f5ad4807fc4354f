"""Names of a package that are imported when they are asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from .entrances import entrance
from .habits import absent


def on_demand(names: dict[str, Any], modules: dict[str, str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package with these names: others are those of ``modules``, in which they lie."""
    package = names["__name__"]

    @entrance
    def __getattr__(name: str) -> Any:
        if name not in modules:
            raise absent(package, name, names["__all__"], sys._getframe(2))
        found = names[name] = getattr(import_module(modules[name], package), name)
        return found

    return __getattr__
