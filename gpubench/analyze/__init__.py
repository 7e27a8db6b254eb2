"""Frames in, claims and findings out. Pure, without English about results."""
