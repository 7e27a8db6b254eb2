"""What stored rows of trials alone say of jobs that would run together."""
