"""Medians and percentiles."""


def median(values):
    return percentile(sorted(values), 50)


def percentile(ordered, percent):
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]
