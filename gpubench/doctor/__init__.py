"""What `gpubench doctor` looks at: a file for each kind of check, and their registry."""
