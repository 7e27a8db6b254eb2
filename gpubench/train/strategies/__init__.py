"""How one trial uses its devices: one file each."""
