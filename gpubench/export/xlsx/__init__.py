"""Excel workbooks: the answers with their charts, and a sheet for each kind of lines."""
