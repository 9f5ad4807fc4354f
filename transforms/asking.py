"""Rules that the modes do not run themselves, and source that loops do not write: whom they ask.

The reverse and the forward sweep meet operations whose rule is to run with the sweep, which traces it (``pairs``), and
such as have no rule but the one of the other mode, which is transposed (``pushforward``). Both stand on the sweeps, so
they say here what is to be called, when they are imported.

direct       the pullback of arithmetic on plain floats by a rule that runs: ``direct(active ops)``
pull         hand a cotangent on by such a rule: ``pull(machine, op, cotangent, active ops)``
push         carry tangents along by such a rule: ``push(pusher, op)``
writer       what writes the source of a loop: ``writer(loop function)``
transposed   the pullback that follows from an frule: ``transposed(op, rule, leaves, pattern, cotangent)``
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

direct: Callable[..., Any]
pull: Callable[..., Any]
push: Callable[..., Any]
writer: Callable[..., Any]
transposed: Callable[..., Any]
