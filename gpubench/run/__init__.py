"""A sweep that runs: its story, schedule, limits and work queue; what is checked, made and announced before it."""
