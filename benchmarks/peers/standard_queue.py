"""`multiprocessing.Queue` of the standard library, bounded."""

import multiprocessing

from benchmarks.work import Array, Maker, Meter, in_processes, job_of_command, remake


def main() -> None:
    """Runs the pipeline."""
    job = job_of_command()
    bound = 8 if job.kind == "frames" else 1000
    context = multiprocessing.get_context("fork")
    first: multiprocessing.Queue[Array] = context.Queue(bound)
    second: multiprocessing.Queue[Array] = context.Queue(bound)

    def produce() -> None:
        maker = Maker(job)
        for index in maker.indices():
            first.put(maker.make(index))
        first.close()
        first.join_thread()

    def process() -> None:
        for _ in range(job.items):
            second.put(remake(first.get()))
        second.close()
        second.join_thread()

    def consume() -> None:
        meter = Meter(job)
        while not meter.full:
            meter.take(second.get())
        meter.finish()

    in_processes(produce, process, consume)


if __name__ == "__main__":
    main()
