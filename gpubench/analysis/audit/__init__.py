"""The honesty of a results folder: T. Hoefler's twelve ways to make deep-learning performance look good (2018),
each turned into a rule that figures can keep or break, and one more on uncertainty (T. Hoefler and R. Belli, 2015).
Pure functions over rows and what is known of them."""
