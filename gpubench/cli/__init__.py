"""The command line: which commands there are, how their options are declared, and what they call."""
