"""What ends a run from outside."""

import os
import signal

import pytest

from conformance import interruption

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@pytest.fixture
def handlers():
    """Puts back what the process did with these signals before."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
    interruption._asked.clear()


@pytest.mark.usefixtures("handlers")
@pytest.mark.parametrize("number", SIGNALS)
def test_a_request_to_end_is_an_interrupt_that_is_remembered(number):
    interruption.watch()
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), number)
    with pytest.raises(KeyboardInterrupt):
        interruption.check()
