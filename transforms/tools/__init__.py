"""Tools that look at tapes and programs, imported where they are asked for."""
