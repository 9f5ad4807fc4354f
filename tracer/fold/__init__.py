"""Folding: a run is a pass over a region, which stands for all runs that were seen."""
