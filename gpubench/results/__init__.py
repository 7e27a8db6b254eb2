"""The folder on disk."""
