"""A process that asks in one way: takes questions as lines of JSON, answers with what each cost and a digest of what it found.

    worker.py WAY FOLDER

A question: {"ask": "count", "terms": [["x", ">", 0.99]]}. Seconds are of the asking alone: `cpu` of all threads of the process.
"""

import json
import os
import resource
import sys
import time

import numpy as np
from data import digest
from ways import open_way


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def answer(way, question):
    terms = [tuple(term) for term in question["terms"]]
    prepare = getattr(way, "prepare", None)
    if prepare:
        prepare(terms)
    ask = getattr(way, question["ask"])
    cpu, begin = cpu_seconds(), time.perf_counter()
    found = ask(terms)
    out = {"wall": time.perf_counter() - begin, "cpu": cpu_seconds() - cpu}
    if found is not None:
        out["digest"] = [int(found), 0] if question["ask"] == "count" else digest(plain(found))
    return out


def plain(found):
    """DuckDB's strings are objects."""
    found = np.asarray(found)
    return np.array(found.tolist(), "S16") if found.dtype == object else found


def main():
    # Whatever a library prints must not be taken for an answer.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    way = open_way(*sys.argv[1:])
    for line in sys.stdin:
        print(json.dumps(answer(way, json.loads(line))), file=out, flush=True)


if __name__ == "__main__":
    main()
