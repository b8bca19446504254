"""The checks, one file per family or several; every module here is loaded by `registry.load`."""
