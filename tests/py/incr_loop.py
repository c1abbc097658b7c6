"""Increments a key through redis-py until the server has refused it for three seconds: a client under test.

Usage: incr_loop.py PORT
"""

import sys
import time

import redis
from redis.backoff import NoBackoff
from redis.maint_notifications import MaintNotificationsConfig
from redis.retry import Retry

client = redis.Redis(
    port=int(sys.argv[1]),
    protocol=3,
    retry=Retry(NoBackoff(), 0),
    maint_notifications_config=MaintNotificationsConfig(enabled="auto"),
)
answered = time.monotonic()
while time.monotonic() < answered + 3:
    try:
        client.incr("k")
        answered = time.monotonic()
    except redis.exceptions.RedisError:
        time.sleep(0.01)
    time.sleep(0.001)
