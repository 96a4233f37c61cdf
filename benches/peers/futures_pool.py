"""concurrent.futures.ProcessPoolExecutor: no-op tasks submitted one by one, and one at a time. One JSON object on stdout."""

import json
import platform
import sys
import time
from concurrent.futures import ProcessPoolExecutor


def noop(_):
    return None


def main():
    tasks, round_trips, workers = (int(argument) for argument in sys.argv[1:4])
    with ProcessPoolExecutor(workers) as pool:
        list(pool.map(noop, range(100)))
        begin = time.perf_counter()
        futures = [pool.submit(noop, None) for _ in range(tasks)]
        for future in futures:
            future.result()
        throughput = tasks / (time.perf_counter() - begin)
        trips = []
        for _ in range(round_trips):
            begin = time.perf_counter()
            pool.submit(noop, None).result()
            trips.append(time.perf_counter() - begin)
    trips.sort()
    version = platform.python_version()
    print(json.dumps({"version": version, "tasks_per_second": throughput, "round_trip_seconds": trips[len(trips) // 2]}))


if __name__ == "__main__":
    main()
