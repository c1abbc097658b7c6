"""The load of `towline drill handoff` through redis-py: same commands, same account.

Reads its plan as JSON from the first argument and lines from standard input (`start NANOSECONDS`, `rename ADDRESS`);
writes one JSON object a line. It counts nothing by itself: what became of each command is reported, and judged by the
drill. redis-py's retries are off, its notifications as the plan says.
"""

import json
import random
import socket
import sys
import threading
import time

try:
    import redis
    from redis.backoff import NoBackoff
    from redis.maint_notifications import EndpointType, MaintNotificationsConfig
    from redis.retry import Retry
except ImportError as error:
    print(json.dumps({"kind": "missing", "why": str(error)}), flush=True)
    sys.exit(0)

PLAN = json.loads(sys.argv[1])
INCR_CYCLE = 8
LISTS = 4
BLOCK_SECONDS = [0, 0.25]
PUSH_EVERY = 0.002
CHANNELS = 4
PUBLISH_EVERY = 0.001
END_MAX = 6
OWED_MAX_US = 2_000_000

meaning = {PLAN["name"]: PLAN["ip"]}
real_getaddrinfo = socket.getaddrinfo


def getaddrinfo(host, *args, **kwargs):
    """Resolves the drill's name to what it means at the moment."""
    if isinstance(host, bytes):
        host = host.decode()
    return real_getaddrinfo(meaning.get(host, host), *args, **kwargs)


socket.getaddrinfo = getaddrinfo


def say(**fields):
    sys.stdout.write(json.dumps(fields, separators=(",", ":")) + "\n")
    sys.stdout.flush()


def client(maintenance=True, host=None, port=None):
    enabled = {"disabled": False, "auto": "auto", "required": True}[PLAN["maintenance"]]
    endpoint = PLAN["endpoint_type"]
    config = MaintNotificationsConfig(
        enabled=enabled if maintenance else False,
        endpoint_type=None if endpoint == "auto" else EndpointType(endpoint),
    )
    return redis.Redis(
        host=host or PLAN["host"],
        port=port or PLAN["port"],
        protocol=3,
        retry=Retry(NoBackoff(), 0),
        socket_timeout=5,
        maint_notifications_config=config,
    )


class Counts:
    def __init__(self):
        self.completed = 0
        self.failed = 0


counts = Counts()
start_ns = 0


def now_us():
    return (time.monotonic_ns() - start_ns) // 1000


def fate(error):
    """What an application can say of a command that failed with this: [fate, text].

    Even an error of connecting may belong to a command that has run: redis-py also connects after a reply.
    """
    text = "{}: {}".format(type(error).__name__, str(error)[:120])
    if isinstance(error, redis.exceptions.ResponseError):
        return ["refused", text]
    return ["unknown", text]


class Worker(threading.Thread):
    def __init__(self, number, client, connection):
        super().__init__(daemon=True)
        self.number = number
        self.client = client
        self.keys = {
            "I": "drill:{}:number".format(number),
            "H": "drill:shared:{}".format(connection),
            "L": "drill:{}:left".format(number),
            "R": "drill:{}:right".format(number),
            "A": "drill:{}:log".format(number),
            "S": "drill:{}:register".format(number),
        }
        self.random = random.Random(PLAN["seed"] * 1000003 + number)
        self.incrs = 0
        self.owed = None
        self.sets = 0
        self.appends = 0
        self.ops = []

    def choose(self):
        if self.owed:
            op, self.owed = self.owed, None
            return op
        op = self.random.choices("IASG", weights=PLAN["mix"])[0]
        if op != "I":
            return op
        self.incrs += 1
        if self.incrs % INCR_CYCLE == 1:
            return "H"
        if self.incrs % INCR_CYCLE == 3:
            self.owed = "R"
            return "L"
        return "I"

    def call(self, op):
        if op == "A":
            token = "{:08x}".format(self.appends)
            self.appends += 1
            return self.client.append(self.keys["A"], token)
        if op == "S":
            self.sets += 1
            return 0 if self.client.set(self.keys["S"], self.sets) else None
        if op == "G":
            value = self.client.get(self.keys["S"])
            return None if value is None else int(value)
        return self.client.incr(self.keys[op])

    def run(self):
        end_us = PLAN["run_us"]
        issued = 0
        while True:
            now = now_us()
            intended = now
            if PLAN["rate"]:
                intended = int((issued * PLAN["workers"] + self.number) * 1e6 / PLAN["rate"])
            if intended >= end_us or now >= end_us + OWED_MAX_US:
                return
            if intended > now:
                time.sleep((intended - now) / 1e6)
            issued += 1
            op = self.choose()
            try:
                outcome = self.call(op)
                counts.completed += 1
            except Exception as error:  # every failure is reported, whatever it is
                outcome = fate(error)
                counts.failed += 1
            self.ops.append([op, outcome, intended, now_us()])


def guarded(consumed, call):
    try:
        return call(), True
    except Exception as error:
        consumed["errors"].append(fate(error))
        time.sleep(0.002)
        return None, False


class Producer(threading.Thread):
    """Pushes or publishes numbers."""

    def __init__(self, client, name, every, is_list):
        super().__init__(daemon=True)
        self.client, self.name_, self.every, self.is_list = client, name, every, is_list
        self.produced = []

    def run(self):
        send = self.client.rpush if self.is_list else self.client.publish
        due = time.monotonic()
        while now_us() < PLAN["run_us"]:
            try:
                self.produced.append(send(self.name_, len(self.produced)))
            except Exception as error:
                self.produced.append(fate(error))
            due += self.every
            time.sleep(max(0, due - time.monotonic()))


class Consumer(threading.Thread):
    """Pops numbers, waiting for them."""

    def __init__(self, client, name, seconds):
        super().__init__(daemon=True)
        self.client, self.name_, self.seconds = client, name, seconds
        self.got = {"numbers": [], "errors": [], "gaps": 0}

    def run(self):
        while True:
            popped, is_answered = guarded(self.got, lambda: self.client.blpop(self.name_, self.seconds))
            if popped is None:
                if is_answered and self.seconds == 0:
                    self.got["errors"].append(["unknown", "BLPOP without a limit came back empty"])
                continue
            if popped[1] == b"end":
                return
            self.got["numbers"].append(int(popped[1]))


class Subscriber(threading.Thread):
    """Listens to numbers."""

    def __init__(self, client, name):
        super().__init__(daemon=True)
        self.pubsub = client.pubsub()
        self.pubsub.subscribe(name)
        self.pubsub.get_message(timeout=2)
        self.got = {"numbers": [], "errors": [], "gaps": 0}

    def run(self):
        while True:
            message, _ = guarded(self.got, lambda: self.pubsub.get_message(timeout=0.2))
            if message is None or message["type"] != "message":
                continue
            if message["data"] == b"end":
                return
            self.got["numbers"].append(int(message["data"]))


def listen_to_drill(started):
    global start_ns
    for line in sys.stdin:
        word, _, value = line.strip().partition(" ")
        if word == "start":
            start_ns = int(value)
            started.set()
        elif word == "rename":
            meaning[PLAN["name"]] = value


def finish(kind, names, producers, consumers, admin):
    for producer in producers:
        producer.join()
    deadline = time.monotonic() + END_MAX
    for name, of_name in zip(names, consumers):
        if kind == "list":
            admin.rpush(name, *["end"] * len(of_name))
    for name, of_name in zip(names, consumers):
        for consumer in of_name:
            while consumer.is_alive() and time.monotonic() < deadline:
                if kind == "channel":
                    admin.publish(name, "end")
                consumer.join(0.05)
            if consumer.is_alive():
                consumer.got["errors"].append(["unknown", "a consumer waits for ever"])
    for name, producer, of_name in zip(names, producers, consumers):
        left = [int(item) for item in admin.lrange(name, 0, -1) if item != b"end"] if kind == "list" else []
        say(
            kind=kind,
            produced=producer.produced,
            consumed=[consumer.got["numbers"] for consumer in of_name],
            errors=[error for consumer in of_name for error in consumer.got["errors"]],
            left=left,
        )


def main():
    clients = [client() for _ in range(PLAN["connections"])]
    admin = client(False, PLAN["admin_host"], PLAN["admin_port"])
    workers = []
    for number in range(PLAN["workers"]):
        connection = number % len(clients)
        workers.append(Worker(number, clients[connection], connection))
    # Each worker has a connection before the load begins.
    warm = [c.connection_pool.get_connection() for c in (w.client for w in workers)]
    for worker, connection in zip(workers, warm):
        worker.client.connection_pool.release(connection)
    names, producers, consumers, kind = [], [], [], None
    if PLAN["script"] == "blocked":
        kind = "list"
        for number in range(LISTS):
            c = clients[number % len(clients)]
            names.append("drill:list:{}".format(number))
            producers.append(Producer(c, names[-1], PUSH_EVERY, True))
            consumers.append([Consumer(c, names[-1], seconds) for seconds in BLOCK_SECONDS])
    elif PLAN["script"] == "pubsub":
        kind = "channel"
        for number in range(CHANNELS):
            c = clients[number % len(clients)]
            names.append("drill:channel:{}".format(number))
            producers.append(Producer(c, names[-1], PUBLISH_EVERY, False))
            consumers.append([Subscriber(c, names[-1])])
    started = threading.Event()
    threading.Thread(target=listen_to_drill, args=(started,), daemon=True).start()
    say(kind="ready", client="redis-py " + redis.__version__)
    started.wait()
    time.sleep(max(0, (start_ns - time.monotonic_ns()) / 1e9))
    for thread in workers + producers + [c for of_name in consumers for c in of_name]:
        thread.start()
    while any(worker.is_alive() for worker in workers):
        say(kind="progress", completed=counts.completed, failed=counts.failed)
        time.sleep(0.2)
    if kind:
        finish(kind, names, producers, consumers, admin)
    for worker in workers:
        say(kind="worker", number=worker.number, ops=worker.ops)
    say(kind="done")


main()
