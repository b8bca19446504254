"""The architectures of the installed release, and small random ones of each: rules and data only."""
