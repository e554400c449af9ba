"""peer.py [cluster] PORT; see checks.py."""

import sys

import redis
from redis.exceptions import LockError, RedisError

connect = redis.RedisCluster if sys.argv[1] == "cluster" else redis.Redis
client = connect(host="127.0.0.1", port=int(sys.argv[-1]))
locks = {}


def lock(name, wait, lease):
    locks[name] = client.lock(name, timeout=lease / 1000, sleep=0.01)
    taken = locks[name].acquire(blocking=wait > 0,
                                blocking_timeout=wait / 1000)
    return "ok" if taken else "busy"


def unlock(name):
    locks[name].release()
    return "ok"


def extend(name, lease):
    locks[name].extend(lease / 1000, replace_ttl=True)
    return "ok"


def force(name):
    return "ok" if client.delete(name) else "free"


def ttl(name):
    return client.pttl(name)


def count(name, n):
    for _ in range(n):
        if lock(name, 60000, 30000) == "busy":
            return "busy"
        with open(name) as counter:
            number = int(counter.read())
        with open(name, "w") as counter:
            counter.write(str(number + 1))
        unlock(name)
    return "ok"


commands = {f.__name__: f for f in (lock, unlock, extend, force, ttl, count)}
for line in sys.stdin:
    command, name, *numbers = line.split()
    try:
        answer = commands[command](name, *map(int, numbers))
    except LockError:
        answer = "lost"
    except RedisError as e:
        answer = f"error {e}"
    print(answer, flush=True)
