"""English in messages."""

from __future__ import annotations


def with_article(noun: str) -> str:
    """A noun, such as the name of a class, as it is spoken: ``a float``, ``an int``, ``an ndarray``, ``a uint8``."""
    vowel = noun.lower().startswith(("a", "e", "i", "o", "nd"))
    return f"an {noun}" if vowel else f"a {noun}"
