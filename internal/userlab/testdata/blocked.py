"""Threads that wait in the ways of the standard library, and one that runs."""
import os
import select
import threading
import time

empty, _keep = os.pipe()
lock = threading.Lock()
lock.acquire()


def spin():
    while True:
        sum(range(100))


def deeper(depth, way):
    if depth:
        return [deeper(depth - 1, way)]  # not a tail call
    return sorted([1], key=lambda _: way())  # through C and back


ways = [
    lambda: lock.acquire(),
    lambda: time.sleep(1000000),
    lambda: os.read(empty, 1),
    lambda: select.select([empty], [], []),
    threading.Event().wait,
    spin,
]
for w in ways:
    threading.Thread(target=deeper, args=(6, w), daemon=True).start()
print("ready", flush=True)
os.read(empty, 1)
