"""Results folders in the formats of other programs: one file a format, and their registry."""
