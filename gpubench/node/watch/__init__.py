"""What watches a trial from outside: NVML and the host's kernel; before it, a look around."""
