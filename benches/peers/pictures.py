"""Decodes and resizes pictures into batches, as Brigade's `images.rs` does in ../src, with Pillow and numpy."""

import time

import numpy
from PIL import Image

from statistic import median


def load(argument):
    """Returns the time of the return, and the batch."""
    side, paths = argument
    batch = numpy.empty((len(paths), side, side, 3), numpy.uint8)
    for row, path in zip(batch, paths):
        with Image.open(path) as picture:
            row[:] = numpy.asarray(picture.convert("RGB").resize((side, side), Image.BOX))
    return time.monotonic_ns(), batch


def measure(Pool, amounts, report):
    with open(amounts["pictures"]) as file:
        paths = file.read().splitlines()
    side, size = amounts["picture_side"], amounts["picture_batch"]
    batches = [(side, paths[begin : begin + size]) for begin in range(0, len(paths), size)]
    pool = Pool(amounts["workers"])
    pool.map(load, batches[: amounts["workers"]])
    handed_over = []
    images = 0
    begin = time.perf_counter()
    for sent, batch in pool.pool.imap_unordered(load, batches):
        batch[0, 0, 0, 0], batch[-1, -1, -1, -1]
        handed_over.append((time.monotonic_ns() - sent) / 1e9)
        images += len(batch)
    seconds = time.perf_counter() - begin
    if images != len(paths):
        raise RuntimeError(f"{images} of {len(paths)} pictures were loaded")
    report.figures["images_per_second"] = images / seconds
    report.figures["hand_over_p50_seconds"] = median(handed_over)
    pool.stop()
