"""Processes of a trial: fork server, leader, ranks, and what they tell."""
