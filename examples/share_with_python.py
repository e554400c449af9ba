"""share_with_python.py PROGRAM URI: the other half of share_with_python.c.

Starts that program and takes turns with it, with the Lock of redis-py.
"""
import os
import subprocess
import sys
import time

import redis

TURNS = 3
NAME = "example:share_with_python"
KEY = f"{NAME}:{os.getpid()}"

program, uri = sys.argv[1:]
server = redis.Redis.from_url(uri, decode_responses=True)


def wait_for(what, n):
    end = time.monotonic() + 30
    while int(server.hget(KEY, what) or 0) < n:
        if time.monotonic() > end or other.poll() not in (None, 0):
            sys.exit(f"waited in vain for: {what}")
        time.sleep(0.02)


server.hset(KEY, "c-held", 0)
server.expire(KEY, 120)
other = subprocess.Popen([program, uri, KEY])
try:
    lock = server.lock(NAME, timeout=60)
    for turn in range(1, TURNS + 1):
        wait_for("c-held", turn)
        if lock.acquire(blocking=False):
            sys.exit("the C program's hold was not seen")
        print("Python  is refused, held by:", server.get(NAME), flush=True)
        server.hincrby(KEY, "python-refused")

        if not lock.acquire(blocking_timeout=30):
            sys.exit("the C program has not given the lock back")
        print("Python  has it:", server.get(NAME), flush=True)
        server.hincrby(KEY, "python-held")
        wait_for("c-refused", turn)
        lock.release()
    status = other.wait(timeout=30)
finally:
    other.kill()
    server.delete(KEY)
if status == 0:
    print(f"each has held the lock {TURNS} times, and was refused {TURNS} times")
sys.exit(status)
