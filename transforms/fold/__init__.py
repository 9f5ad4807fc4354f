"""From a region to a program: what is active, the forward part, the reverse part, and how it is kept."""
