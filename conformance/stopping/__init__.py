"""What the `stopping` family runs: the same call stopped at once and one step late."""
