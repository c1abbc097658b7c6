//! Commands of the group `pubsub`.
//!
//! Written by `cargo xtask fix` from the command table; change crates/spec/src or xtask/src/commands.

use crate::args::ToArgs;
use crate::cmd::{Cmd, cmd};

/// Sends a message to a channel.
///
/// `PUBLISH channel message`: O(N+M), N is the number of subscribers, M of subscribed patterns, since
/// 2.0.0.
pub fn publish(channel: impl ToArgs, message: impl ToArgs) -> Cmd {
    cmd("PUBLISH").arg(channel).arg(message)
}

/// Sends a message to a sharded channel.
///
/// `SPUBLISH shardchannel message`: O(N), N is the number of subscribers, since 7.0.0.
pub fn spublish(shardchannel: impl ToArgs, message: impl ToArgs) -> Cmd {
    cmd("SPUBLISH").arg(shardchannel).arg(message)
}

/// Lists channels with subscribers.
///
/// `PUBSUB CHANNELS [pattern]`: O(N), N is the number of channels, since 2.8.0.
pub fn pubsub_channels() -> Cmd {
    cmd("PUBSUB").arg("CHANNELS")
}

/// Lists channels with subscribers. With options.
///
/// `PUBSUB CHANNELS [pattern]`: O(N), N is the number of channels, since 2.8.0.
pub fn pubsub_channels_with(pattern: impl ToArgs) -> Cmd {
    cmd("PUBSUB").arg("CHANNELS").arg(pattern)
}

/// Shows what the subcommands do.
///
/// `PUBSUB HELP`: O(1), since 6.2.0.
pub fn pubsub_help() -> Cmd {
    cmd("PUBSUB").arg("HELP")
}

/// Counts the subscribed patterns.
///
/// `PUBSUB NUMPAT`: O(1), since 2.8.0.
pub fn pubsub_numpat() -> Cmd {
    cmd("PUBSUB").arg("NUMPAT")
}

/// Counts the subscribers of channels.
///
/// `PUBSUB NUMSUB [channel [channel ...]]`: O(N), N is the number of channels, since 2.8.0.
pub fn pubsub_numsub(channels: impl ToArgs) -> Cmd {
    cmd("PUBSUB").arg("NUMSUB").arg(channels)
}

/// Lists sharded channels with subscribers.
///
/// `PUBSUB SHARDCHANNELS [pattern]`: O(N), N is the number of channels, since 7.0.0.
pub fn pubsub_shardchannels() -> Cmd {
    cmd("PUBSUB").arg("SHARDCHANNELS")
}

/// Lists sharded channels with subscribers. With options.
///
/// `PUBSUB SHARDCHANNELS [pattern]`: O(N), N is the number of channels, since 7.0.0.
pub fn pubsub_shardchannels_with(pattern: impl ToArgs) -> Cmd {
    cmd("PUBSUB").arg("SHARDCHANNELS").arg(pattern)
}

/// Counts the subscribers of sharded channels.
///
/// `PUBSUB SHARDNUMSUB [shardchannel [shardchannel ...]]`: O(N), N is the number of channels, since 7.0.0.
pub fn pubsub_shardnumsub(shardchannels: impl ToArgs) -> Cmd {
    cmd("PUBSUB").arg("SHARDNUMSUB").arg(shardchannels)
}
