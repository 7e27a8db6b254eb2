"""How images reach the device: sources and transforms."""
