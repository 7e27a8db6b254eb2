"""Limits that a sweep sets on GPUs, and what sees to it that they are as before after any end of it."""
