"""Meters of power outside of the GPU: RAPL, a CSV that grows, a meter over HTTP."""
