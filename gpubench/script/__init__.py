"""A user's own command, run in a rank's place: started, its output read, its epochs and its end told."""
