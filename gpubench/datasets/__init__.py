"""Image folders on disk: found, fingerprinted, made, resized, decoded. For the parent: imports no torch."""
