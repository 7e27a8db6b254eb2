"""`gpubench predict`: what jobs would do to each other, from stored rows of the same trials alone."""
