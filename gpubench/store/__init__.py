"""A results folder on disk, built anew: claims, so far."""
