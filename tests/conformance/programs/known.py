"""Constructs that are left out of the programs for now, because the engine is known to be wrong there.

A construct is named by its template, as it stands in `grammar.txt` or in `pieces`; a whole piece by `piece NAME`, a way
of asking by `way NAME`. The menders of the engine take a line out when what it says no longer holds; `--all` puts
everything in again.
"""

KNOWN: dict[str, str] = {
    "piece hooks": "what a run puts outside and replaces again lives until the run ends",
}
