"""`gpubench doctor`: what can be measured on this machine, what cannot, and what to do about it."""
