"""Who works in a results folder: on the whole of it, together with others, on one unit."""
