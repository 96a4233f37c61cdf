"""Measures peers of the timer server: `timer.py pebble|billiard PROCESSES`, `timer.py requests ROUNDS`."""

import os
import random
import select
import sys
import time

# The hanging task writes its process id and its start time here.
READ, WRITE = os.pipe()


def hang():
    os.write(WRITE, f"{os.getpid()} {time.monotonic_ns()}\n".encode())
    while True:
        time.sleep(1)


def until_dead():
    """Waits until the hanging process has died, and returns its start and end times."""
    pid, began = os.read(READ, 100).split()
    poll = select.poll()
    poll.register(os.pidfd_open(int(pid)), select.POLLIN)
    poll.poll()
    return int(began), time.monotonic_ns()


def limits(count):
    generator = random.Random(1)
    return [generator.uniform(0.1, 0.5) for _ in range(count)]


def pebble(count):
    from pebble import ProcessPool

    times = []
    with ProcessPool(max_workers=1) as pool:
        for limit in limits(count):
            future = pool.schedule(hang, timeout=limit)
            began, ended = until_dead()
            times.append(ended - began - limit * 1e9)
            future.exception()
    return times


def billiard(count):
    from billiard.pool import Pool

    times = []
    pool = Pool(1, enable_timeouts=True)
    for limit in limits(count):
        pool.apply_async(hang, timeout=limit)
        began, ended = until_dead()
        times.append(ended - began - limit * 1e9)
    pool.terminate()
    return times


def print_times(name, times):
    times.sort()
    rank = lambda percent: times[max(-(-len(times) * percent // 100), 1) - 1] / 1e6
    print(f"{name:44} n {len(times):6}  p50 {rank(50):8.1f}ms  p99 {rank(99):8.1f}ms  max {rank(100):8.1f}ms")


def serve(queue, rounds, done):
    """A server that only receives, as torch's elastic timer server does before it handles the requests."""
    for _ in range(2 * rounds):
        queue.get()
    done.put(None)


def requests(rounds):
    import multiprocessing

    context = multiprocessing.get_context("fork")
    queue, done = context.Queue(), context.Queue()
    server = context.Process(target=serve, args=(queue, rounds, done))
    server.start()
    start = time.perf_counter()
    for number in range(rounds):
        queue.put((os.getpid(), f"scope {number}", time.time() + 3600))
        queue.put((os.getpid(), f"scope {number}", -1))
    sent = time.perf_counter() - start
    done.get()
    served = time.perf_counter() - start
    name = "two requests over multiprocessing.Queue"
    each = 1e6 / rounds
    print(f"{name:44} a round: {sent * each:.2f} µs to send, {served * each:.2f} µs until served")
    server.join()


def main():
    name, count = sys.argv[1], int(sys.argv[2])
    if name == "requests":
        requests(count)
    else:
        peer = {"pebble": pebble, "billiard": billiard}[name]
        print_times(f"{name}: deadline to dead", peer(count))


if __name__ == "__main__":
    main()
