"""What Python's operations mean: the modules that those below them ask, set when all of them are there.

A call, an operator and an attribute of a value of the user's are defined by each other, as they are in Python. Imports
run one way all the same: what lies further down asks here, and nothing here is used before the package is imported.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

attributes: Any
boxing: Any
calls: Any
closing: Any
escape: Any
format_tape: Any  # how a tape is printed, which transforms say
foreign: Any
hooks: Any
marks: Any
opaque: Any
operators: Any
overrides: Any
protocols: Any
renewal: Any
scopes: Any
sights: Any
source: Any
tracebacks: Any
unannounced: Any
unboxing: Any
writers: Any


class Tools:
    """The modules of a package further up, each imported when it is first asked for."""

    package = ""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return importlib.import_module(f"{self.package}.{name}")


tools: Any = Tools()


def set_up(*modules: ModuleType) -> None:
    """These are asked from now on, by their own names."""
    for module in modules:
        setattr(sys.modules[__name__], module.__name__.rpartition(".")[2], module)
