"""The task functions, the same for all pools, in a module that workers can import however they are started."""

import hashlib
import os
import socket
import time

READY = b""


def noop(_):
    return None


def busy(micros):
    end = time.perf_counter_ns() + 1000 * micros
    while time.perf_counter_ns() < end:
        pass


def length(payload):
    return len(payload)


def prepare(size):
    global READY
    READY = b"\1" * size


def hand_over(_):
    return READY


def pid(_):
    return os.getpid()


def meet(address):
    """Waits until the host has seen the expected number of tasks begin."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(20)
        connection.connect(address)
        connection.send(str(os.getpid()).encode())
        connection.recv(1)
    return os.getpid()


def hang(address):
    """Reports that it has begun, and hangs."""
    meet(address)
    time.sleep(600)


def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).digest()
