"""Several results folders as one."""
