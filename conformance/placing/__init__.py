"""Models of a placement case: made, placed as its recipe says, and called in its mode."""
