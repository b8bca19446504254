"""A property-based conformance harness for `transformers` generation."""

__version__ = "0.1.0"
