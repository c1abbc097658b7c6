//! Publish and subscribe.

use super::prelude::*;

pub(super) const ROWS: &[Row] = &[
    cmd("psubscribe", -2, PUBSUB | NOSCRIPT | LOADING | STALE)
        .args("pattern [pattern ...]")
        .doc("2.0.0", "Subscribes to channels by pattern.")
        .cost("O(N), N is the number of patterns")
        .effect(Connection),
    cmd("publish", 3, PUBSUB | LOADING | STALE | FAST | MAY_REPLICATE)
        .args("channel message")
        .doc("2.0.0", "Sends a message to a channel.")
        .cost("O(N+M), N is the number of subscribers, M of subscribed patterns")
        .effect(NonIdempotent),
    cmd("pubsub", -2, NONE)
        .args("subcommand [arg [arg ...]]")
        .doc("2.8.0", "Container for commands that look at subscriptions.")
        .subcommands(&[
            cmd("pubsub|channels", -2, PUBSUB | LOADING | STALE)
                .args("[pattern]")
                .doc("2.8.0", "Lists channels with subscribers.")
                .cost("O(N), N is the number of channels")
                .effect(ReadOnly),
            cmd("pubsub|help", 2, LOADING | STALE)
                .doc("6.2.0", "Shows what the subcommands do.")
                .effect(ReadOnly),
            cmd("pubsub|numpat", 2, PUBSUB | LOADING | STALE)
                .doc("2.8.0", "Counts the subscribed patterns.")
                .effect(ReadOnly),
            cmd("pubsub|numsub", -2, PUBSUB | LOADING | STALE)
                .args("[channel [channel ...]]")
                .doc("2.8.0", "Counts the subscribers of channels.")
                .cost("O(N), N is the number of channels")
                .effect(ReadOnly),
            cmd("pubsub|shardchannels", -2, PUBSUB | LOADING | STALE)
                .args("[pattern]")
                .doc("7.0.0", "Lists sharded channels with subscribers.")
                .cost("O(N), N is the number of channels")
                .effect(ReadOnly),
            cmd("pubsub|shardnumsub", -2, PUBSUB | LOADING | STALE)
                .args("[shardchannel [shardchannel ...]]")
                .doc("7.0.0", "Counts the subscribers of sharded channels.")
                .cost("O(N), N is the number of channels")
                .effect(ReadOnly),
        ]),
    cmd("punsubscribe", -1, PUBSUB | NOSCRIPT | LOADING | STALE)
        .args("[pattern [pattern ...]]")
        .doc("2.0.0", "Ends subscriptions by pattern.")
        .cost("O(N), N is the number of patterns")
        .effect(Connection),
    cmd("spublish", 3, PUBSUB | LOADING | STALE | FAST | MAY_REPLICATE)
        .args("shardchannel message")
        .doc("7.0.0", "Sends a message to a sharded channel.")
        .cost("O(N), N is the number of subscribers")
        .keys(&[key(1, NOT_KEY)])
        .effect(NonIdempotent),
    cmd("ssubscribe", -2, PUBSUB | NOSCRIPT | LOADING | STALE)
        .args("shardchannel [shardchannel ...]")
        .doc("7.0.0", "Subscribes to sharded channels.")
        .cost("O(N), N is the number of channels")
        .keys(&[keys(1, -1, 1, NOT_KEY)])
        .effect(Connection),
    cmd("subscribe", -2, PUBSUB | NOSCRIPT | LOADING | STALE)
        .args("channel [channel ...]")
        .doc("2.0.0", "Subscribes to channels.")
        .cost("O(N), N is the number of channels")
        .effect(Connection),
    cmd("sunsubscribe", -1, PUBSUB | NOSCRIPT | LOADING | STALE)
        .args("[shardchannel [shardchannel ...]]")
        .doc("7.0.0", "Ends subscriptions to sharded channels.")
        .cost("O(N), N is the number of channels")
        .keys(&[keys(1, -1, 1, NOT_KEY)])
        .effect(Connection),
    cmd("unsubscribe", -1, PUBSUB | NOSCRIPT | LOADING | STALE)
        .args("[channel [channel ...]]")
        .doc("2.0.0", "Ends subscriptions to channels.")
        .cost("O(N), N is the number of channels")
        .effect(Connection),
];
