"""Programs of operations on a real model's cache, run one by one and compared with caches that saw less."""
