"""Adapters for task queues that run on many machines, here all on one, with as many workers as a pool has."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from importlib import import_module, metadata

import tasks
from pools import Got, Pool


class Celery(Pool):
    """Celery with Redis as broker and for the results, with its default settings."""

    module = "celery"

    def start(self):
        if not shutil.which("redis-server"):
            raise ImportError("no redis-server: install the Debian package redis-server")
        self.folder = tempfile.TemporaryDirectory()
        port = free_port()
        quiet = {"cwd": self.folder.name, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        server = ["redis-server", "--port", str(port), "--bind", "127.0.0.1"]
        self.processes = [subprocess.Popen(server, **quiet)]
        os.environ["BRIGADE_BENCH_BROKER"] = f"redis://127.0.0.1:{port}/0"
        wait_for(port)
        here = os.path.dirname(os.path.abspath(__file__))
        worker = [sys.executable, "-m", "celery", "-A", "celery_tasks", "worker", "-c", str(self.workers), "-l", "ERROR"]
        environment = {**os.environ, "PYTHONPATH": here, "C_FORCE_ROOT": "1"}
        self.processes.append(subprocess.Popen(worker, env=environment, **quiet))
        application = import_module("celery_tasks")
        self.noop = application.noop
        self.noop.delay(None).get(timeout=60)
        return application

    def submit(self, function, argument):
        assert function is tasks.noop
        return Got(self.noop.delay(argument))

    def map(self, function, items):
        assert function is tasks.noop
        return import_module("celery").group(self.noop.s(item) for item in items)().get()

    def stop(self):
        for process in reversed(self.processes):
            process.terminate()
            process.wait(20)
        self.folder.cleanup()


class Dask(Pool):
    module = "distributed"

    def start(self):
        distributed = import_module(self.module)
        self.cluster = distributed.LocalCluster(n_workers=self.workers, threads_per_worker=1, dashboard_address=None)
        return distributed.Client(self.cluster)

    def submit(self, function, argument):
        return self.pool.submit(function, argument, pure=False)

    def map(self, function, items):
        return self.pool.gather(self.pool.map(function, list(items), pure=False))

    def stop(self):
        self.pool.close()
        self.cluster.close()


class Ray(Pool):
    module = "ray"

    def start(self):
        ray = import_module(self.module)
        ray.init(num_cpus=self.workers, include_dashboard=False, log_to_driver=False)
        self.noop = ray.remote(num_cpus=1)(tasks.noop)
        return ray

    def submit(self, function, argument):
        assert function is tasks.noop
        return Reference(self.pool, self.noop.remote(argument))

    def each(self, function, arguments):
        assert function is tasks.noop
        return self.pool.get([self.noop.remote(argument) for argument in arguments])

    def map(self, function, items):
        return self.each(function, items)

    def stop(self):
        self.pool.shutdown()


class Reference:
    def __init__(self, ray, reference):
        self.ray, self.reference = ray, reference

    def result(self, timeout=None):
        return self.ray.get(self.reference, timeout=timeout)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(port, seconds=20):
    end = time.monotonic() + seconds
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


QUEUES = {"celery": Celery, "dask": Dask, "ray": Ray}
