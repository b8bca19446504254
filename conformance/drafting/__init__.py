"""What the `prefill` family runs: plain decoding with parts of a plan, and the assistants and probes it takes."""
