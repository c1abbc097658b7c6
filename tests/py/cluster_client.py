"""redis-py's cluster client against a cluster: python cluster_client.py PORT. Ends with 0 if all is as it should be."""

import sys

import redis
from redis.cluster import RedisCluster

port = int(sys.argv[1])

for protocol in (2, 3):
    client = RedisCluster(host="127.0.0.1", port=port, protocol=protocol)
    assert len(client.get_primaries()) == 3, client.get_nodes()
    client.flushall(target_nodes=RedisCluster.PRIMARIES)
    for n in range(300):
        assert client.set(f"key:{n}", n)
    assert [client.get(f"key:{n}") for n in range(300)] == [str(n).encode() for n in range(300)]
    assert client.dbsize(target_nodes=RedisCluster.PRIMARIES) == 300
    assert sorted(client.scan_iter("key:*")) == sorted(f"key:{n}".encode() for n in range(300))
    assert client.mset_nonatomic({"a": 1, "b": 2, "c": 3})
    assert client.mget_nonatomic("a", "b", "c") == [b"1", b"2", b"3"]
    assert client.mset({"{t}a": 1, "{t}b": 2})
    with client.pipeline() as pipe:
        for n in range(100):
            pipe.incr(f"key:{n}")
        assert pipe.execute() == [n + 1 for n in range(100)]
    assert client.cluster_keyslot("key:1") == client.keyslot("key:1")
    assert client.cluster_info(target_nodes=client.get_random_node())["cluster_state"] == "ok"
    slots = client.cluster_slots(target_nodes=client.get_random_node())
    assert sum(last - first + 1 for first, last in slots) == 16384, slots
    shards = client.cluster_shards(target_nodes=client.get_random_node())
    assert len(shards) == 3, shards
    nodes = client.cluster_nodes()
    assert len(nodes) == 3, nodes
    # To the wrong node: the client follows the redirect.
    wrong = next(n for n in client.get_primaries() if n != client.get_node_from_key("key:1"))
    try:
        redis.Redis(host=wrong.host, port=wrong.port).get("key:1")
        raise SystemExit("no redirect")
    except redis.exceptions.MovedError as error:
        assert error.slot_id == client.keyslot("key:1")
    pubsub = client.pubsub()
    pubsub.ssubscribe("shard:channel")
    assert pubsub.get_sharded_message(timeout=5)["type"] == "ssubscribe"
    assert client.spublish("shard:channel", "hello") == 1
    message = pubsub.get_sharded_message(ignore_subscribe_messages=True, timeout=5)
    assert message["data"] == b"hello", message
    pubsub.close()
    client.close()
