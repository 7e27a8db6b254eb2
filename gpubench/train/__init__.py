"""What runs inside the measured processes. The only part of gpubench that imports torch."""
