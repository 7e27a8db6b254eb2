"""What watches a trial from outside, while it trains: pacing, GPU, host."""
