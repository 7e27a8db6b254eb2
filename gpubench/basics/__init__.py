"""What every room uses and Python does not bring: Linux, text, numbers, signals."""
