"""The experiments that ship inside the package."""
