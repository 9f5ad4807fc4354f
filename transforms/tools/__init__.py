"""Tools that show tapes, run them, and write them down."""
