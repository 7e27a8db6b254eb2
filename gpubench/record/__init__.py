"""Events and samples -> one record: windows, figures, doubts."""
