"""Whether faults planted in caches reach the logits: the sensitivity table."""
