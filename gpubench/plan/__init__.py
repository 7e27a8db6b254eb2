"""Experiment files and options -> units with ids; what is left of them; how long they take."""
