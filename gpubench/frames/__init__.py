"""Results folders as frames of pandas, for notebooks: what `gpubench.load` gives."""
