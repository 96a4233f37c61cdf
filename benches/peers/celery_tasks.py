"""The application that the workers of Celery load."""

import os

from celery import Celery

import tasks

broker = os.environ["BRIGADE_BENCH_BROKER"]
app = Celery("bench", broker=broker, backend=broker)
noop = app.task(tasks.noop, name="noop")
