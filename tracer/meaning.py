"""What Python's operations mean: the modules that those below them ask, set when all of them are there.

A call, an operator and an attribute of a value of the user's are defined by each other, as they are in Python. Imports
run one way all the same: what lies further down asks here, and nothing here is used before the package is imported.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import attributes as attributes
    from . import boxing as boxing
    from . import calls as calls
    from . import closing as closing
    from . import escape as escape
    from . import foreign as foreign
    from . import hooks as hooks
    from . import marks as marks
    from . import operators as operators
    from . import overrides as overrides
    from . import protocols as protocols
    from . import scopes as scopes
    from . import sights as sights
    from . import source as source
    from . import unboxing as unboxing
    from . import writers as writers


def set_up(*modules: ModuleType) -> None:
    """These are asked from now on, by their own names."""
    for module in modules:
        setattr(sys.modules[__name__], module.__name__.rpartition(".")[2], module)
