"""One file per family of checks; every module here is loaded by `registry.load`."""
