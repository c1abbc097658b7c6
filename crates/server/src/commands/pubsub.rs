//! `SUBSCRIBE`, `PUBLISH` and their kin.
//!
//! Owns: their arguments and replies. Does **not** own the registry (see [`crate::pubsub`]).

use crate::command::{Args, CommandError, CommandResult, Ctx, Row, no_keys};
use crate::pubsub::{self, Topic};
use crate::session::ReplyMode;
use bytes::Bytes;
use towline_resp::writer::Writer;

/// Confirms a change of subscriptions. Like messages, confirmations are sent even while `CLIENT REPLY` is off.
fn confirm(ctx: &mut Ctx<'_>, word: &[u8], topic: Topic, name: Option<&[u8]>) {
    let session = ctx.session();
    let count = pubsub::count(session, topic) as i64;
    let write = |out: &mut Writer| {
        out.push(3);
        out.bulk(word);
        match name {
            Some(name) => out.bulk(name),
            None => out.null(),
        }
        out.int(count);
    };
    if session.reply == ReplyMode::On {
        write(ctx.out);
    } else {
        let mut out = Writer::new(session.proto);
        write(&mut out);
        session.client.push(Bytes::from(out.take().0));
    }
}

fn subscribe_to(ctx: &mut Ctx<'_>, args: Args<'_>, topic: Topic) -> CommandResult {
    let server = ctx.server;
    for name in args.from(1).iter() {
        pubsub::subscribe(server, ctx.session(), topic, name);
        confirm(ctx, topic.subscribed(), topic, Some(name));
    }
    Ok(())
}

fn unsubscribe_from(ctx: &mut Ctx<'_>, args: Args<'_>, topic: Topic) -> CommandResult {
    let names = match args.len() {
        1 => pubsub::names(ctx.session(), topic),
        _ => args.from(1).to_vecs(),
    };
    if names.is_empty() {
        confirm(ctx, topic.unsubscribed(), topic, None);
    }
    let server = ctx.server;
    for name in names {
        pubsub::unsubscribe(server, ctx.session(), topic, &name);
        // What was published before comes before the confirmation: behind it, a client takes it for another reply. Not
        // inside of EXEC's array, though.
        let session = ctx.session();
        if session.reply == ReplyMode::On && !session.is_in_exec {
            let pushed = session.client.take_outbox();
            pushed.iter().for_each(|bytes| ctx.out.raw(bytes));
        }
        confirm(ctx, topic.unsubscribed(), topic, Some(&name));
    }
    Ok(())
}

/// `SUBSCRIBE channel [channel ...]`
fn subscribe(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    subscribe_to(ctx, args, Topic::Channel)
}

/// `PSUBSCRIBE pattern [pattern ...]`
fn psubscribe(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    subscribe_to(ctx, args, Topic::Pattern)
}

/// `SSUBSCRIBE shardchannel [shardchannel ...]`
fn ssubscribe(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    subscribe_to(ctx, args, Topic::ShardChannel)
}

/// `UNSUBSCRIBE [channel [channel ...]]`
fn unsubscribe(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    unsubscribe_from(ctx, args, Topic::Channel)
}

/// `PUNSUBSCRIBE [pattern [pattern ...]]`
fn punsubscribe(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    unsubscribe_from(ctx, args, Topic::Pattern)
}

/// `SUNSUBSCRIBE [shardchannel [shardchannel ...]]`
fn sunsubscribe(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    unsubscribe_from(ctx, args, Topic::ShardChannel)
}

/// `PUBLISH channel message`
fn publish(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let sent = ctx.server.pubsub.publish(args.get(1), args.get(2));
    ctx.out.int(sent as i64);
    Ok(())
}

/// `SPUBLISH shardchannel message`
fn spublish(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let sent = ctx.server.pubsub.publish_sharded(args.get(1), args.get(2));
    ctx.out.int(sent as i64);
    Ok(())
}

fn list_channels(ctx: &mut Ctx<'_>, args: Args<'_>, topic: Topic) -> CommandResult {
    if args.len() > 3 {
        return Err(CommandError::quoting(
            "ERR unknown subcommand or wrong number of arguments for '",
            args.get(1),
            "'. Try PUBSUB HELP.",
        ));
    }
    let names = ctx.server.pubsub.channels(topic, args.at(2));
    ctx.out.array(names.len());
    names.iter().for_each(|name| ctx.out.bulk(name));
    Ok(())
}

fn count_listeners(ctx: &mut Ctx<'_>, args: Args<'_>, topic: Topic) -> CommandResult {
    let names = args.from(2);
    ctx.out.array(names.len() * 2);
    for name in names.iter() {
        ctx.out.bulk(name);
        ctx.out.int(ctx.server.pubsub.listener_count(topic, name) as i64);
    }
    Ok(())
}

/// `PUBSUB CHANNELS [pattern]`
fn channels(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    list_channels(ctx, args, Topic::Channel)
}

/// `PUBSUB SHARDCHANNELS [pattern]`
fn shardchannels(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    list_channels(ctx, args, Topic::ShardChannel)
}

/// `PUBSUB NUMSUB [channel [channel ...]]`
fn numsub(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    count_listeners(ctx, args, Topic::Channel)
}

/// `PUBSUB SHARDNUMSUB [shardchannel [shardchannel ...]]`
fn shardnumsub(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    count_listeners(ctx, args, Topic::ShardChannel)
}

/// `PUBSUB NUMPAT`
fn numpat(ctx: &mut Ctx<'_>, _args: Args<'_>) -> CommandResult {
    ctx.out.int(ctx.server.pubsub.pattern_count() as i64);
    Ok(())
}

const HELP: &[&str] = &[
    "PUBSUB <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "CHANNELS [<pattern>]",
    "    List the channels that somebody listens to, all or those that match <pattern>.",
    "NUMPAT",
    "    Count the patterns that somebody listens to.",
    "NUMSUB [<channel> ...]",
    "    Count the listeners of each channel, without those of patterns.",
    "SHARDCHANNELS [<pattern>]",
    "    List the sharded channels that somebody listens to, all or those that match <pattern>.",
    "SHARDNUMSUB [<shardchannel> ...]",
    "    Count the listeners of each sharded channel.",
    "HELP",
    "    Print this help.",
];

fn help(ctx: &mut Ctx<'_>, _args: Args<'_>) -> CommandResult {
    ctx.out.array(HELP.len());
    HELP.iter().for_each(|line| ctx.out.simple(line));
    Ok(())
}

pub(super) const ROWS: &[Row] = &[
    no_keys("subscribe", subscribe),
    no_keys("psubscribe", psubscribe),
    no_keys("ssubscribe", ssubscribe),
    no_keys("unsubscribe", unsubscribe),
    no_keys("punsubscribe", punsubscribe),
    no_keys("sunsubscribe", sunsubscribe),
    no_keys("publish", publish),
    no_keys("spublish", spublish),
    no_keys("pubsub|channels", channels),
    no_keys("pubsub|shardchannels", shardchannels),
    no_keys("pubsub|numsub", numsub),
    no_keys("pubsub|shardnumsub", shardnumsub),
    no_keys("pubsub|numpat", numpat),
    no_keys("pubsub|help", help),
];

#[cfg(test)]
mod tests;
