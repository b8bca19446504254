"""Broken on purpose: every check has to trip on something here."""
