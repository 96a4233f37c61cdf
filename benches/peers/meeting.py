"""A socket at which the host waits until a number of tasks have begun."""

import os
import socket
import tempfile
import threading


class Meeting:
    def __init__(self, count):
        self.folder = tempfile.TemporaryDirectory(prefix="brigade-bench-")
        self.address = os.path.join(self.folder.name, "meeting")
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(self.address)
        self.server.listen(count)
        self.server.settimeout(20)
        self.pids = []
        self.thread = threading.Thread(target=self._serve, args=(count,), daemon=True)
        self.thread.start()

    def _serve(self, count):
        try:
            guests = [self.server.accept()[0] for _ in range(count)]
            self.pids = [int(guest.recv(20)) for guest in guests]
        except OSError:
            return
        for guest in guests:
            guest.send(b"x")
            guest.close()

    def wait(self):
        """Waits for the tasks, and returns the pids of their workers."""
        self.thread.join(20)
        if not self.pids:
            raise TimeoutError("the tasks did not begin")
        return self.pids

    def close(self):
        self.server.close()
        self.folder.cleanup()
