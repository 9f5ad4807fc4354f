"""English in messages."""

from __future__ import annotations


def with_article(noun: str) -> str:
    """A noun, such as the name of a class, as it is spoken: ``a float``, ``an int``, ``an ndarray``, ``a uint8``."""
    spoken = noun.lower()
    return (
        f"an {noun}" if spoken[:1] in ("a", "e", "i", "o") or spoken == "ndarray" else f"a {noun}"
    )
