"""redis-py with maintenance notifications, while its endpoint moves. Arguments: the injector's URL, host:port.

Retries are off: what fails, fails for its caller, and nothing may.
"""

import json
import re
import sys
import threading
import time
import urllib.request

import redis
from redis.backoff import NoBackoff
from redis.maint_notifications import MaintNotificationsConfig
from redis.retry import Retry

URL, ADDRESS = sys.argv[1], sys.argv[2]
HOST, PORT = ADDRESS.rsplit(":", 1)
THREADS = 10


def request(method, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    call = urllib.request.Request(URL + path, method=method, data=data)
    with urllib.request.urlopen(call) as answer:
        return json.load(answer)


def run(kind, parameters):
    action = request("POST", "/action", {"type": kind, "parameters": parameters})["action_id"]
    while True:
        shown = request("GET", "/action/" + action)
        if shown["status"] not in ("pending", "running"):
            assert shown["status"] == "success", shown
            return shown["output"]
        time.sleep(0.05)


client = redis.Redis(
    host=HOST,
    port=int(PORT),
    protocol=3,
    retry=Retry(NoBackoff(), 0),
    maint_notifications_config=MaintNotificationsConfig(enabled=True),
)

stop = threading.Event()
errors, counts, peers = [], [0] * THREADS, set()


def work(number):
    key = f"count:{number}"
    while not stop.is_set():
        try:
            got = client.incr(key)
        except Exception as error:
            errors.append(repr(error))
            continue
        counts[number] += 1
        if got != counts[number]:
            errors.append(f"{key}: {got} after {counts[number]}")


def connections():
    """Where the server's clients have connected to, by its own account."""
    with redis.Redis(host=HOST, port=int(PORT), protocol=3, maint_notifications_config=None) as watcher:
        lines = watcher.client_list()
    return {line["laddr"] for line in lines if line.get("cmd") == "incrby"}


threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
for thread in threads:
    thread.start()
try:
    run("migrate", {"bdb_id": 1})
    before = dict(enumerate(counts))
    output = run("bind", {"bdb_id": 1})["output"]
    moved = connections()
    # And once more, from the address that it has gone back to.
    again = run("topology_change_standalone", {"bdb_id": 1, "effect": "data_movement_conn_drop"})["output"]
finally:
    stop.set()
    for thread in threads:
        thread.join()

print(output, again, counts, moved, sep="\n")
assert not errors, errors[:5]
assert all(count > 0 for count in counts), counts
assert all(counts[number] > before[number] for number in before)
for text in (output, again):
    # Each connection was told, and left by itself before it would have been closed.
    assert re.search(r"of ([1-9]\d*) connections \1 were told, \1 left and 0 were closed", text), text
assert moved == {"127.0.0.3:" + PORT}, moved
for number, count in enumerate(counts):
    assert int(client.get(f"count:{number}")) == count
