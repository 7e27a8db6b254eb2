"""One self-contained web page of results folders: answers, pictures, tables, doubts, environment, how to repeat it."""
