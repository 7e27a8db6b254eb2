"""Pictures of tables: described first, purely, then drawn. One file a picture; matplotlib is in `paper/` alone."""
