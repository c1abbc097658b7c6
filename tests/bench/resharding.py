#!/usr/bin/env python3
"""What moving slots costs, beside the peers, in one interleaved run.

    cargo build --release
    eval "$(../shared/peers/install)"
    python3 tests/bench/resharding.py                     # slots, big keys: about five minutes
    python3 tests/bench/resharding.py --only slots --rounds 5
    python3 tests/bench/resharding.py --only slots --modes classic --servers towline,"redis 7.0" --empty
    python3 tests/bench/resharding.py --only migrate      # MIGRATE of a large hash and of a large string
    python3 tests/bench/resharding.py --only getkeys      # GETKEYSINSLOT among ten million keys: two minutes more
    python3 tests/bench/resharding.py --only gate         # the slot gate: CPU time for each command, cluster mode against standalone

Servers come from REDIS70 and VALKEY91, redis-cli from REDIS_CLI, Towline from TOWLINE_BINARY (default target/release/towline). It
prints tables in Markdown: medians over the rounds, with the lowest and the highest. Nothing is pinned.

slots: three nodes without replicas and without a log of their own (Towline's log of owners is synced all the same), 200,000 keys of
100 B over all slots, and in the slots that move (0 to 5460) a hash of 100,000 fields and a string of 20 MiB. Classic is `redis-cli
--cluster reshard` with its default pipeline; atomic is CLUSTER MIGRATESLOTS, back to where they were. Meanwhile one process asks, on
connections of their own, each question 2 ms after the last answer: SET and GET of keys that move, MGET of two, HGET of the hash,
STRLEN of the string; and, to see what the machine itself does, GET of keys at the node that has no part in it. A stall is the longest
time from a question to its answer, redirections included.
"""

import argparse
import binascii
import json
import multiprocessing
import os
import selectors
import shutil
import socket
import statistics
import subprocess
import tempfile
import time

FIRST_PORT = 17810
VALUE = b"x" * 100
SLOTS_MOVED = 5461
HASH_FIELDS = 100_000
STRING_BYTES = 20 << 20
LARGE_STRING_BYTES = 64 << 20
THINK_S = 0.002
TICKS = os.sysconf("SC_CLK_TCK")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keys", type=int, default=200_000)
    parser.add_argument("--empty", action="store_true", help="no keys: what a slot costs by itself")
    parser.add_argument("--modes", default="classic,atomic")
    parser.add_argument("--servers", default=None, help="comma-separated, of towline, redis 7.0, valkey 9.1")
    parser.add_argument("--valkey-classic", action="store_true", help="Valkey by redis-cli as well: minutes more")
    parser.add_argument("--pipeline", default=None, help="of redis-cli; its own default is 10")
    parser.add_argument("--dir", default=None)
    parser.add_argument("--only", choices=["slots", "migrate", "getkeys", "gate"])
    return parser.parse_args()


def binaries(options):
    found = {"towline": [os.environ.get("TOWLINE_BINARY", "target/release/towline"), "server"]}
    for name, variable in (("redis 7.0", "REDIS70"), ("valkey 9.1", "VALKEY91")):
        if variable in os.environ:
            found[name] = [os.environ[variable]]
    if options.servers:
        found = {name: found[name] for name in options.servers.split(",")}
    missing = [command[0] for command in found.values() if not os.path.exists(command[0])]
    if missing:
        raise SystemExit(f"no such program: {', '.join(missing)} (build with cargo build --release, see --help)")
    return found


# ---- servers ---------------------------------------------------------------------------------------------------------


def encode(*words):
    words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


def parse(data, at=0):
    """One reply: (value, where it ends), or None if it is not whole. Errors are values of type Error."""
    end = data.find(b"\r\n", at)
    if end < 0:
        return None
    kind, line, at = data[at:at + 1], data[at + 1:end], end + 2
    if kind == b"+":
        return line, at
    if kind == b"-":
        return Error(line.decode()), at
    if kind == b":":
        return int(line), at
    count = int(line)
    if kind == b"$":
        if count < 0:
            return None if len(data) < at else (b"", at)
        return (bytes(data[at:at + count]), at + count + 2) if len(data) >= at + count + 2 else None
    values = []
    for _ in range(max(count, 0)):
        part = parse(data, at)
        if part is None:
            return None
        values.append(part[0])
        at = part[1]
    return values, at


class Error(str):
    """An error reply."""


class Server:
    """One server process in a directory of its own."""

    def __init__(self, name, command, port, directory, *flags):
        os.makedirs(directory)
        self.name, self.port = name, port
        command = [*command, "--port", str(port), "--bind", "127.0.0.1", "--dir", directory, "--save", "", "--appendonly", "no"]
        environment = {key: value for key, value in os.environ.items() if not key.startswith("TOWLINE_")}
        self.log = open(os.path.join(directory, "log"), "ab")
        self.process = subprocess.Popen([*command, *flags], env=environment, stdout=self.log, stderr=self.log)
        self.connection, self.buffer = None, bytearray()

    def ready(self):
        while True:
            if self.process.poll() is not None:
                raise SystemExit(f"{self.name} ended: see {self.log.name}")
            try:
                self.connection = socket.create_connection(("127.0.0.1", self.port))
                self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if self.run("PING") == b"PONG":
                    return self
            except OSError:
                time.sleep(0.01)

    def send(self, *words):
        self.connection.sendall(encode(*words))

    def answer(self):
        while True:
            reply = parse(self.buffer)
            if reply is not None:
                del self.buffer[:reply[1]]
                return reply[0]
            more = self.connection.recv(1 << 20)
            if not more:
                raise ConnectionError(f"{self.name} closed the connection")
            self.buffer += more

    def run(self, *words):
        self.send(*words)
        return self.answer()

    def checked(self, *words):
        reply = self.run(*words)
        if isinstance(reply, Error):
            raise SystemExit(f"{self.name}: {words[:3]}: {reply}")
        return reply

    def load(self, commands, together=1000):
        """Sends many commands and reads as many answers."""
        for first in range(0, len(commands), together):
            part = commands[first:first + together]
            self.connection.sendall(b"".join(part))
            for _ in part:
                reply = self.answer()
                if isinstance(reply, Error):
                    raise SystemExit(f"{self.name}: {reply}")

    def cpu_s(self):
        """User and system time, with that of processes that it forked and that have ended."""
        with open(f"/proc/{self.process.pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return sum(map(int, fields[11:15])) / TICKS

    def cpu_ns(self):
        path = f"/proc/{self.process.pid}/task"
        total = 0
        for task in os.listdir(path):
            with open(f"{path}/{task}/schedstat") as file:
                total += int(file.read().split()[0])
        return total

    def stop(self):
        if self.connection:
            self.connection.close()
        self.process.kill()
        self.process.wait()
        self.log.close()


def slot(key):
    tag = key[key.index(b"{") + 1:key.index(b"}")] if b"{" in key else key
    return binascii.crc_hqx(tag, 0) % 16384


class Cluster:
    """Three nodes with a third of the slots each."""

    def __init__(self, name, command, directory, first_port):
        self.name, self.nodes = name, []
        flags = ["--cluster-enabled", "yes", "--cluster-node-timeout", "15000"]
        if name != "towline":
            flags += ["--cluster-allow-replica-migration", "no"]
        for number in range(3):
            port = first_port + number
            self.nodes.append(Server(name, command, port, os.path.join(directory, str(number)), *flags))
        for node in self.nodes:
            node.ready()
        addresses = [f"127.0.0.1:{node.port}" for node in self.nodes]
        cli("--cluster", "create", *addresses, "--cluster-yes")
        while not all(b"cluster_state:ok" in node.run("CLUSTER", "INFO") for node in self.nodes):
            time.sleep(0.05)
        self.ids = [node.checked("CLUSTER", "MYID").decode() for node in self.nodes]

    def node_of(self, key):
        return self.nodes[0 if slot(key) <= 5460 else 1 if slot(key) <= 10922 else 2]

    def fill(self, keys):
        commands = {node: [] for node in self.nodes}
        for number in range(keys):
            key = b"key:%07d" % number
            commands[self.node_of(key)].append(encode(b"SET", key, VALUE))
        for node, of_node in commands.items():
            node.load(of_node)
        hash_key, string_key = big_keys()
        self.node_of(hash_key).load(fields_of(hash_key), 50)
        self.node_of(string_key).checked("SET", string_key, b"y" * STRING_BYTES)

    def count(self):
        return sum(node.checked("DBSIZE") for node in self.nodes)

    def stop(self):
        for node in self.nodes:
            node.stop()


def fields_of(key, count=HASH_FIELDS):
    fields = []
    for first in range(0, count, 500):
        words = [b"HSET", key]
        for number in range(first, first + 500):
            words += [b"field:%06d" % number, b"value:%013d" % number]
        fields.append(encode(*words))
    return fields


def named(prefix, lowest, highest, after=0):
    """The first key with this prefix whose slot is among these."""
    number = after
    while not lowest <= slot(prefix % number) <= highest:
        number += 1
    return prefix % number


def big_keys():
    return named(b"big-hash:%d", 0, 5460), named(b"big-string:%d", 0, 5460)


def cli(*words):
    done = subprocess.run([os.environ.get("REDIS_CLI", "redis-cli"), *words], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise SystemExit(f"redis-cli {' '.join(words)}:\n{done.stdout[-2000:]}")
    return done.stdout


# ---- who asks meanwhile ----------------------------------------------------------------------------------------------


class Lane:
    """One connection to each node, and one question at a time."""

    def __init__(self, name, ports, home, questions):
        self.name, self.home, self.questions = name, home, questions
        self.sockets = {}
        for port in ports:
            connection = socket.create_connection(("127.0.0.1", port))
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.sockets[port] = connection
        self.at, self.due, self.began = 0, 0.0, None
        self.skipped, self.buffer = 0, bytearray()
        self.latencies, self.seen = [], {"MOVED": 0, "ASK": 0, "TRYAGAIN": 0, "errors": 0, "wrong": 0}
        self.examples = []

    def ask(self, now, port=None, prefix=b""):
        if self.began is None:
            self.began = now
        self.port = port or self.home
        self.skipped = 1 if prefix else 0
        self.sockets[self.port].sendall(prefix + self.questions[self.at % len(self.questions)][0])

    def hear(self, now):
        self.buffer += self.sockets[self.port].recv(1 << 16)
        while True:
            reply = parse(self.buffer)
            if reply is None:
                return
            del self.buffer[:reply[1]]
            if self.skipped:
                self.skipped -= 1
                continue
            return self.judge(now, reply[0])

    def judge(self, now, reply):
        word = reply.split()[0] if isinstance(reply, Error) else None
        if word in ("MOVED", "ASK"):
            self.seen[word] += 1
            port = int(reply.rsplit(":", 1)[1])
            if word == "MOVED":
                # What this lane asks moves together, but for the moment of the move; it follows as clients do.
                self.home = port
            return self.ask(now, port, encode(b"ASKING") if word == "ASK" else b"")
        if word == "TRYAGAIN":
            self.seen[word] += 1
            return self.ask(now, self.port)
        if word is not None:
            self.seen["errors"] += 1
            self.examples.append(str(reply))
        elif reply != self.questions[self.at % len(self.questions)][1]:
            self.seen["wrong"] += 1
            self.examples.append(repr(reply)[:100])
        self.latencies.append(now - self.began)
        self.at, self.began, self.due = self.at + 1, None, now + THINK_S


def probe(lanes, ready, stop, results):
    """The process that asks."""
    lanes = [Lane(*lane) for lane in lanes]
    selector = selectors.DefaultSelector()
    for lane in lanes:
        for connection in lane.sockets.values():
            selector.register(connection, selectors.EVENT_READ, lane)
    ready.set()
    while not stop.is_set():
        now = time.monotonic()
        for lane in lanes:
            if lane.began is None and lane.due <= now:
                lane.ask(now)
        waits = [lane.due - now for lane in lanes if lane.began is None]
        for key, _ in selector.select(max(0.0, min(waits, default=THINK_S))):
            key.data.hear(time.monotonic())
    results.put({lane.name: {"longest_ms": 1000 * max(lane.latencies), "asked": len(lane.latencies), **lane.seen,
                             "examples": lane.examples[:3]} for lane in lanes})


class Probing:
    """Asks while its body runs; `seen` has what came of it."""

    def __init__(self, lanes):
        self.ready, self.ending, self.results = multiprocessing.Event(), multiprocessing.Event(), multiprocessing.Queue()
        self.process = multiprocessing.Process(target=probe, args=(lanes, self.ready, self.ending, self.results), daemon=True)
        self.seen = {}

    def __enter__(self):
        self.process.start()
        self.ready.wait()
        time.sleep(0.3)
        return self

    def __exit__(self, *_):
        time.sleep(0.3)
        self.ending.set()
        self.seen = self.results.get()
        self.process.join()


def lanes_of(cluster, source, keys):
    ports = [node.port for node in cluster.nodes]
    home = cluster.nodes[source].port
    hash_key, string_key = big_keys()
    moving = [key for key in (b"key:%07d" % number for number in range(min(keys, 6000))) if slot(key) <= 5460][:1000]
    other = [key for key in (b"key:%07d" % number for number in range(min(keys, 6000))) if slot(key) > 10922][:1000]
    moving, other = moving or [named(b"probe:%d", 0, 5460)], other or [named(b"probe:%d", 10923, 16383)]
    pair = [named(b"{pair:%d}", 0, 5460) + end for end in (b"a", b"b")]
    for key in [*moving, *other, *pair]:
        cluster.node_of_now(key).checked("SET", key, VALUE)
    both = [question for key in moving for question in ((encode(b"SET", key, VALUE), b"OK"), (encode(b"GET", key), VALUE))]
    lanes = [("SET, GET", ports, home, both), ("MGET", ports, home, [(encode(b"MGET", *pair), [VALUE, VALUE])]),
             ("other node", ports, cluster.nodes[2].port, [(encode(b"GET", key), VALUE) for key in other])]
    if keys:
        lanes.append(("HGET", ports, home, [(encode(b"HGET", hash_key, b"field:000007"), b"value:0000000000007")]))
        lanes.append(("STRLEN", ports, home, [(encode(b"STRLEN", string_key), STRING_BYTES)]))
    return lanes


# ---- slots -----------------------------------------------------------------------------------------------------------


def classic(cluster, source, target, options):
    pipeline = ["--cluster-pipeline", options.pipeline] if options.pipeline else []
    cli("--cluster", "reshard", f"127.0.0.1:{cluster.nodes[0].port}", "--cluster-from", cluster.ids[source], "--cluster-to",
        cluster.ids[target], "--cluster-slots", str(SLOTS_MOVED), "--cluster-yes", *pipeline)


def atomic(cluster, source, target, _options):
    node = cluster.nodes[source]
    node.checked("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", 0, SLOTS_MOVED - 1, "NODE", cluster.ids[target])
    while True:
        last = node.checked("CLUSTER", "GETSLOTMIGRATIONS")[0]
        state = dict(zip(last[::2], last[1::2]))[b"state"].decode()
        if state == "success":
            return
        if state in ("failed", "cancelled"):
            raise SystemExit(f"{cluster.name}: the migration {state}: {last}")
        time.sleep(0.002)


def move(cluster, mode, source, target, keys, options):
    before = [node.cpu_s() for node in cluster.nodes]
    moved, total = cluster.nodes[source].checked("DBSIZE"), cluster.count()
    with Probing(lanes_of(cluster, source, keys)) as probing:
        begun = time.monotonic()
        {"classic": classic, "atomic": atomic}[mode](cluster, source, target, options)
        seconds = time.monotonic() - begun
    while cluster.nodes[source].checked("DBSIZE"):
        time.sleep(0.01)  # what is freed afterwards
    if cluster.count() < total:
        raise SystemExit(f"{cluster.name}, {mode}: {total} keys before, {cluster.count()} after")
    cpu = [node.cpu_s() - was for node, was in zip(cluster.nodes, before)]
    seen = probing.seen
    figures = {"seconds": seconds, "us_per_key": 1e6 * seconds / max(moved, 1), "ms_per_slot": 1e3 * seconds / SLOTS_MOVED,
               "cpu": [cpu[source], cpu[target]]}
    figures["stalls"] = {name: lane["longest_ms"] for name, lane in seen.items()}
    for what in ("MOVED", "ASK", "TRYAGAIN", "errors", "wrong"):
        figures[what] = sum(lane[what] for lane in seen.values())
    for lane in seen.values():
        for example in lane["examples"]:
            print(f"<!-- {cluster.name}, {mode}: {example} -->")
    return figures


def slots(options):
    seen, keys = {}, 0 if options.empty else options.keys
    servers = list(binaries(options).items())
    for number in range(options.rounds):
        turn = servers[number % len(servers):] + servers[:number % len(servers)]
        for place, (name, command) in enumerate(turn):
            modes = modes_of(name, options)
            if not modes:
                continue
            directory = tempfile.mkdtemp(prefix="resharding-", dir=options.dir)
            cluster = Cluster(name, command, directory, FIRST_PORT + 10 * place)
            try:
                if keys:
                    cluster.fill(keys)
                source, target = 0, 1
                for mode in modes:
                    cluster.node_of_now = lambda key, at=source: cluster.nodes[at] if slot(key) <= 5460 else cluster.node_of(key)
                    figures = move(cluster, mode, source, target, keys, options)
                    seen.setdefault((mode, name), []).append(figures)
                    print(f"<!-- round {number + 1}, {name}, {mode}: {json.dumps(rounded(figures))} -->", flush=True)
                    source, target = target, source
            finally:
                cluster.stop()
                shutil.rmtree(directory, ignore_errors=True)
    for mode in options.modes.split(","):
        slots_table(mode, seen, options, keys)


def modes_of(name, options):
    can = {"towline": ("classic", "atomic"), "redis 7.0": ("classic",),
           "valkey 9.1": ("classic", "atomic") if options.valkey_classic else ("atomic",)}[name]
    return [mode for mode in options.modes.split(",") if mode in can]


def rounded(figures):
    if isinstance(figures, dict):
        return {key: rounded(value) for key, value in figures.items()}
    if isinstance(figures, list):
        return [rounded(value) for value in figures]
    return round(figures, 3) if isinstance(figures, float) else figures


def spread(figures, form="{:.1f}"):
    low, middle, high = (form.format(figure) for figure in (min(figures), statistics.median(figures), max(figures)))
    return f"{middle} ({low}-{high})"


def slots_table(mode, seen, options, keys):
    names = [name for other, name in seen if other == mode]
    if not names:
        return
    rounds = {name: seen[mode, name] for name in names}
    head = f"{SLOTS_MOVED} slots, {mode}" + ("" if keys else ", empty")
    print(f"\n| {head}, {options.rounds} rounds | {' | '.join(names)} |\n|---|{'--:|' * len(names)}")

    def row(title, of, form="{:.1f}"):
        print(f"| {title} | {' | '.join(spread([of(figures) for figures in rounds[name]], form) for name in names)} |")

    row("seconds", lambda f: f["seconds"], "{:.2f}")
    row("ms for a slot", lambda f: f["ms_per_slot"], "{:.2f}")
    if keys:
        row("us for a key", lambda f: f["us_per_key"])
    for lane in next(iter(rounds.values()))[0]["stalls"]:
        row(f"longest stall, {lane}, ms", lambda f, lane=lane: f["stalls"][lane])
    row("CPU of the source, s", lambda f: f["cpu"][0], "{:.2f}")
    row("CPU of the target, s", lambda f: f["cpu"][1], "{:.2f}")
    for what in ("MOVED", "ASK", "TRYAGAIN", "errors", "wrong"):
        print(f"| {what}, all rounds | {' | '.join(str(sum(f[what] for f in rounds[name])) for name in names)} |")


# ---- MIGRATE of large values -----------------------------------------------------------------------------------------


def migrate(options):
    seen = {}
    servers = list(binaries(options).items())
    for number in range(options.rounds):
        for name, command in servers[number % len(servers):] + servers[:number % len(servers)]:
            directory = tempfile.mkdtemp(prefix="resharding-", dir=options.dir)
            pair = [Server(name, command, FIRST_PORT + at, os.path.join(directory, str(at))) for at in range(2)]
            try:
                source, target = (server.ready() for server in pair)
                source.load(fields_of(b"hash"), 50)
                source.checked("SET", "string", b"y" * LARGE_STRING_BYTES)
                for server in pair:
                    server.checked("SET", "small", VALUE)
                for what in ("nothing", "hash", "string"):
                    lanes = [(side, [server.port], server.port, [(encode(b"GET", b"small"), VALUE)])
                             for side, server in (("source", source), ("target", target))]
                    with Probing(lanes) as probing:
                        begun = time.monotonic()
                        if what == "nothing":
                            time.sleep(0.5)
                        else:
                            source.checked("MIGRATE", "127.0.0.1", target.port, what, 0, 60000)
                        seconds = time.monotonic() - begun
                    stalls = {side: lane["longest_ms"] for side, lane in probing.seen.items()}
                    seen.setdefault((what, name), []).append({"ms": 1000 * seconds, **stalls})
            finally:
                for server in pair:
                    server.stop()
                shutil.rmtree(directory, ignore_errors=True)
    names = [name for name, _ in servers]
    titles = {"nothing": "nothing", "hash": "a hash of 100,000 fields", "string": "a string of 64 MiB"}
    print(f"\n| MIGRATE, {options.rounds} rounds | {' | '.join(names)} |\n|---|{'--:|' * len(names)}")
    for what, title in titles.items():
        for figure, text in (("ms", "takes, ms"), ("source", "longest GET at the source, ms"), ("target", "longest GET at the target, ms")):
            if (what, figure) != ("nothing", "ms"):
                cells = (spread([round_[figure] for round_ in seen[what, name]]) for name in names)
                print(f"| {title}: {text} | {' | '.join(cells)} |")


# ---- GETKEYSINSLOT, the gate -----------------------------------------------------------------------------------------


def lonely(name, command, directory, port, *flags):
    """A cluster of one node that has all slots."""
    server = Server(name, command, port, directory, "--cluster-enabled", "yes", *flags).ready()
    server.checked("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
    while b"cluster_state:ok" not in server.run("CLUSTER", "INFO"):
        time.sleep(0.05)
    return server


def getkeys(options, count=10_000_000):
    rows = {}
    for name, command in binaries(options).items():
        directory = tempfile.mkdtemp(prefix="resharding-", dir=options.dir)
        server = lonely(name, command, os.path.join(directory, "0"), FIRST_PORT)
        try:
            head = b"*3\r\n$3\r\nSET\r\n$%d\r\n"
            # Half of them in one slot: what counts is the answer, not what is there.
            for first in range(0, count, 10_000):
                tag = b"{t}key:%09d" if first % 20_000 else b"key:%012d"
                size = len(tag % first)
                server.connection.sendall(b"".join(
                    head % size + tag % number + b"\r\n$1\r\nv\r\n" for number in range(first, first + 10_000)))
                answered = 0
                while answered < 5 * 10_000:
                    answered += len(server.connection.recv(1 << 20))
            full, sparse = slot(b"{t}"), slot(b"key:%012d" % 0)
            for title, at in (("slot of five million keys", full), ("slot of 305", sparse)):
                times = []
                for _ in range(2000):
                    begun = time.monotonic()
                    assert len(server.checked("CLUSTER", "GETKEYSINSLOT", at, 10)) == 10
                    times.append(1e6 * (time.monotonic() - begun))
                times.sort()
                rows.setdefault(title, {})[name] = f"{times[1000]:.0f}, {times[1980]:.0f}, {times[-1]:.0f}"
        finally:
            server.stop()
            shutil.rmtree(directory, ignore_errors=True)
    names = list(binaries(options))
    print(f"\n| GETKEYSINSLOT of 10 among {count:,} keys, us: median, p99, longest of 2000 | {' | '.join(names)} |")
    print(f"|---|{'--:|' * len(names)}")
    for title, cells in rows.items():
        print(f"| {title} | {' | '.join(cells[name] for name in names)} |")


def gate(options, keys=100_000):
    command = binaries(options)["towline"]
    bench = [command[0], "bench", "--json", "-r", str(keys), "-d", "100", "-c", "50"]
    seen = {}
    directory = tempfile.mkdtemp(prefix="resharding-", dir=options.dir)
    flags = ["--workers", "1"]
    plain = Server("towline", command, FIRST_PORT, os.path.join(directory, "0"), *flags).ready()
    cluster = lonely("towline", command, os.path.join(directory, "1"), FIRST_PORT + 1, *flags)
    try:
        servers = {"standalone": plain, "cluster": cluster}
        for server in servers.values():
            server.load([encode("SET", f"key:{number:012}", VALUE) for number in range(keys)])
        for number in range(options.rounds):
            for pipeline in (1, 16):
                for operation in ("get", "set"):
                    for name in sorted(servers, reverse=bool(number % 2)):
                        server, before = servers[name], servers[name].cpu_ns()
                        requests = 200_000 * (1 if pipeline == 1 else 8)
                        subprocess.run([*bench, "-p", str(server.port), "-w", operation, "-n", str(requests), "-P", str(pipeline)],
                                       check=True, stdout=subprocess.DEVNULL)
                        cpu = (server.cpu_ns() - before) / requests / 1000
                        seen.setdefault((operation, pipeline, name), []).append(cpu)
    finally:
        plain.stop()
        cluster.stop()
        shutil.rmtree(directory, ignore_errors=True)
    print(f"\n| CPU for a command, us, {options.rounds} rounds | standalone | cluster mode | ratio |\n|---|--:|--:|--:|")
    for operation, pipeline in dict.fromkeys(key[:2] for key in seen):
        two = [seen[operation, pipeline, name] for name in ("standalone", "cluster")]
        ratio = statistics.median(two[1]) / statistics.median(two[0])
        print(f"| {operation.upper()}, pipeline {pipeline} | {' | '.join(spread(each, '{:.3f}') for each in two)} | {ratio:.3f} |")


def main():
    options = arguments()
    parts = {"slots": slots, "migrate": migrate, "getkeys": getkeys, "gate": gate}
    wanted = [options.only] if options.only else ["slots", "migrate"]
    with open("/proc/loadavg") as file:
        print(f"<!-- {os.cpu_count()} cores, load before: {file.read().strip()} -->", flush=True)
    for part in wanted:
        parts[part](options)


if __name__ == "__main__":
    main()
