"""TOML and command line -> Experiment -> plan of trials. Pure: reads no clock, no GPU and no folder."""
