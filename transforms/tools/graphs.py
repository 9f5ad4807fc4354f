"""Graphs of the package ``graphviz`` that say what to install where the program ``dot`` is missing."""

from __future__ import annotations

from typing import Any

import graphviz

from ...tracer.errors import TraceError

MISSING = (
    "to make a picture takes the program dot: apt install graphviz, brew install graphviz or "
    "conda install graphviz (.source is the graph as text, without it)"
)


class Graph(graphviz.Digraph):  # type: ignore[misc,unused-ignore]
    """A directed graph."""

    def pipe(self, *args: Any, **kwargs: Any) -> Any:
        """The picture; see ``graphviz.Digraph.pipe``."""
        try:
            return super().pipe(*args, **kwargs)
        except graphviz.ExecutableNotFound as error:
            raise TraceError(MISSING) from error

    def render(self, *args: Any, **kwargs: Any) -> Any:
        """Write the picture to a file; see ``graphviz.Digraph.render``."""
        try:
            return super().render(*args, **kwargs)
        except graphviz.ExecutableNotFound as error:
            raise TraceError(MISSING) from error
