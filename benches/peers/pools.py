"""One adapter for each pool. `submit` returns an object with `result(timeout)`, and `map` returns a list. Chunks are
automatic, or as in `multiprocessing.Pool.map`: a quarter of each worker's share."""

import platform
import threading
from importlib import import_module, metadata


def chunk(items, workers):
    return max(1, -(-len(items) // (4 * workers)))


class Pool:
    """A pool with the interface of concurrent.futures."""

    module = "concurrent.futures"
    fewest_workers = 1

    def __init__(self, workers, is_fresh=False):
        self.workers = max(workers, self.fewest_workers)
        self.pool = self.fresh() if is_fresh else self.start()

    def start(self):
        return import_module(self.module).ProcessPoolExecutor(self.workers)

    @classmethod
    def version(cls):
        import_module(cls.module)
        try:
            return metadata.version(cls.module)
        except metadata.PackageNotFoundError:
            return platform.python_version()

    def submit(self, function, argument):
        return self.pool.submit(function, argument)

    def each(self, function, arguments):
        tasks = [self.submit(function, argument) for argument in arguments]
        return [task.result() for task in tasks]

    def map(self, function, items):
        return list(self.pool.map(function, items, chunksize=chunk(items, self.workers)))

    def stop(self):
        self.pool.shutdown(cancel_futures=True)


class Got:
    """A result of multiprocessing with the method `result` instead of `get`."""

    def __init__(self, task):
        self.task = task

    def result(self, timeout=None):
        return self.task.get(timeout)


class Multiprocessing(Pool):
    module = "multiprocessing"

    def start(self):
        return import_module(self.module).Pool(self.workers)

    def submit(self, function, argument):
        return Got(self.pool.apply_async(function, (argument,)))

    def map(self, function, items):
        return self.pool.map(function, items)

    def stop(self):
        self.pool.terminate()
        self.pool.join()


    def fresh(self):
        return self.context().Pool(self.workers, maxtasksperchild=1)

    def context(self):
        return import_module(self.module).get_context("fork")


class Forkserver(Multiprocessing):
    def context(self):
        return import_module(self.module).get_context("forkserver")


class Billiard(Multiprocessing):
    module = "billiard"


class Loky(Pool):
    module = "loky"

    def stop(self):
        self.pool.shutdown(kill_workers=True)


class Pebble(Pool):
    module = "pebble"

    def start(self):
        return import_module(self.module).ProcessPool(max_workers=self.workers)

    def fresh(self):
        return import_module(self.module).ProcessPool(max_workers=self.workers, max_tasks=1)

    def submit(self, function, argument):
        return self.pool.schedule(function, args=[argument])

    def map(self, function, items):
        return list(self.pool.map(function, items, chunksize=chunk(items, self.workers)).result())

    def stop(self):
        self.pool.stop()
        self.pool.join(5)


class Mpire(Pool):
    module = "mpire"

    def start(self):
        # Without `keep_alive`, each map would start its own workers.
        return import_module(self.module).WorkerPool(self.workers, keep_alive=True)

    def submit(self, function, argument):
        return Got(self.pool.apply_async(function, args=(argument,)))

    def map(self, function, items):
        return self.pool.map(function, items)

    def stop(self):
        self.pool.terminate()


class Joblib(Pool):
    """joblib has only whole maps, no single tasks; with one worker it would run them in the host."""

    module = "joblib"
    fewest_workers = 2

    def start(self):
        joblib = import_module(self.module)
        self.delayed = joblib.delayed
        return joblib.Parallel(self.workers)

    def submit(self, function, argument):
        return Background(self.each, function, [argument])

    def each(self, function, arguments):
        calls = (self.delayed(function)(argument) for argument in arguments)
        parallel = import_module(self.module).Parallel(self.workers, batch_size=1, pre_dispatch="all")
        return parallel(calls)

    def map(self, function, items):
        return self.pool(self.delayed(function)(item) for item in items)

    def stop(self):
        from joblib.externals.loky import get_reusable_executor

        get_reusable_executor().shutdown(kill_workers=True)


class Background:
    """A map of one item on a thread, for a pool whose maps cannot be abandoned."""

    def __init__(self, each, function, arguments):
        self.outcome = TimeoutError("timed out")
        self.thread = threading.Thread(target=self._run, args=(each, function, arguments), daemon=True)
        self.thread.start()

    def _run(self, each, function, arguments):
        try:
            self.outcome = each(function, arguments)
        except BaseException as error:
            self.outcome = error

    def result(self, timeout=None):
        self.thread.join(timeout)
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome[0]


POOLS = {
    "concurrent.futures": Pool,
    "multiprocessing": Multiprocessing,
    "forkserver": Forkserver,
    "loky": Loky,
    "pebble": Pebble,
    "billiard": Billiard,
    "mpire": Mpire,
    "joblib": Joblib,
}
