"""Two sides, compared: what is told of them, and in which forms."""
