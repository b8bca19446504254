"""Hypothesis strategies, and nothing else: a strategy is a recipe plus a range."""
