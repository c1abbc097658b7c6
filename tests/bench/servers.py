#!/usr/bin/env python3
"""Towline against its peers: CPU time per command, throughput, memory per key, large values. One interleaved run.

    cargo build --release
    eval "$(../shared/peers/install)"
    python3 tests/bench/servers.py                  # everything, five rounds: about fifteen minutes
    python3 tests/bench/servers.py --rounds 3 --pipelines 16 --operations get --only speed

Servers come from REDIS82 and VALKEY91, the load generator from REDIS_BENCHMARK, Towline from TOWLINE_BINARY
(default target/release/towline). Every server runs pinned to core 0, the generator to core 1; with --workers 2 nothing is
pinned. CPU time is the sum over the server's threads of /proc/PID/task/*/schedstat. Figures are medians over the rounds.
"""

import argparse
import glob
import os
import socket
import statistics
import subprocess
import time

FIRST_PORT = 17610
KEYS = 1_000_000
REQUESTS = {1: 300_000, 16: 1_500_000, 100: 3_000_000}
CONNECTIONS = "50"
SETTLE_S = 4


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--pipelines", default="1,16,100")
    parser.add_argument("--operations", default="set,get")
    parser.add_argument("--value-bytes", type=int, default=100)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--only", choices=["speed", "memory", "large"])
    return parser.parse_args()


def servers(options):
    plain = ["--save", "", "--appendonly", "no", "--bind", "127.0.0.1"]
    towline = os.environ.get("TOWLINE_BINARY", "target/release/towline")
    commands = {"towline": [towline, "server", "--workers", str(options.workers), *plain]}
    for name, variable in (("redis 8.2", "REDIS82"), ("valkey 9.1", "VALKEY91")):
        if variable in os.environ:
            commands[name] = [os.environ[variable], *plain]
    missing = [command[0] for command in commands.values() if not os.path.exists(command[0])]
    if missing:
        raise SystemExit(f"no such program: {', '.join(missing)} (build with cargo build --release, see --help)")
    pin = ["taskset", "-c", "0"] if options.workers == 1 else []
    # TOWLINE_* variables are the server's configuration; the binary's path is not part of it.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TOWLINE_")}
    running = {}
    for number, (name, command) in enumerate(commands.items()):
        port = FIRST_PORT + number
        running[name] = (port, subprocess.Popen(
            pin + command + ["--port", str(port)],
            env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
    time.sleep(1)
    return running


def cpu_ns(pid):
    return sum(int(open(path).read().split()[0]) for path in glob.glob(f"/proc/{pid}/task/*/schedstat"))


def status_bytes(pid, field):
    with open(f"/proc/{pid}/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


def fill(port, count, value):
    with socket.create_connection(("127.0.0.1", port)) as connection:
        for base in range(0, count, 1000):
            connection.sendall(b"".join(
                b"*3\r\n$3\r\nSET\r\n$16\r\nkey:%012d\r\n$%d\r\n%s\r\n" % (key, len(value), value)
                for key in range(base, base + 1000)))
            answered = 0
            while answered < 5 * 1000:
                answered += len(connection.recv(65536))


def memory(running, options):
    value, count = b"x" * options.value_bytes, KEYS if options.value_bytes < 1000 else KEYS // 10
    print(f"\nRSS per key: {count} keys of 16 B, values of {len(value)} B, {SETTLE_S} s after the last one")
    for name, (port, process) in running.items():
        empty = status_bytes(process.pid, "VmRSS")
        fill(port, count, value)
        time.sleep(SETTLE_S)
        per_key = (status_bytes(process.pid, "VmRSS") - empty) / count
        print(f"  {name:11} {per_key:7.1f} B/key   (empty: {empty / 1e6:.1f} MB)", flush=True)


def load(port, operation, requests, pipeline, options):
    keys = KEYS if options.value_bytes < 1000 else KEYS // 10
    pin = ["taskset", "-c", "1"] if options.workers == 1 else []
    benchmark = os.environ.get("REDIS_BENCHMARK", "redis-benchmark")
    subprocess.run(
        [*pin, benchmark, "-p", str(port), "-t", operation, "-n", str(requests), "-r", str(keys), "-c", CONNECTIONS,
         "-d", str(options.value_bytes), "-P", str(pipeline), "-q"],
        check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def speed(running, options):
    pipelines = [int(word) for word in options.pipelines.split(",")]
    operations, names = options.operations.split(","), list(running)
    seen = {}
    for number in range(options.rounds):
        order = names[number % len(names):] + names[:number % len(names)]
        for pipeline in pipelines:
            for operation in operations:
                for name in order:
                    port, process = running[name]
                    requests = REQUESTS[pipeline] // (1 if options.value_bytes < 1000 else 5)
                    before, begun = cpu_ns(process.pid), time.monotonic()
                    load(port, operation, requests, pipeline, options)
                    seconds, cpu = time.monotonic() - begun, cpu_ns(process.pid) - before
                    seen.setdefault((pipeline, operation, name), []).append((cpu / 1000 / requests, requests / seconds))
    print(f"\nServer CPU per command (us; min-median-max of {options.rounds}) and throughput, {CONNECTIONS} connections, "
          f"{options.value_bytes} B")
    for pipeline in pipelines:
        for operation in operations:
            medians = {}
            for name in names:
                figures = seen[pipeline, operation, name]
                cpu = sorted(figure[0] for figure in figures)
                medians[name] = statistics.median(cpu)
                rate = statistics.median(figure[1] for figure in figures)
                print(f"  P={pipeline:<3} {operation:4} {name:11} {cpu[0]:7.3f} {medians[name]:7.3f} {cpu[-1]:7.3f}   "
                      f"{rate / 1000:8.1f} k/s")
            peers = [median for name, median in medians.items() if name != "towline"]
            if peers:
                print(f"  P={pipeline:<3} {operation:4} towline / best peer: {medians['towline'] / min(peers):.2f}", flush=True)


def large(running, options):
    value, seen = b"x" * (64 << 20), {}
    empty = {name: status_bytes(process.pid, "VmRSS") for name, (_port, process) in running.items()}
    head = b"$%d\r\n" % len(value)
    for _ in range(options.rounds):
        for name, (port, _process) in running.items():
            with socket.create_connection(("127.0.0.1", port)) as connection:
                begun = time.monotonic()
                connection.sendall(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n" + head)
                connection.sendall(value)
                connection.sendall(b"\r\n")
                assert connection.recv(16) == b"+OK\r\n"
                set_s, begun = time.monotonic() - begun, time.monotonic()
                connection.sendall(b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n")
                left, buffer = len(head) + len(value) + 2, bytearray(1 << 20)
                while left > 0:
                    left -= connection.recv_into(buffer)
                seen.setdefault(name, []).append((set_s, time.monotonic() - begun))
    print(f"\nOne value of 64 MiB: MB/s (median of {options.rounds}) and peak memory above the empty server's, in copies of it")
    for name, (_port, process) in running.items():
        set_s, get_s = (statistics.median(figure[i] for figure in seen[name]) for i in (0, 1))
        peak = (status_bytes(process.pid, "VmHWM") - empty[name]) / len(value)
        print(f"  {name:11} SET {len(value) / set_s / 1e6:6.0f}   GET {len(value) / get_s / 1e6:6.0f}   peak {peak:.2f}", flush=True)


def main():
    options = arguments()
    # The peak of memory is a process's whole life: large values have servers of their own.
    for kind, parts in (("keys", (memory, speed)), ("large", (large,))):
        wanted = [part for part in parts if options.only in (None, part.__name__)]
        if not wanted:
            continue
        running = servers(options)
        try:
            if speed in wanted and memory not in wanted:
                for port, _process in running.values():
                    fill(port, KEYS if options.value_bytes < 1000 else KEYS // 10, b"x" * options.value_bytes)
            for part in wanted:
                part(running, options)
        finally:
            for _port, process in running.values():
                process.kill()
                process.wait()


if __name__ == "__main__":
    main()
