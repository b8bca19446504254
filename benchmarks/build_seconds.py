"""How long a tiny model of each type takes to build once its module was imported.

    python benchmarks/build_seconds.py

Prints the median over every type that the installed release builds, and the slowest; asserts nothing. The aim is at
most 12 ms on an idle core.
"""

from __future__ import annotations

import statistics
import time

from conformance import upstream
from conformance.architectures import catalogue
from conformance.architectures.capabilities import build_model, capabilities
from conformance.architectures.shrink import tiny_config


def seconds(name: str) -> float:
    """Processor time of one build."""
    settings = tiny_config(name)
    start = time.process_time()
    build_model(name, settings)
    return time.process_time() - start


def main() -> None:
    """Two builds of each type, of which the faster counts."""
    upstream.quiet()
    names = [name for name in catalogue.names() if capabilities(name).buildable]
    took = {name: min(seconds(name), seconds(name)) for name in names}
    print(f"median {1000 * statistics.median(took.values()):.1f} ms over {len(took)} types")
    for name in sorted(took, key=took.__getitem__, reverse=True)[:5]:
        print(f"{name:<24}{1000 * took[name]:>8.1f} ms")


if __name__ == "__main__":
    main()
