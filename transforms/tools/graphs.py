"""Graphs of the package ``graphviz`` that say what to install where the program ``dot`` is missing."""

from __future__ import annotations

import functools
from typing import Any

from ...tracer.errors import TraceError

MISSING = (
    "to make a picture takes the program dot\napt install graphviz, brew install graphviz or "
    "conda install graphviz (.source is the graph as text, without it)"
)


@functools.cache
def graph_class() -> Any:
    """The class of such graphs, which the package is imported for."""
    try:
        import graphviz
    except ModuleNotFoundError as error:
        raise TraceError(
            "draw() needs the package graphviz\npip install 'wengert[draw]'"
        ) from error

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

    return Graph
