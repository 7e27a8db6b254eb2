"""One agent on each further node of a trial: how it is started, what is said with it, how all is merged."""
