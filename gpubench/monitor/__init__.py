"""What watches a trial from outside: pacing, GPU, host. Single-threaded; never imports torch."""
