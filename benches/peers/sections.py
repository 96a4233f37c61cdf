"""The measurements of each section, with the same figures and loads as Brigade's own in ../src/ours."""

import hashlib
import os
import signal
import statistics
import time
from concurrent.futures import ThreadPoolExecutor

import tasks
from meeting import Meeting
from statistic import median, percentile


def throughput(Pool, load, report):
    pool = Pool(load["workers"])
    pool.map(tasks.noop, range(100))
    most = load["most_submitted"]
    report.attempt("each_per_second", lambda: rate(load, most, lambda n: pool.each(tasks.noop, [None] * n)))
    report.attempt("map_per_second", lambda: rate(load, 4 * most, lambda n: pool.map(tasks.noop, range(n))))
    pool.stop()


def rate(load, most, run, pilot=2000, lap="throughput_seconds"):
    seconds = timed(lambda: run(pilot))
    count = max(pilot, min(most, int(pilot * load[lap] / seconds)))
    return count / statistics.median(timed(lambda: run(count)) for _ in range(load["laps"]))


def grain(Pool, load, report):
    pool = Pool(load["workers"])
    pool.map(tasks.noop, range(100))
    for micros in load["grain_micros"]:
        ways = {
            "each": lambda count: pool.each(tasks.busy, [micros] * count),
            "map": lambda count: pool.map(tasks.busy, [micros] * count),
        }
        for way, run in ways.items():
            report.attempt(f"{way}_{micros}_us_percent", lambda: share(load, micros, run))
    pool.stop()


def share(load, micros, run):
    """Returns the ideal time of the tasks as a percentage of the measured time."""
    pilot = min(2000, max(20, 20_000 // micros * load["workers"]))
    return 100 * rate(load, load["most_submitted"], run, pilot, "grain_seconds") * micros * 1e-6 / load["workers"]


def callers(Pool, load, report):
    pool = Pool(load["workers"])
    pool.map(tasks.noop, range(100))
    for count in load["callers"]:
        laps = [closed_loops(pool, count, load["caller_seconds"]) for _ in range(load["laps"])]
        for name, values in zip(("per_second", "p50_seconds", "p99_seconds", "p999_seconds"), zip(*laps)):
            report.median(f"callers_{count}_{name}", values)
    pool.stop()


def closed_loops(pool, count, seconds):
    """Returns calls per second, and three percentiles of the time of a call."""
    begin = time.perf_counter()

    def caller(_):
        times = []
        start = time.perf_counter()
        while True:
            pool.submit(tasks.noop, None).result()
            done = time.perf_counter()
            times.append(done - start)
            if done >= begin + seconds:
                return times
            start = done

    with ThreadPoolExecutor(count) as threads:
        times = sorted(time for lap in threads.map(caller, range(count)) for time in lap)
    rate = len(times) / (time.perf_counter() - begin)
    return rate, percentile(times, 50), percentile(times, 99), percentile(times, 99.9)


def latency(Pool, load, report):
    pool = Pool(1)
    trip = lambda: pool.submit(tasks.noop, None).result()
    if Pool.__name__ == "Joblib":
        trip = lambda: pool.each(tasks.noop, [None])
    trips(trip, load, report, "round_trip")
    pool.stop()


def trips(trip, load, report, name):
    begin = time.perf_counter()
    for _ in range(1000):
        trip()
        if time.perf_counter() - begin > load["trip_seconds"] / 4:
            break
    times = []
    begin = time.perf_counter()
    while len(times) < load["trips"] and time.perf_counter() - begin < load["trip_seconds"]:
        times.append(timed(trip))
    times.sort()
    report.figures[f"{name}_p50_seconds"] = percentile(times, 50)
    report.figures[f"{name}_p99_seconds"] = percentile(times, 99)


def payload(Pool, load, report):
    pool = Pool(1)
    size = load["peer_payload"]
    times = {"in": [], "out": []}
    for repetition in range(1 + min(10, max(4, load["payload_budget"] // size))):
        argument = b"\1" * size
        inwards = timed(lambda: pool.submit(tasks.length, argument).result())
        # Prepare the value in every worker; some pools have more than one.
        pool.each(tasks.prepare, [size] * pool.workers)
        outwards = timed(lambda: pool.submit(tasks.hand_over, None).result())
        if repetition > 0:
            times["in"].append(inwards)
            times["out"].append(outwards)
    for way, values in times.items():
        report.figures[f"{way}_{size}_seconds"] = median(values)
    pool.stop()


def start(Pool, load, report):
    for workers in (2, 16):
        times = []
        for _ in range(max(2, load["starts"] // 3)):
            meeting = Meeting(workers)
            begin = time.perf_counter()
            pool = Pool(workers)
            pids = pool.each(tasks.meet, [meeting.address] * workers)
            times.append(time.perf_counter() - begin)
            pool.stop()
            meeting.close()
            if len(set(pids)) != workers:
                raise RuntimeError(f"only {len(set(pids))} of {workers} workers ran a task")
        report.figures[f"first_results_{workers}_seconds"] = median(times)


def crash(Pool, load, report):
    """Both times are counted from just before the kill, as Brigade's are."""
    pool = Pool(1)
    learned, recovered = [], []
    learns = True
    try:
        for _ in range(min(10, load["crashes"])):
            pool.submit(tasks.pid, None).result(TIMEOUT)
            victim, begin = kill_one(pool)
            if learns:
                seconds = until_error(victim, begin)
                if seconds is None:
                    # Do not time the replacement after a wait that timed out, only after later kills.
                    learns = False
                    report.missing["learned_p50_seconds"] = f"the caller does not learn of it within {TIMEOUT} s"
                    continue
                learned.append(seconds)
            pool.submit(tasks.pid, None).result(TIMEOUT)
            recovered.append(time.perf_counter() - begin)
    except Exception as error:
        report.missing["recovered_p50_seconds"] = f"does not survive ({type(error).__name__})"
        recovered.clear()
    report.median("learned_p50_seconds", learned)
    report.median("recovered_p50_seconds", recovered)
    pool.stop()


TIMEOUT = 3


def kill_one(pool):
    meeting = Meeting(1)
    victim = pool.submit(tasks.hang, meeting.address)
    (pid,) = meeting.wait()
    meeting.close()
    begin = time.perf_counter()
    os.kill(pid, signal.SIGKILL)
    return victim, begin


def until_error(victim, begin):
    try:
        victim.result(TIMEOUT)
    except Exception:
        seconds = time.perf_counter() - begin
        return seconds if seconds < TIMEOUT else None
    raise RuntimeError("a killed task returned a value")


def fresh(Pool, load, report):
    """A process for each task."""
    pool = Pool(load["workers"], is_fresh=True)
    pool.each(tasks.noop, [None] * 20)
    most = load["fresh_tasks"]
    each = lambda: rate(load, most, lambda n: pool.each(tasks.noop, [None] * n), 20)
    report.attempt("tasks_per_second", each)
    times, begin = [], time.perf_counter()
    while not times or len(times) < most // 4 and time.perf_counter() - begin < load["trip_seconds"]:
        times.append(timed(lambda: pool.submit(tasks.noop, None).result()))
    report.median("one_p50_seconds", times)
    pool.stop()


def work(Pool, load, report):
    with open(load["list"]) as file:
        paths = file.read().splitlines()
    pool = Pool(load["workers"])
    pool.map(tasks.noop, range(100))
    begin = time.perf_counter()
    digests = pool.map(tasks.digest, paths)
    report.figures["files_seconds"] = time.perf_counter() - begin
    report.checksum = hashlib.sha256(b"".join(digests)).hexdigest()
    pool.stop()


def handover(Pool, load, report):
    import handover  # needs numpy

    handover.measure(Pool, load, report)


def loader(Pool, load, report):
    import pictures  # needs numpy and Pillow

    pictures.measure(Pool, load, report)


def timed(call):
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def cluster(Queue, load, report):
    """The names say `r1` because each of these queues keeps a message once."""
    queue = Queue(load["workers"])
    queue.each(tasks.noop, [None] * 100)
    each = lambda: rate(load, 50_000, lambda n: queue.each(tasks.noop, [None] * n), 500)
    report.attempt("r1_each_per_second", each)
    report.attempt("r1_map_per_second", lambda: rate(load, 50_000, lambda n: queue.map(tasks.noop, range(n)), 500))
    trips(lambda: queue.submit(tasks.noop, None).result(), load, report, "r1_round_trip")
    queue.stop()


SECTIONS = {
    "cluster": cluster,
    "throughput": throughput,
    "latency": latency,
    "grain": grain,
    "callers": callers,
    "payload": payload,
    "start": start,
    "crash": crash,
    "fresh": fresh,
    "work": work,
    "handover": handover,
    "loader": loader,
}
