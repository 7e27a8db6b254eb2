"""What runs on the machine where a trial runs."""
