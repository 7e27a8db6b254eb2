"""Pictures of findings, as Vega-Lite in plain JSON: a function a kind of picture, which begins with its finding."""
