"""Processes: a warmed fork server, trials in processes of their own, deadlines, cleaning up."""
