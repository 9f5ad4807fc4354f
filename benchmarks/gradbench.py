"""."""

PROGRAMS = []
