"""Constructs that are left out of the programs for now, because the engine is known to be wrong there.

A construct is named by its template, as it stands in `grammar.txt` or in `pieces`; a whole piece by `piece NAME`, a way
of asking by `way NAME`. The menders of the engine take a line out when what it says no longer holds; `--all` puts
everything in again.
"""

KNOWN: dict[str, str] = {
    "piece hooks": "objects made in the function live longer than in plain Python",
    "piece partials": "a partial outside gets a new dict of keywords, calls or not",
    "Strict.__getattribute__ = lambda self, name: $lit": "the engine itself calls it",
    "np.add(vector, weights, out=weights)": "another text of the error where the shapes do not fit",
    "chain[1] = Scale($n)": "a new object stored outside is the old one in kept programs",
    "$V += $v": "another text of the error where the shapes do not fit",
    "w *= $v": "another text of the error where the shapes do not fit",
    "Thing.k = property(lambda self: $lit, lambda self, z: None)": "vars() of an object with such an attribute",
    "way jvp": "of an argument that is an object or a list and is returned",
}
