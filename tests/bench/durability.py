#!/usr/bin/env python3
"""What durability costs, beside the peers, in one interleaved run: snapshots under load, the log, and starting.

    cargo build --release
    eval "$(../shared/peers/install)"
    python3 tests/bench/durability.py                     # everything with a million keys: about ten minutes
    python3 tests/bench/durability.py --only log --rounds 5
    python3 tests/bench/durability.py --only snapshot --keys 10000000 --rounds 1

Servers come from REDIS70, REDIS82 and VALKEY91, Towline and the load generator from TOWLINE_BINARY (default
target/release/towline). Nothing is pinned: a snapshot has a thread, or a process, of its own, and so has the log. Each server
has a directory of its own under --dir, which should be on the disk that is meant. CPU time is the sum over the server's threads,
and over the processes that it forks, of /proc/PID/task/*/schedstat. Figures are medians over the rounds, with the lowest and the
highest.
"""

import argparse
import glob
import json
import os
import shutil
import socket
import statistics
import subprocess
import tempfile
import time

FIRST_PORT = 17710
VALUE_BYTES = 100
POLL_S = 0.002


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--workers", type=int, default=1, help="of Towline; the peers execute on one thread")
    parser.add_argument("--secs", type=float, default=6, help="seconds of load for each figure")
    parser.add_argument("--dir", default=None)
    parser.add_argument("--servers", default=None, help="comma-separated, of those below")
    parser.add_argument("--only", choices=["snapshot", "log", "start"])
    return parser.parse_args()


def binaries(options):
    found = {"towline": [os.environ.get("TOWLINE_BINARY", "target/release/towline"), "server"]}
    for name, variable in (("redis 7.0", "REDIS70"), ("redis 8.2", "REDIS82"), ("valkey 9.1", "VALKEY91")):
        if variable in os.environ:
            found[name] = [os.environ[variable]]
    if options.servers:
        found = {name: found[name] for name in options.servers.split(",")}
    missing = [command[0] for command in found.values() if not os.path.exists(command[0])]
    if missing:
        raise SystemExit(f"no such program: {', '.join(missing)} (build with cargo build --release, see --help)")
    return found


class Server:
    """One server process on a directory."""

    def __init__(self, name, command, port, directory, *flags):
        self.name, self.port = name, port
        command = [*command, "--port", str(port), "--bind", "127.0.0.1", "--dir", directory, *flags]
        environment = {key: value for key, value in os.environ.items() if not key.startswith("TOWLINE_")}
        self.log = open(os.path.join(directory, "log"), "ab")
        self.started = time.monotonic()
        self.process = subprocess.Popen(command, env=environment, stdout=self.log, stderr=self.log)
        self.connection = None

    def ready(self):
        """Waits until a command that needs the data is answered, and returns the seconds since the start."""
        while True:
            if self.process.poll() is not None:
                raise SystemExit(f"{self.name} ended: see {self.log.name}")
            try:
                self.connection = socket.create_connection(("127.0.0.1", self.port))
                if self.run("DBSIZE").startswith(b":"):
                    return time.monotonic() - self.started
                self.connection.close()
            except (ConnectionError, OSError):
                pass
            time.sleep(POLL_S)

    def run(self, *words):
        words = [str(word).encode() for word in words]
        self.connection.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words))
        reply = self.connection.recv(1 << 16)
        while not reply.endswith(b"\r\n"):
            reply += self.connection.recv(1 << 16)
        return reply

    def info(self, field):
        for line in self.run("INFO", "persistence").decode().splitlines():
            if line.startswith(field + ":"):
                return line.split(":", 1)[1]
        return ""

    def pids(self):
        """The server and the processes that it has forked."""
        children = []
        for path in glob.glob(f"/proc/{self.process.pid}/task/*/children"):
            try:
                with open(path) as file:
                    children += file.read().split()
            except OSError:
                pass
        return [str(self.process.pid), *children]

    def cpu_ns(self):
        total = 0
        for pid in self.pids():
            for path in glob.glob(f"/proc/{pid}/task/*/schedstat"):
                try:
                    with open(path) as file:
                        total += int(file.read().split()[0])
                except OSError:
                    pass
        return total

    def private_bytes(self):
        """Memory that is there because of this server: pages that a fork shares count once."""
        total = 0
        for pid in self.pids():
            try:
                with open(f"/proc/{pid}/smaps_rollup") as lines:
                    total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024
            except OSError:
                pass
        return total

    def stop(self):
        if self.connection:
            self.connection.close()
        self.process.kill()
        self.process.wait()
        self.log.close()


def bench(port, *flags):
    """Runs the load generator and returns what it reports."""
    binary = os.environ.get("TOWLINE_BINARY", "target/release/towline")
    command = [binary, "bench", "-p", str(port), "--json", *map(str, flags)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return json.loads(done.stdout.splitlines()[-1])


def start_bench(port, *flags):
    binary = os.environ.get("TOWLINE_BINARY", "target/release/towline")
    command = [binary, "bench", "-p", str(port), "--json", *map(str, flags)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def fill(server, options):
    bench(server.port, "-w", "set", "-r", options.keys, "-n", options.keys, "-d", VALUE_BYTES, "-P", 64, "--dist", "sequential")


def spread(values, form="{:.2f}"):
    values = sorted(values)
    low, middle, high = (form.format(value) for value in (values[0], statistics.median(values), values[-1]))
    return f"{middle} ({low}-{high})"


def rotated(names, number):
    return names[number % len(names):] + names[:number % len(names)]


def flags_of(name, options):
    return ["--workers", str(options.workers)] if name == "towline" else []


def snapshot(options, directory):
    """Latency without and with a snapshot, the snapshot's speed, and the memory that it takes."""
    commands, seen = binaries(options), {}
    for number in range(options.rounds):
        for index, name in enumerate(rotated(list(commands), number)):
            place = tempfile.mkdtemp(dir=directory)
            server = Server(name, commands[name], FIRST_PORT + index, place, "--save", "", *flags_of(name, options))
            try:
                server.ready()
                fill(server, options)
                seen.setdefault(name, []).append(snapshot_once(server, place, options))
            finally:
                server.stop()
                shutil.rmtree(place)
    print(f"\nSnapshot of {options.keys} keys with values of {VALUE_BYTES} B under full load (50 connections, SET and GET 1:1): "
          "ms, MB/s, MB above the data")
    for name, figures in seen.items():
        calm, busy = ([figure[key] for figure in figures] for key in ("calm", "busy"))
        ratio = [after["p99"] / before["p99"] for before, after in zip(calm, busy)]
        print(f"  {name:11} p99 {spread([one['p99'] for one in calm])} -> {spread([one['p99'] for one in busy])}, "
              f"x {spread(ratio)}; max {spread([one['max'] for one in calm])} -> {spread([one['max'] for one in busy])}; "
              f"{spread([one['mbs'] for one in figures], '{:.0f}')} MB/s; idle {spread([one['idle_mbs'] for one in figures], '{:.0f}')} MB/s; "
              f"{spread([one['grown'] / 1e6 for one in figures], '{:.0f}')} MB", flush=True)


def save(server):
    """Makes a snapshot and returns its seconds."""
    begun = time.monotonic()
    server.run("BGSAVE")
    while server.info("rdb_bgsave_in_progress") != "0":
        time.sleep(POLL_S)
    return time.monotonic() - begun


def snapshot_once(server, place, options):
    load = ["-w", "mixed:1:1", "-r", options.keys, "-d", VALUE_BYTES, "-c", 50, "-P", 1]
    file = os.path.join(place, "dump.rdb")
    idle_s = save(server)
    idle_mbs = os.path.getsize(file) / idle_s / 1e6
    calm = latency(bench(server.port, *load, "--secs", options.secs, "--warmup", 1))
    before = server.private_bytes()
    running = start_bench(server.port, *load, "--secs", options.secs, "--warmup", 1)
    seconds, grown = [], 0
    time.sleep(0.5)
    while running.poll() is None:
        begun = time.monotonic()
        server.run("BGSAVE")
        while server.info("rdb_bgsave_in_progress") != "0" and running.poll() is None:
            grown = max(grown, server.private_bytes() - before)
            time.sleep(POLL_S * 10)
        if running.poll() is None:
            seconds.append(time.monotonic() - begun)
    busy = latency(json.loads(running.stdout.read().splitlines()[-1]))
    mbs = os.path.getsize(file) / statistics.median(seconds) / 1e6 if seconds else float("nan")
    return {"calm": calm, "busy": busy, "mbs": mbs, "idle_mbs": idle_mbs, "grown": grown}


def latency(report):
    """p99 and the longest, in milliseconds."""
    return {"p99": report["p99_us"] / 1000, "max": report["max_us"] / 1000}


def log(options, directory):
    """CPU time of a write with and without a log, and writes a second when each waits for the disk."""
    commands, seen = binaries(options), {}
    modes = {
        "none": ["--appendonly", "no"],
        "everysec": ["--appendonly", "yes", "--appendfsync", "everysec"],
        "always": ["--appendonly", "yes", "--appendfsync", "always"],
    }
    for number in range(options.rounds):
        for index, name in enumerate(rotated(list(commands), number)):
            for mode in rotated(list(modes), number):
                place = tempfile.mkdtemp(dir=directory)
                flags = ["--save", "", "--auto-aof-rewrite-percentage", "0", *modes[mode], *flags_of(name, options)]
                server = Server(name, commands[name], FIRST_PORT + index, place, *flags)
                try:
                    server.ready()
                    seen.setdefault((name, mode), []).append(log_once(server, mode, options))
                finally:
                    server.stop()
                    shutil.rmtree(place)
    names = list(commands)
    print(f"\nCPU time of a SET ({VALUE_BYTES} B) at pipeline 16, us, all threads: without a log, with everysec, ratio")
    for name in names:
        none, everysec = ([figure["cpu_us"] for figure in seen[name, mode]] for mode in ("none", "everysec"))
        ratio = [after / before for before, after in zip(none, everysec)]
        print(f"  {name:11} {spread(none, '{:.3f}')} -> {spread(everysec, '{:.3f}')}, x {spread(ratio)}", flush=True)
    print("\nSET with appendfsync always, 50 connections, pipeline 1: thousands a second, p50 and p99 in ms")
    medians = {}
    for name in names:
        figures = seen[name, "always"]
        medians[name] = statistics.median(figure["rate"] for figure in figures)
        print(f"  {name:11} {spread([figure['rate'] / 1000 for figure in figures])} k/s, p50 "
              f"{spread([figure['p50'] for figure in figures])}, p99 {spread([figure['p99'] for figure in figures])}", flush=True)
    peers = [rate for name, rate in medians.items() if name != "towline"]
    if peers and "towline" in medians:
        print(f"  towline / best peer: {medians['towline'] / max(peers):.2f}")


def log_once(server, mode, options):
    if mode == "always":
        report = bench(server.port, "-w", "set", "-r", options.keys, "-d", VALUE_BYTES, "-c", 50, "--secs", options.secs, "--warmup", 1)
        return {"rate": report["ops_per_s"], "p50": report["p50_us"] / 1000, "p99": report["p99_us"] / 1000}
    load = ["-w", "set", "-r", options.keys, "-d", VALUE_BYTES, "-c", 50, "-P", 16, "-n"]
    bench(server.port, *load, 500_000)
    before, requests = server.cpu_ns(), 2_000_000
    bench(server.port, *load, requests)
    return {"cpu_us": (server.cpu_ns() - before) / 1000 / requests}


def start(options, directory):
    """Seconds from starting a process to the first answer that needs the data; each server loads its own snapshot."""
    commands, seen, places = binaries(options), {}, {}
    for index, name in enumerate(commands):
        places[name] = tempfile.mkdtemp(dir=directory)
        server = Server(name, commands[name], FIRST_PORT + index, places[name], "--save", "", *flags_of(name, options))
        try:
            server.ready()
            fill(server, options)
            save(server)
        finally:
            server.stop()
    for number in range(options.rounds):
        for index, name in enumerate(rotated(list(commands), number)):
            workers = ["--workers", "2"] if name == "towline" else []
            server = Server(name, commands[name], FIRST_PORT + index, places[name], "--save", "", *workers)
            try:
                seen.setdefault(name, []).append(server.ready())
                assert server.run("DBSIZE") == b":%d\r\n" % options.keys
            finally:
                server.stop()
    print(f"\nStart from a snapshot of {options.keys} keys with values of {VALUE_BYTES} B: seconds until it answers")
    for name, figures in seen.items():
        print(f"  {name:11} {spread(figures)}", flush=True)
    peers = [statistics.median(figures) for name, figures in seen.items() if name != "towline"]
    if peers and "towline" in seen:
        print(f"  towline / best peer: {statistics.median(seen['towline']) / min(peers):.2f}")


def main():
    options = arguments()
    directory = tempfile.mkdtemp(prefix="durability-", dir=options.dir)
    try:
        for part in (snapshot, log, start):
            if options.only in (None, part.__name__):
                part(options, directory)
    finally:
        shutil.rmtree(directory)


if __name__ == "__main__":
    main()
