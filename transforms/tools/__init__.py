"""Tools that look at tapes and programs, show and run them and write them down; each is imported when asked for."""
