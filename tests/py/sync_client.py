"""redis-py, blocking: the daily habits of its users. Arguments: port, protocol version."""

import sys
import threading

import redis

PORT, PROTOCOL = int(sys.argv[1]), int(sys.argv[2])


def client(**options):
    return redis.Redis(port=PORT, protocol=PROTOCOL, **options)


def strings_and_decoding():
    r = client(decode_responses=True)
    assert r.ping() is True
    assert r.set("k", "välue", ex=1000) is True
    assert r.get("k") == "välue"
    assert 990 < r.ttl("k") <= 1000
    assert r.set("k", "other", nx=True) is None
    assert r.set("k", "new", get=True) == "välue"
    assert r.incrby("n", 5) == 5
    assert r.incrbyfloat("f", 1.5) == 1.5
    assert r.mget("k", "missing") == ["new", None]
    raw = client()
    raw.set(b"\x00\xff", bytes(range(256)))
    assert raw.get(b"\x00\xff") == bytes(range(256))


def collections():
    r = client(decode_responses=True)
    assert r.rpush("l", *range(10)) == 10
    assert r.lrange("l", 0, -1) == [str(i) for i in range(10)]
    assert r.lpos("l", "5") == 5
    assert r.hset("h", mapping={"a": 1, "b": 2}) == 2
    assert r.hgetall("h") == {"a": "1", "b": "2"}
    assert r.sadd("s", "x", "y") == 2
    assert set(r.smembers("s")) == {"x", "y"}
    assert r.zadd("z", {"a": 1, "b": 2.5}) == 2
    pairs = [tuple(pair) for pair in r.zrange("z", 0, -1, withscores=True)]
    assert pairs == [("a", 1.0), ("b", 2.5)], pairs
    assert r.zscore("z", "b") == 2.5
    assert r.geoadd("g", (13.361389, 38.115556, "Palermo")) == 1
    assert r.geosearch("g", longitude=15, latitude=37, radius=200, unit="km") == ["Palermo"]
    assert r.pfadd("p", "a", "b") == 1
    assert r.pfcount("p") == 2
    assert r.type("z") == "zset"


def pipelines_and_transactions():
    r = client(decode_responses=True)
    with r.pipeline(transaction=False) as pipe:
        for i in range(1000):
            pipe.set(f"p:{i}", i).get(f"p:{i}")
        replies = pipe.execute()
    assert replies[1::2] == [str(i) for i in range(1000)]
    with r.pipeline() as pipe:
        pipe.set("t", 1).incr("t").lpush("t", "wrong type")
        replies = pipe.execute(raise_on_error=False)
    assert replies[:2] == [True, 2] and isinstance(replies[2], redis.ResponseError), replies

    r.set("w", 1)
    with r.pipeline() as pipe:
        pipe.watch("w")
        client().set("w", 2)
        pipe.multi()
        pipe.incr("w")
        try:
            pipe.execute()
            raise SystemExit("EXEC went through although the key changed")
        except redis.WatchError:
            pass

    def double(pipe):
        value = int(pipe.get("w"))
        pipe.multi()
        pipe.set("w", value * 2)

    threads = [threading.Thread(target=lambda: client().transaction(double, "w")) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert r.get("w") == "32", r.get("w")


def scans():
    r = client(decode_responses=True)
    r.flushdb()
    for i in range(300):
        r.set(f"scan:{i}", i)
        r.sadd("members", f"m{i}")
        r.hset("fields", f"f{i}", i)
    assert len(set(r.scan_iter("scan:*", count=7))) == 300
    assert set(r.scan_iter(_type="hash")) == {"fields"}
    assert len(set(r.sscan_iter("members"))) == 300
    assert len(dict(r.hscan_iter("fields"))) == 300


def blocking():
    r = client(decode_responses=True)
    taken = []
    thread = threading.Thread(target=lambda: taken.append(client(decode_responses=True).blpop(["b1", "b2"], timeout=20)))
    thread.start()
    r.rpush("b2", "x")
    thread.join()
    assert list(taken[0]) == ["b2", "x"], taken
    assert r.blpop("b1", timeout=0.01) is None
    assert r.bzpopmin("missing", timeout=0.01) is None


def publish_and_subscribe():
    r = client(decode_responses=True)
    with r.pubsub() as p:
        p.subscribe("news")
        p.psubscribe("n*")
        assert [p.get_message(timeout=20)["type"] for _ in range(2)] == ["subscribe", "psubscribe"]
        assert r.publish("news", "hello") == 2
        got = [p.get_message(timeout=20) for _ in range(2)]
        assert sorted((m["type"], m["data"]) for m in got) == [("message", "hello"), ("pmessage", "hello")], got
        p.unsubscribe("news")
        assert p.get_message(timeout=20)["type"] == "unsubscribe"


def administration():
    r = client(decode_responses=True)
    info = r.info()
    assert info["redis_version"] and info["role"] == "master" and info["connected_clients"] >= 1
    assert r.config_get("maxmemory*")["maxmemory"] == "0"
    r.config_set("timeout", 0)
    assert r.client_setname("me") is True
    assert r.client_getname() == "me"
    assert any(c["name"] == "me" for c in r.client_list())
    assert r.time()[0] > 1_600_000_000
    assert r.dbsize() >= 0
    assert r.command_count() > 100
    assert r.object("encoding", "n") in ("int", "embstr", None)
    payload = client().dump("z") or client().dump("l")
    if payload:
        assert client().restore("restored", 0, payload, replace=True)
    try:
        r.lpush("n", 1) if r.exists("n") else r.execute_command("NOSUCH")
        raise SystemExit("an error was not raised")
    except redis.ResponseError:
        pass


for check in (
    strings_and_decoding,
    collections,
    pipelines_and_transactions,
    blocking,
    publish_and_subscribe,
    administration,
    scans,
):
    check()
    print(check.__name__, "ok")
