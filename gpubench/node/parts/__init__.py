"""A trial's part on a further node: how it is started, what lies in the folder between, how all parts are united."""
