"""One web page of reports that needs no network."""
