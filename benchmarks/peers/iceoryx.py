"""iceoryx2: items are written into loaned samples, publishers block when a subscriber is behind."""

import ctypes
import os
import time
from collections.abc import Iterator
from typing import Any

import iceoryx2 as iox2
import numpy as np

from benchmarks.work import Array, Job, Maker, Meter, in_processes, job_of_command, remake

_SETTLE_MILLISECONDS = 300
_SILENCE_SECONDS = 5.0


class Hop:
    """One service and the event that wakes its reader."""

    def __init__(self, job: Job, name: str) -> None:
        self._bound = 8 if job.kind == "frames" else 256
        self._type: Any = ctypes.c_uint8 * job.item_bytes
        iox2.set_log_level(iox2.LogLevel.Error)
        self._node = iox2.NodeBuilder.new().create(iox2.ServiceType.Ipc)
        full = f"benchmark/{os.getppid()}/{name}"
        self._service = (
            self._node.service_builder(iox2.ServiceName.new(full))
            .publish_subscribe(self._type)
            .enable_safe_overflow(False)
            .subscriber_max_buffer_size(self._bound)
            .subscriber_max_borrowed_samples(2)
            .max_publishers(1)
            .max_subscribers(1)
            .history_size(0)
            .open_or_create()
        )
        self._event = (
            self._node.service_builder(iox2.ServiceName.new(f"{full}/wake")).event().open_or_create()
        )

    def writer(self) -> None:
        """Makes this the writing side, once the reader is there."""
        self._publisher = (
            self._service.publisher_builder()
            .backpressure_strategy(iox2.BackpressureStrategy.RetryUntilDelivered)
            .create()
        )
        self._notifier = self._event.notifier_builder().create()
        while self._service.dynamic_config.number_of_subscribers == 0:
            self._node.wait(iox2.Duration.from_millis(5))
        self._node.wait(iox2.Duration.from_millis(_SETTLE_MILLISECONDS))
        self._publisher.update_connections()

    def loan(self) -> tuple[Any, Array]:
        """Returns a sample and its bytes."""
        sample = self._publisher.loan_uninit()
        view = self._type.from_address(sample.payload_ptr)
        return sample, np.frombuffer(view, np.uint8)

    def send(self, sample: Any) -> None:
        """Sends a sample whose bytes are written."""
        sample.assume_init().send()
        self._notifier.notify()

    def reader(self) -> None:
        """Makes this the reading side."""
        self._subscriber = self._service.subscriber_builder().create()
        self._listener = self._event.listener_builder().create()

    def samples(self, count: int) -> Iterator[Array]:
        """Yields the bytes of what arrives; a long silence ends it, and what is missing counts as lost."""
        heard = time.monotonic()
        while count and time.monotonic() - heard < _SILENCE_SECONDS:
            sample = self._subscriber.receive()
            if sample is None:
                self._listener.timed_wait(iox2.Duration.from_millis(100))
                continue
            count -= 1
            heard = time.monotonic()
            yield np.frombuffer(self._type.from_address(sample.payload_ptr), np.uint8)
            sample.delete()


def main() -> None:
    """Runs the pipeline."""
    job = job_of_command()

    def produce() -> None:
        out, maker = Hop(job, "first"), Maker(job)
        out.writer()
        for index in maker.indices():
            sample, view = out.loan()
            maker.make(index, view)
            out.send(sample)
        out._node.wait(iox2.Duration.from_secs(1))

    def process() -> None:
        source, out = Hop(job, "first"), Hop(job, "second")
        source.reader()
        out.writer()
        for item in source.samples(job.items):
            sample, view = out.loan()
            remake(item, view)
            out.send(sample)
        out._node.wait(iox2.Duration.from_secs(1))

    def consume() -> None:
        source, meter = Hop(job, "second"), Meter(job)
        source.reader()
        for item in source.samples(job.items):
            meter.take(item)
        meter.finish()

    in_processes(produce, process, consume)


if __name__ == "__main__":
    main()
