"""The hand-over of one result: the seconds from just before a worker returns it until the host has read its first and
last byte. The result is prepared by an earlier task, and no-ops follow it."""

import os
import time
from multiprocessing import shared_memory

import numpy

import arrays
import tasks
from statistic import median


def measure(Pool, load, report):
    ways = {"concurrent.futures": ("array", pickled), "multiprocessing": ("segment", by_hand)}
    name, way = ways[Pool.module]
    pool = Pool(1)
    for size in load["handover_sizes"]:
        figure = f"{name}_{size}_seconds"
        # The report may be finished at any time.
        report.missing[figure] = "takes too long"
        report.attempt(figure, lambda: way(pool, size, repetitions(load, size)))
        if figure in report.figures:
            del report.missing[figure]
    pool.stop()


def repetitions(load, size):
    return min(100, max(3, load["payload_budget"] // size))


def pickled(pool, size, repetitions):
    """An array as the result of a task: the pool pickles it."""
    times = []
    for repetition in range(1 + repetitions):
        pool.submit(arrays.prepare, size).result()
        wake(pool)
        sent, array = pool.submit(arrays.hand_over, None).result()
        seconds = seconds_to_read(array, sent)
        if repetition > 0:
            times.append(seconds)
    return median(times)


def wake(pool):
    for _ in range(20):
        pool.submit(tasks.noop, None).result()


def by_hand(pool, size, repetitions):
    """A segment that host and worker keep, and tasks that only tell that it is written."""
    free = os.statvfs("/dev/shm")
    if free.f_bavail * free.f_frsize < size:
        raise MemoryError("/dev/shm is too small")
    segment = shared_memory.SharedMemory(create=True, size=size)
    try:
        pool.submit(arrays.attach, (segment.name, size)).result()
        array = numpy.frombuffer(segment.buf, numpy.uint8, size)
        array.max()  # faults the pages
        times = []
        for _ in range(repetitions):
            wake(pool)
            sent, _name = pool.submit(arrays.announce, None).result()
            times.append(seconds_to_read(array, sent))
        pool.submit(arrays.detach, None).result()
        # The segment cannot be closed while there is a view of it.
        del array
        return median(times)
    finally:
        segment.unlink()


def seconds_to_read(array, sent):
    if array[0] != 1 or array[-1] != 1:
        raise RuntimeError("the host has not received what the worker wrote")
    return (time.monotonic_ns() - sent) / 1e9
