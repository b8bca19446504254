"""Steered scores: how `generate` is told what steers them, and on plain values what they then must be."""
