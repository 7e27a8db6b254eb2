"""What there is to say: fields of a trial, columns, records, and the words of the catalogue, each defined once."""
