"""Pictures of tapes as files: what is missing for them is named in one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import wengert


class CannotDraw(Exception):
    """Why there is no picture, and what to do."""


def write(tape: Any, path: Path) -> None:
    """Draw a tape to a file, whose ending says of what kind it is; ``.dot`` needs no program. Raises CannotDraw."""
    if not hasattr(tape, "draw"):
        raise CannotDraw(f"this wengert ({wengert.__version__}) cannot draw tapes")
    kind = path.suffix.lstrip(".") or "svg"
    try:
        graph = tape.draw()
        content = graph.source.encode() if kind in ("dot", "gv") else graph.pipe(format=kind)
    except ImportError as error:
        raise CannotDraw(
            f"drawing needs {error.name}, which is not installed: pip install 'wengert[draw]'"
        ) from error
    except wengert.WengertError as error:
        raise CannotDraw(str(error)) from error
    except (ValueError, OSError, RuntimeError) as error:
        if type(error).__name__ == "ExecutableNotFound":
            raise CannotDraw(
                f"the program `dot` of Graphviz is not installed (graphviz.org); {path.stem}.dot needs none"
            ) from error
        raise CannotDraw(f"{path}: {' '.join(str(error).split())}") from error
    try:
        path.write_bytes(content)
    except OSError as error:
        raise CannotDraw(f"cannot write {path}: {error.strerror or error}") from None
