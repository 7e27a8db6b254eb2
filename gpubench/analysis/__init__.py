"""What the figures say: growth, where a larger batch stops paying. Pure functions over rows."""
