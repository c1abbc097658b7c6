//! `CONFIG`: parameters at run time.

use crate::command::{Args, CommandError, CommandResult, Ctx, Row, no_keys};
use crate::config::{self, Access, Change, PARAMS, Param};
use crate::persistence::keeper::Request;
use std::collections::BTreeMap;
use towline_store::glob::{Case, matches};

/// Whether `access` lets the client in. A client without an address is the server's own.
pub(super) fn allows(access: Access, ctx: &mut Ctx<'_>) -> bool {
    match access {
        Access::No => false,
        Access::Yes => true,
        Access::Local => {
            let addresses = &ctx.session().client.addresses;
            let peer = addresses.peer.parse::<std::net::SocketAddr>();
            addresses.is_unix
                || addresses.peer.is_empty()
                || peer.is_ok_and(|peer| peer.ip().to_canonical().is_loopback())
        }
    }
}

/// Writes the lines of a `HELP` subcommand below the one that names the command.
pub(super) fn help(ctx: &mut Ctx<'_>, command: &str, lines: &[&str]) -> CommandResult {
    ctx.out.array(lines.len() + 3);
    ctx.out.simple(&format!("{command} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"));
    for line in lines {
        ctx.out.simple(line);
    }
    ctx.out.simple("HELP");
    ctx.out.simple("    Print this help.");
    Ok(())
}

/// `CONFIG GET pattern [pattern …]`: a parameter and its former name are two names.
fn get(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let config = ctx.server.config();
    let mut found: BTreeMap<Vec<u8>, &Param> = BTreeMap::new();
    for pattern in args.from(2).iter() {
        let is_glob = pattern.iter().any(|byte| matches!(byte, b'*' | b'?' | b'['));
        if !is_glob {
            if let Some(param) = config::find(pattern) {
                found.insert(pattern.to_vec(), param);
            }
            continue;
        }
        for param in PARAMS {
            for name in std::iter::once(param.name).chain(param.alias) {
                if matches(pattern, name.as_bytes(), Case::Insensitive) {
                    found.insert(name.into(), param);
                }
            }
        }
    }
    ctx.out.map(found.len());
    for (name, param) in found {
        ctx.out.bulk(&name);
        ctx.out.bulk(&(param.get)(&config));
    }
    Ok(())
}

fn refused(name: &[u8], reason: &str) -> CommandError {
    let before = "ERR CONFIG SET failed (possibly related to argument '";
    CommandError::quoting(before, name, &format!("') - {reason}"))
}

/// `CONFIG SET name value [name value …]`: all of them or none.
fn set(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    if !args.len().is_multiple_of(2) {
        return Err(CommandError::Syntax);
    }
    let protected = ctx.server.config().enable_protected_configs;
    let may_set_protected = allows(protected, ctx);
    let mut pairs: Vec<(&str, &Param, &[u8])> = Vec::new();
    for index in (2..args.len()).step_by(2) {
        let given = args.get(index);
        let Some(param) = config::find(args.get(index)) else {
            let before = "ERR Unknown option or number of arguments for CONFIG SET - '";
            return Err(CommandError::quoting(before, given, "'"));
        };
        match param.change {
            Change::AtStart => return Err(refused(given, "can't set immutable config")),
            Change::Protected if !may_set_protected => {
                return Err(refused(given, "can't set protected config"));
            }
            Change::Protected | Change::Anytime => {}
        }
        // The former name counts as another parameter, as in Redis.
        if pairs.iter().any(|(name, ..)| *name == param.name_as_given(given)) {
            return Err(refused(given, "duplicate parameter"));
        }
        pairs.push((param.name_as_given(given), param, args.get(index + 1)));
    }
    #[cfg(feature = "tls")]
    let tls = pairs.iter().map(|(name, ..)| *name).find(|name| name.starts_with("tls-"));
    ctx.server.change_config(|config| {
        let before = config.clone();
        for (name, param, value) in pairs {
            param.set_text(config, value).map_err(|reason| refused(name.as_bytes(), &reason))?;
        }
        if config.persistence.appendonly && config.dir != before.dir {
            // The log would be in one directory, and looked for in another by the next start.
            return Err(refused(b"dir", "the log is in it: turn 'appendonly' off first"));
        }
        // Last, because it takes effect at once. The same name again is a way to have a new file read.
        #[cfg(feature = "tls")]
        if let Some(name) = tls {
            ctx.server.tls.reload(config).map_err(|error| refused(name.as_bytes(), &error.to_string()))?;
        }
        Ok::<_, CommandError>(())
    })?;
    let config = ctx.server.config();
    ctx.server.slowlog.trim(config.slowlog_max_len);
    ctx.server.stats.track_latency(config.latency_tracking);
    ctx.server.persistence.keeper.send(Request::ConfigChanged);
    ctx.out.ok();
    Ok(())
}

fn reset_stat(ctx: &mut Ctx<'_>, _args: Args<'_>) -> CommandResult {
    ctx.server.stats.reset();
    ctx.out.ok();
    Ok(())
}

fn rewrite(ctx: &mut Ctx<'_>, _args: Args<'_>) -> CommandResult {
    config::rewrite(&ctx.server.config()).map_err(|error| CommandError::message(format!("ERR {error}")))?;
    ctx.out.ok();
    Ok(())
}

fn help_lines(ctx: &mut Ctx<'_>, _args: Args<'_>) -> CommandResult {
    help(
        ctx,
        "CONFIG",
        &[
            "GET <pattern> [<pattern> ...]",
            "    Show the parameters whose names match a glob-like pattern, with their values.",
            "SET <parameter> <value> [<parameter> <value> ...]",
            "    Change parameters: all of them, or none if one is refused.",
            "RESETSTAT",
            "    Set the counters of INFO back to zero.",
            "REWRITE",
            "    Write the parameters in force back to the configuration file.",
        ],
    )
}

pub(super) const ROWS: &[Row] = &[
    no_keys("config|get", get),
    no_keys("config|help", help_lines),
    no_keys("config|resetstat", reset_stat),
    no_keys("config|rewrite", rewrite),
    no_keys("config|set", set),
];

#[cfg(test)]
mod tests {
    use crate::testing::Server;

    fn failed(name: &str, reason: &str) -> String {
        format!("-ERR CONFIG SET failed (possibly related to argument '{name}') - {reason}")
    }

    #[test]
    fn get_takes_names_and_patterns_in_any_case() {
        let mut server = Server::new();
        assert_eq!(server.line("CONFIG GET maxmemory"), "*2 $9 maxmemory $1 0");
        assert_eq!(server.line("CONFIG GET nothing"), "*0");
        assert_eq!(
            server.line("CONFIG GET hash-max-zip*"),
            "*4 $24 hash-max-ziplist-entries $3 512 $22 hash-max-ziplist-value $2 64"
        );
        assert_eq!(
            server.line("CONFIG GET save APPENDONLY maxmemory-polic?"),
            "*6 $10 APPENDONLY $2 no $16 maxmemory-policy $10 noeviction $4 save $0"
        );
        assert!(Server::new().resp3().line("CONFIG GET maxmemory").starts_with("%1 $9 maxmemory"));
    }

    #[test]
    fn set_is_all_or_nothing() {
        let mut server = Server::new();
        assert_eq!(server.line("CONFIG SET maxmemory 1mb hz 0"), "+OK");
        assert_eq!(server.line("CONFIG GET maxmemory hz"), "*4 $2 hz $1 1 $9 maxmemory $7 1048576");
        let error = failed("lfu-decay-time", "argument must be between 0 and 2147483647 inclusive");
        assert_eq!(server.line("CONFIG SET maxmemory 2mb lfu-decay-time -1"), error);
        assert_eq!(server.line("CONFIG GET maxmemory"), "*2 $9 maxmemory $7 1048576");
    }

    #[test]
    fn set_refuses_what_redis_refuses() {
        let mut server = Server::new();
        let unknown = "-ERR Unknown option or number of arguments for CONFIG SET - 'foo'";
        assert_eq!(server.line("CONFIG SET foo bar"), unknown);
        assert_eq!(server.line("CONFIG SET maxmemory 1 foo bar"), unknown);
        assert_eq!(server.line("CONFIG SET maxmemory 1 foo"), "-ERR syntax error");
        assert_eq!(server.line("CONFIG SET databases 3"), failed("databases", "can't set immutable config"));
        assert_eq!(server.line("CONFIG SET dir /"), failed("dir", "can't set protected config"));
        assert_eq!(server.line("CONFIG SET hz 1 hz 2"), failed("hz", "duplicate parameter"));
        for (name, value, reason) in [
            ("maxmemory", "abc", "argument must be a memory value"),
            ("lazyfree-lazy-expire", "maybe", "argument must be 'yes' or 'no'"),
            ("hz", "abc", "argument couldn't be parsed into an integer"),
            ("notify-keyspace-events", "y", "Invalid event class character. Use 'Ag$lshzxeKEtmdn'."),
            (
                "client-output-buffer-limit",
                "normal 1",
                "Wrong number of arguments in buffer limit configuration.",
            ),
            ("maxmemory-clients", "200%", "percentage argument must be less or equal to 100"),
            (
                "maxmemory-policy",
                "foo",
                "argument(s) must be one of the following: volatile-lru, volatile-lfu, volatile-random, volatile-ttl, \
                 allkeys-lru, allkeys-lfu, allkeys-random, noeviction",
            ),
            ("save", "900", "Invalid save parameters"),
        ] {
            assert_eq!(server.run(&["CONFIG", "SET", name, value]), failed(name, reason));
        }
    }

    #[test]
    fn set_checks_what_has_no_effect_as_well() {
        let mut server = Server::new();
        let one_of = |words: &str| format!("argument(s) must be one of the following: {words}");
        let stop = one_of("default, save, nosave, now, force");
        let oom = "Invalid oom-score-adj-values, elements must be between -2000 and 2000.";
        let template = "template format is invalid or contains unknown variables";
        let percentiles = "Invalid latency-tracking-info-percentiles parameters";
        for (name, value, reason) in [
            ("cluster-preferred-endpoint-type", "foo", &*one_of("ip, hostname, unknown-endpoint")),
            ("propagation-error-behavior", "", &one_of("ignore, panic, panic-on-replicas")),
            ("shutdown-on-sigint", "save  now", &stop),
            ("shutdown-on-sigterm", "", &stop),
            (
                "shutdown-on-sigterm",
                "save nosave",
                "shutdown options SAVE and NOSAVE can't be used simultaneously",
            ),
            (
                "cluster-announce-hostname",
                "a b",
                "Hostnames may only contain alphanumeric characters, hyphens or dots",
            ),
            ("proc-title-template", "", template),
            ("proc-title-template", "{nothing}", template),
            ("proc-title-template", "{title", template),
            ("oom-score-adj-values", "a b c", oom),
            ("oom-score-adj-values", "0 200 2001", oom),
            ("oom-score-adj-values", "0 200", "wrong number of arguments"),
            ("save", "900", "Invalid save parameters"),
            ("save", "0 1", "Invalid save parameters"),
            ("appendonly", "foo", "argument must be 'yes' or 'no'"),
            ("activedefrag", "1", "argument must be 'yes' or 'no'"),
            ("rdbchecksum", "no", "can't set immutable config"),
            ("repl-backlog-size", "0", "argument must be between 1 and 9223372036854775807 inclusive"),
            (
                "active-defrag-ignore-bytes",
                "",
                "argument must be between 1 and 9223372036854775807 inclusive",
            ),
            (
                "stream-node-max-bytes",
                "9223372036854775808",
                "argument must be between 0 and 9223372036854775807 inclusive",
            ),
            ("latency-tracking-info-percentiles", "50  99", percentiles),
            ("slave-priority", "x", "argument couldn't be parsed into an integer"),
        ] {
            assert_eq!(server.run(&["CONFIG", "SET", name, value]), failed(name, reason));
        }
        for (name, value, shown) in [
            ("shutdown-on-sigint", "now save", "save now"),
            ("proc-title-template", "{title} {{x} {PORT}", "{title} {{x} {PORT}"),
            ("maxmemory", "9223372036854775808", "9223372036854775808"),
            ("maxmemory", "", "0"),
            ("repl-backlog-size", "1", "16384"),
            ("oom-score-adj-values", "-2000 0 2000", "-2000 0 2000"),
            ("latency-tracking-info-percentiles", "", ""),
            (
                "client-output-buffer-limit",
                "",
                "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60",
            ),
        ] {
            assert_eq!(server.run(&["CONFIG", "SET", name, value]), "+OK", "{name}");
            let expected = format!("*2 ${} {name} ${} {shown}", name.len(), shown.len());
            assert_eq!(server.run(&["CONFIG", "GET", name]).trim_end(), expected.trim_end());
        }
    }

    #[test]
    fn set_takes_effect_on_the_next_command() {
        let mut server = Server::new();
        server.line("CONFIG SET maxmemory 5");
        assert!(server.line("SET k v").starts_with("-OOM"));
        server.line("CONFIG SET maxmemory 0");
        assert_eq!(server.line("SET k v"), "+OK");
        server.line("CONFIG SET notify-keyspace-events KEA maxmemory-policy allkeys-lfu");
        assert!(server.local.settings.is_lfu());
        assert_eq!(server.line("CONFIG GET notify-keyspace-events"), "*2 $22 notify-keyspace-events $3 AKE");
    }

    #[test]
    fn rewrite_needs_a_file() {
        assert_eq!(Server::new().line("CONFIG REWRITE"), "-ERR The server is running without a config file");
        assert!(Server::new().line("CONFIG HELP").starts_with("*11 +CONFIG <subcommand>"));
    }
}
