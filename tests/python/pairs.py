"""pairs.py URI BLOCK: the side of Python in bench/python.c.

For each byte on its standard input it locks and unlocks BLOCK times, and answers
by a line: the nanoseconds which that took. For "t" they are a task's.
"""
import asyncio
import os
import sys
import time

import rlock


def by_thread(lock, block):
    began = time.perf_counter_ns()
    for _ in range(block):
        with lock:
            pass
    return time.perf_counter_ns() - began


async def by_task(lock, block):
    began = time.perf_counter_ns()
    for _ in range(block):
        async with lock:
            pass
    return time.perf_counter_ns() - began


def main():
    uri, block = sys.argv[1], int(sys.argv[2])
    loop = asyncio.new_event_loop()
    with rlock.Client(uri) as client:
        lock = client.lock("bench:python")
        for asked in iter(lambda: os.read(0, 1), b""):
            if asked == b"t":
                took = loop.run_until_complete(by_task(lock, block))
            else:
                took = by_thread(lock, block)
            os.write(1, b"%d\n" % took)
    loop.close()


main()
