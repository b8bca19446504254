"""Subjects that stream wrongly, usable as `--subject zoo.streaming:NAME`."""

from __future__ import annotations

from conformance.subjects.installed import Installed
from zoo.loop import Decoder


class StreamsTwice(Decoder):
    """Streams the first token twice."""

    name = "streams-twice"

    def stream(self, streamer, tokens, step, last):
        super().stream(streamer, tokens, step, last)
        if step == 0:
            super().stream(streamer, tokens, step, last)


class StreamsLate(Decoder):
    """Never streams the last token."""

    name = "streams-late"

    def stream(self, streamer, tokens, step, last):
        if not last:
            super().stream(streamer, tokens, step, last)


class StreamsAnother(Decoder):
    """Streams another token than it chose."""

    name = "streams-another"

    def stream(self, streamer, tokens, step, last):
        super().stream(streamer, tokens + 1 if step == 0 else tokens, step, last)


class NeverEndsStream(Decoder):
    """Does not tell the streamer that it is done."""

    name = "never-ends-stream"

    def end(self, streamer):
        pass


class CrashesWhenStreaming(Installed):
    """Works without a streamer only."""

    name = "crashes-when-streaming"

    def generate(self, model, call):
        if call.streamer is not None:
            raise TypeError("no streamer")
        return super().generate(model, call)


class StreamsWronglyTwoWays(Decoder):
    """Streams the first token of one row twice; for several rows it does not tell the streamer that it is done."""

    name = "streams-wrongly-two-ways"
    several = False

    def stream(self, streamer, tokens, step, last):
        super().stream(streamer, tokens, step, last)
        self.several = tokens.shape[0] > 1
        if step == 0 and not self.several:
            super().stream(streamer, tokens, step, last)

    def end(self, streamer):
        if not self.several:
            super().end(streamer)
