"""Measures one section of one pool written in Python: `measure.py POOL SECTION LOAD`. Prints one JSON object."""

import ctypes
import json
import os
import signal
import sys
import threading

from pools import POOLS
from queues import QUEUES
from sections import SECTIONS
from statistic import median

PR_SET_PDEATHSIG = 1


class Report:
    def __init__(self, version):
        self.version = version
        self.figures = {}
        self.missing = {}
        self.checksum = None

    def attempt(self, name, measure):
        try:
            self.figures[name] = measure()
        except Exception as error:
            self.missing[name] = f"{type(error).__name__}: {error}"

    def median(self, name, values):
        if values:
            self.figures[name] = median(values)


def main():
    # Exit with the run, however it ends.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(os.environ["BRIGADE_BENCH_PARENT"]):
        return
    # Pools may write to standard output; only the report goes to the real one.
    stdout = os.dup(1)
    os.dup2(2, 1)
    pools = POOLS | QUEUES
    Pool, section, load = pools[sys.argv[1]], SECTIONS[sys.argv[2]], json.loads(sys.argv[3])
    report = Report("")
    # A pool that has lost a worker may hang while it shuts down; the report is complete by then.
    guard = threading.Timer(100, finish, (stdout, report))
    guard.daemon = True
    guard.start()
    try:
        report.version = Pool.version()
        section(Pool, load, report)
    except ImportError as error:
        report.missing["*"] = f"not installed ({error})"
    except Exception as error:
        report.missing["*"] = f"{type(error).__name__}: {error}"
    finish(stdout, report)


def finish(stdout, report):
    """Prints the report, kills all descendants and exits at once."""
    os.write(stdout, json.dumps(vars(report)).encode())
    for pid in descendants(os.getpid()):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    os._exit(0)


def descendants(ancestor):
    children = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as file:
                parent = int(file.read().rpartition(")")[2].split()[1])
        except OSError:
            continue
        children.setdefault(parent, []).append(int(name))
    found, new = [], [ancestor]
    while new:
        new = [child for parent in new for child in children.get(parent, [])]
        found += new
    return found


if __name__ == "__main__":
    main()
