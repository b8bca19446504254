"""What the `prefill` and `sampling` families run: plain decoding with parts of a plan, its assistants and probes."""
