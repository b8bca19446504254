"""Our own small, readable version of each mechanism; imports nothing of the checks."""
