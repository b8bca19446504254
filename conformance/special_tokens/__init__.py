"""What the `special_tokens` family runs: preparations alone, and calls of `generate`; and what they must give."""
