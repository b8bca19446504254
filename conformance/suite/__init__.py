"""The pytest modules that `conformance run` and `pytest --pyargs conformance.suite` collect."""
