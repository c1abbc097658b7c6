"""redis-py with asyncio: many tasks on one client. Arguments: port, protocol version."""

import asyncio
import sys

import redis.asyncio as redis

PORT, PROTOCOL = int(sys.argv[1]), int(sys.argv[2])


def client(**options):
    return redis.Redis(port=PORT, protocol=PROTOCOL, decode_responses=True, **options)


async def tasks_share_a_client():
    async with client(max_connections=50) as r:
        async def work(number):
            await r.set(f"k{number}", number)
            assert await r.get(f"k{number}") == str(number)
            return await r.incr("total")

        totals = await asyncio.gather(*(work(number) for number in range(40)))
        assert sorted(totals) == list(range(1, 41))


async def pipelines():
    async with client() as r:
        async with r.pipeline(transaction=True) as pipe:
            replies = await pipe.set("a", 1).incr("a").hset("h", mapping={"f": "v"}).hgetall("h").execute()
        assert replies == [True, 2, 1, {"f": "v"}], replies


async def blocking_and_publishing():
    async with client() as r, client() as other:
        waiting = asyncio.create_task(other.blpop(["queue"], timeout=20))
        await r.rpush("queue", "job")
        assert list(await waiting) == ["queue", "job"]

        async with r.pubsub() as p:
            await p.subscribe("news")
            assert (await p.get_message(timeout=20))["type"] == "subscribe"
            for number in range(100):
                assert await other.publish("news", number) == 1
            for number in range(100):
                message = await p.get_message(timeout=20)
                assert message["data"] == str(number), message


async def scanning():
    async with client() as r:
        await r.flushdb()
        async with r.pipeline(transaction=False) as pipe:
            for number in range(500):
                pipe.set(f"s:{number}", number)
            await pipe.execute()
        assert len({key async for key in r.scan_iter("s:*", count=13)}) == 500


async def main():
    for check in (tasks_share_a_client, pipelines, blocking_and_publishing, scanning):
        await check()
        print(check.__name__, "ok")


asyncio.run(main())
