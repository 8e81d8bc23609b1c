"""Payloads on their way: stored once however far they travel, and never in the way of what must be heard."""

import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import videoflow as vf
from tests.engines.flows import Rows
from tests.worker.test_undecodable import Reader
from videoflow.backends.memory import MemoryPayloads
from videoflow.backends.payload import Corrupt, Missing, PayloadBytes, PayloadRef, TransientFailure
from videoflow.backends.runtime import Desired
from videoflow.clock import RealClock
from videoflow.worker.link import Desire, Figures, Link
from videoflow.worker.process import _Keeper, _Reporter

FRAMES = 3
DEADLINE_SECONDS = 20.0


class Frames(vf.Producer):
    """Frames that are too large for an envelope."""

    max_item_bytes = 1 << 17

    def produce(self, resume: int | None) -> Iterator[vf.Item]:
        for number in range(resume or 0, FRAMES):
            image = np.full((120, 160, 3), number, np.uint8)
            frame = vf.Frame(image=image, pts=number, time_base=Fraction(1, 25), index=number, source="made")
            yield vf.Item(frame, offset=number)


@vf.processor
def marked(frame: vf.Frame) -> vf.Frame:
    return replace(frame, corrupt=not frame.corrupt)


class Index(Rows):
    """Keeps which frames it was given, and what they look like."""

    def consume(self, *row: Any, ctx: vf.Context) -> None:
        super().consume(row[0].index, int(row[0].image[0, 0, 0]), ctx=ctx)


def test_an_unchanged_frame_is_stored_once_through_five_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    put, stored = MemoryPayloads.put, []

    def noted(self: MemoryPayloads, data: Any, content_id: str, *more: Any, **options: Any) -> Any:
        stored.append(content_id)
        return put(self, data, content_id, *more, **options)

    monkeypatch.setattr(MemoryPayloads, "put", noted)
    stream: Any = Frames(name="frames")
    for number in range(5):
        stream = marked(name=f"stage-{number}")(stream)
    report = vf.Flow([Index(name="rows")(stream)]).run()
    assert report.values["rows"] == [[number, number] for number in range(FRAMES)]
    assert len(stored) == FRAMES, f"stored for {stored}"


def test_heartbeats_and_orders_pass_while_a_payload_is_read_slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, may_end = threading.Event(), threading.Event()
    reader = Reader()
    read = reader.store.read

    def slowly(ref: PayloadRef, *, deadline: float) -> PayloadBytes | TransientFailure | Missing | Corrupt:
        reading.set()
        assert may_end.wait(DEADLINE_SECONDS)
        return read(ref, deadline=deadline)

    monkeypatch.setattr(reader.store, "read", slowly)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.settimeout(DEADLINE_SECONDS / 2)
    engine, link = Link(ours), Link(theirs)
    reporter = _Reporter(link)
    reporter.figures(reader.nodes.figures)
    monkeypatch.setattr("os._exit", lambda status: None)  # what it does when the engine is gone
    keeper = _Keeper(link, reporter, reader.control)
    work = threading.Thread(target=reader.load)
    work.start()
    try:
        assert reading.wait(DEADLINE_SECONDS)
        keeper.start()
        received = engine.receive()
        assert received is not None
        assert isinstance(received[0], Figures)
        engine.send(Desire(Desired.STOP, None))
        clock = RealClock()
        deadline = clock.monotonic() + DEADLINE_SECONDS
        while reader.control.desired is not Desired.STOP and clock.monotonic() < deadline:
            clock.wait([], clock.monotonic() + 0.01)
        assert work.is_alive(), "the payload was read meanwhile, so that nothing was shown"
        assert reader.control.desired is Desired.STOP
    finally:
        may_end.set()
        work.join()
        ours.close()
        keeper.join(DEADLINE_SECONDS)
        theirs.close()
