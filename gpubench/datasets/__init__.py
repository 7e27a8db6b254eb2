"""Image folders on disk: found, fingerprinted, made, resized, decoded. Runs in the parent; imports no torch."""
