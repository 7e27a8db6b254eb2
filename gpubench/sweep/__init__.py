"""The loop over units: what must be so before it, how far it is, how it stops."""
