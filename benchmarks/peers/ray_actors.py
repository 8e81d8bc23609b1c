"""Ray: the driver produces into the object store, one actor makes new items, another consumes."""

import logging
import tempfile
from typing import Any

import numpy as np
import ray

from benchmarks.work import Array, Job, Maker, Meter, job_of_command, remake


class Middle:
    """Makes a new item of each."""

    def process(self, item: Array) -> Array:
        """Returns the new item."""
        return remake(item)


class End:
    """Looks at each item."""

    def __init__(self, job: Job) -> None:
        self._meter = Meter(job)

    def take(self, item: Array) -> None:
        """Notes an item."""
        self._meter.take(np.asarray(item))

    def finish(self) -> None:
        """Writes the figures."""
        self._meter.finish()


def main() -> None:
    """Runs the pipeline, with a bounded number of items in flight."""
    job = job_of_command()
    bound = 8 if job.kind == "frames" else 256
    with tempfile.TemporaryDirectory(prefix="r") as folder:
        ray.init(
            num_cpus=2,
            include_dashboard=False,
            logging_level=logging.ERROR,
            log_to_driver=False,
            object_store_memory=512 << 20,
            _temp_dir=folder,
        )
        middle: Any = ray.remote(Middle).options(num_cpus=1).remote()
        end: Any = ray.remote(End).options(num_cpus=1).remote(job)
        maker = Maker(job)
        in_flight: list[Any] = []
        for index in maker.indices():
            if len(in_flight) >= bound:
                done, in_flight = ray.wait(in_flight, num_returns=max(1, bound // 4))
                ray.get(done)
            in_flight.append(end.take.remote(middle.process.remote(ray.put(maker.make(index)))))
        ray.get(in_flight)
        ray.get(end.finish.remote())
        ray.shutdown()


if __name__ == "__main__":
    main()
