"""redis-py 7 or later: a planned move under load, without an error. Argument: port.

The successor has the same port on another address, because redis-py takes the host of a MOVING only. Retries are off, so that an
error is seen; the clients use one shared pool, as services do.
"""

import sys
import threading
import time

import redis
from redis.backoff import NoBackoff
from redis.maint_notifications import EndpointType, MaintNotificationsConfig
from redis.retry import Retry

PORT = int(sys.argv[1])
OLD, NEW = "127.0.0.1", "127.0.0.2"
WORKERS, WINDOW_S = 8, 2


def client(host, **options):
    return redis.Redis(host=host, port=PORT, protocol=3, retry=Retry(NoBackoff(), 0), **options)


def on(host, operator):
    """How many connections the server has on this address of its own."""
    return sum(1 for c in operator.client_list() if c["laddr"] == f"{host}:{PORT}")


def main():
    config = MaintNotificationsConfig(enabled=True, endpoint_type=EndpointType.INTERNAL_IP)
    r = client(OLD, maint_notifications_config=config)
    operator = client(NEW)
    errors, done, stop = [], [0] * WORKERS, threading.Event()

    def work(index):
        while not stop.is_set():
            try:
                r.incr(f"n:{index}")
                done[index] += 1
            except Exception as error:  # each is a failure of the test, so one per worker is enough
                errors.append(repr(error))
                return

    workers = [threading.Thread(target=work, args=[index], daemon=True) for index in range(WORKERS)]
    for worker in workers:
        worker.start()
    while min(done) < 100 and not errors:
        time.sleep(0.01)
    assert not errors, errors[:3]
    before = sum(done)
    operator.execute_command("TOWLINE", "DRAIN", "WINDOW", WINDOW_S, "TO", f"{NEW}:{PORT}", "ON", f"{OLD}:{PORT}")
    started = time.monotonic()
    moved_after = None
    while time.monotonic() - started < WINDOW_S + 1.5:
        if moved_after is None and on(OLD, operator) == 0:
            moved_after = time.monotonic() - started
        time.sleep(0.05)
    stop.set()
    for worker in workers:
        worker.join()
    (drain,) = operator.execute_command("TOWLINE", "DRAIN", "STATUS")
    drain = {key.decode(): value for key, value in drain.items()}
    applied = [int(operator.get(f"n:{index}")) for index in range(WORKERS)]
    print(f"redis-py {redis.__version__}: {sum(done)} commands, {len(errors)} errors, moved after {moved_after} s, {drain}")
    assert not errors, errors[:3]
    assert applied == done, (applied, done)
    assert sum(done) > before
    assert moved_after is not None and moved_after < WINDOW_S
    assert drain["state"] == b"over" and drain["closed"] == 0 and drain["told"] == drain["left"] >= WORKERS


main()
