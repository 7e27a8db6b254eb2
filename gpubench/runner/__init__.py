"""Takes a plan, runs what is missing, keeps what was measured."""
