"""How sure a figure is: intervals, comparisons and what would settle them. Pure; docs/certainty.md says what holds."""
