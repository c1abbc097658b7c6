//! `COMMAND`: the command table, for clients. Commands that are only planned are not listed.

use super::config::help;
use crate::command::{Args, CommandError, CommandResult, Ctx, Row, no_keys};
use towline_resp::writer::Writer;
use towline_spec::syntax::{Argument, arguments};
use towline_spec::{AclCategories, BeginSearch, Command, FindKeys, Flags, KeyError, KeyFlags, KeySpec};
use towline_store::glob::{Case, matches};

fn listed() -> impl Iterator<Item = &'static Command> + Clone {
    towline_spec::all().iter().filter(|command| command.is_implemented())
}

fn listed_subcommands(command: &Command) -> impl Iterator<Item = &'static Command> + Clone + use<> {
    command.subcommands().iter().filter(|command| command.is_implemented())
}

/// The commands that are named by the arguments from the third on, all of them if there are none.
fn named<'a>(args: Args<'a>) -> Vec<(&'a [u8], Option<&'static Command>)> {
    let find =
        |name: &'a [u8]| (name, towline_spec::lookup_full(name).filter(|command| command.is_implemented()));
    match args.len() {
        0..=2 => listed().map(|command| (command.name.as_bytes(), Some(command))).collect(),
        _ => args.from(2).iter().map(find).collect(),
    }
}

/// Simple strings in a set.
fn words<'a>(out: &mut Writer, words: impl Iterator<Item = &'a str>) {
    let words: Vec<_> = words.collect();
    out.set(words.len());
    words.iter().for_each(|word| out.simple(word));
}

fn write_info(out: &mut Writer, command: &'static Command) {
    out.array(10);
    out.bulk(command.name.as_bytes());
    out.int(command.arity.into());
    words(out, command.flags.shown().names());
    let (first, last, step) = command.legacy_keys;
    [first, last, step].iter().for_each(|&place| out.int(place.into()));
    let categories: Vec<_> = command.acl.names().map(|name| format!("@{name}")).collect();
    words(out, categories.iter().map(String::as_str));
    out.set(command.tips.len());
    command.tips.iter().for_each(|tip| out.bulk(tip.as_bytes()));
    out.set(command.keys.len());
    command.keys.iter().for_each(|spec| write_key_spec(out, spec));
    out.set(listed_subcommands(command).count());
    listed_subcommands(command).for_each(|command| write_info(out, command));
}

/// Pairs of a name and a number, in a map.
fn numbers(out: &mut Writer, kind: &str, pairs: &[(&str, i64)]) {
    out.map(2);
    out.bulk(b"type");
    out.bulk(kind.as_bytes());
    out.bulk(b"spec");
    out.map(pairs.len());
    for (name, number) in pairs {
        out.bulk(name.as_bytes());
        out.int(*number);
    }
}

fn write_key_spec(out: &mut Writer, spec: &KeySpec) {
    out.map(if spec.notes.is_empty() { 3 } else { 4 });
    if !spec.notes.is_empty() {
        out.bulk(b"notes");
        out.bulk(spec.notes.as_bytes());
    }
    out.bulk(b"flags");
    words(out, spec.flags.names());
    out.bulk(b"begin_search");
    match spec.begin {
        BeginSearch::Index(index) => numbers(out, "index", &[("index", index.into())]),
        BeginSearch::Keyword { keyword, start_from } => {
            out.map(2);
            out.bulk(b"type");
            out.bulk(b"keyword");
            out.bulk(b"spec");
            out.map(2);
            out.bulk(b"keyword");
            out.bulk(keyword.as_bytes());
            out.bulk(b"startfrom");
            out.int(start_from.into());
        }
        BeginSearch::Unknown => numbers(out, "unknown", &[]),
    }
    out.bulk(b"find_keys");
    match spec.find {
        FindKeys::Range { last, step, limit } => {
            numbers(
                out,
                "range",
                &[("lastkey", last.into()), ("keystep", step.into()), ("limit", limit.into())],
            );
        }
        FindKeys::KeyNum { count_at, first, step } => {
            let pairs =
                [("keynumidx", count_at.into()), ("firstkey", first.into()), ("keystep", step.into())];
            numbers(out, "keynum", &pairs);
        }
        FindKeys::Unknown => numbers(out, "unknown", &[]),
    }
}

/// `COMMAND` and `COMMAND INFO [name …]`
fn info(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let commands = named(args);
    ctx.out.array(commands.len());
    for (_, command) in commands {
        match command {
            Some(command) => write_info(ctx.out, command),
            None => ctx.out.null(),
        }
    }
    Ok(())
}

fn count(ctx: &mut Ctx<'_>, _args: Args<'_>) -> CommandResult {
    ctx.out.int(listed().count() as i64);
    Ok(())
}

/// Writes a map whose values are texts, those that are there.
fn write_docs(out: &mut Writer, command: &'static Command) {
    let arguments = arguments(command);
    let subcommands: Vec<_> = listed_subcommands(command).collect();
    let doc_flags = [("deprecated", command.deprecated.is_some()), ("syscmd", command.is_internal)];
    let doc_flags: Vec<_> = doc_flags.iter().filter(|(_, is_set)| *is_set).map(|&(name, _)| name).collect();
    let optional = [!doc_flags.is_empty(), !arguments.is_empty(), !subcommands.is_empty()];
    let optional = optional.iter().filter(|is_there| **is_there).count();
    out.map(4 + optional + if command.deprecated.is_some() { 2 } else { 0 });
    let group = command.group.name();
    for (name, text) in [
        ("summary", command.summary),
        ("since", command.since),
        ("group", group),
        ("complexity", command.complexity),
    ] {
        out.bulk(name.as_bytes());
        out.bulk(text.as_bytes());
    }
    if !doc_flags.is_empty() {
        out.bulk(b"doc_flags");
        words(out, doc_flags.into_iter());
    }
    if let Some(deprecated) = command.deprecated {
        for (name, text) in [("deprecated_since", deprecated.since), ("replaced_by", deprecated.replaced_by)]
        {
            out.bulk(name.as_bytes());
            out.bulk(text.as_bytes());
        }
    }
    if !arguments.is_empty() {
        out.bulk(b"arguments");
        write_arguments(out, &arguments);
    }
    if !subcommands.is_empty() {
        out.bulk(b"subcommands");
        out.map(subcommands.len());
        for command in subcommands {
            out.bulk(command.name.as_bytes());
            write_docs(out, command);
        }
    }
}

fn write_arguments(out: &mut Writer, arguments: &[Argument]) {
    out.array(arguments.len());
    for argument in arguments {
        let flags = [
            ("optional", argument.is_optional),
            ("multiple", argument.is_multiple),
            ("multiple_token", argument.repeats_token),
        ];
        let flags: Vec<_> = flags.iter().filter(|(_, is_set)| *is_set).map(|&(name, _)| name).collect();
        let is_leaf = argument.children.is_empty();
        let (key_spec, token) = (argument.key_spec, argument.token);
        let optional = [is_leaf, key_spec.is_some(), token.is_some(), !flags.is_empty(), !is_leaf];
        out.map(2 + optional.iter().filter(|is_there| **is_there).count());
        out.bulk(b"name");
        out.bulk(argument.name.as_bytes());
        out.bulk(b"type");
        out.bulk(argument.kind.name().as_bytes());
        if is_leaf {
            out.bulk(b"display_text");
            out.bulk(argument.name.as_bytes());
        }
        if let Some(index) = key_spec {
            out.bulk(b"key_spec_index");
            out.int(index as i64);
        }
        if let Some(token) = token {
            out.bulk(b"token");
            out.bulk(token.as_bytes());
        }
        if !flags.is_empty() {
            out.bulk(b"flags");
            words(out, flags.into_iter());
        }
        if !is_leaf {
            out.bulk(b"arguments");
            write_arguments(out, &argument.children);
        }
    }
}

/// `COMMAND DOCS [name …]`: unknown names are left out.
fn docs(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let commands: Vec<_> = named(args).into_iter().filter_map(|(_, command)| command).collect();
    ctx.out.map(commands.len());
    for command in commands {
        ctx.out.bulk(command.name.as_bytes());
        write_docs(ctx.out, command);
    }
    Ok(())
}

/// The keys in the command that the arguments from the third on are.
fn keys_of(args: Args<'_>) -> Result<Vec<(&[u8], KeyFlags)>, CommandError> {
    let args = args.from(2);
    let command =
        towline_spec::resolve(&args).map_err(|_| CommandError::Text("ERR Invalid command specified"))?;
    if !command.has_keys() {
        return Err(CommandError::Text("ERR The command has no key arguments"));
    }
    if !command.accepts_arity(args.len()) {
        return Err(CommandError::Text("ERR Invalid number of arguments specified for command"));
    }
    let mut keys = Vec::new();
    let found: Result<(), KeyError> = towline_spec::for_each_key(command, &args, |index, flags| {
        if !flags.contains(KeyFlags::NOT_KEY) {
            keys.push((args.get(index), flags));
        }
    });
    if found.is_err() {
        keys.clear();
    }
    if keys.is_empty() && !command.flags.contains(Flags::NO_MANDATORY_KEYS) {
        return Err(CommandError::Text("ERR Invalid arguments specified for command"));
    }
    Ok(keys)
}

fn get_keys(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let keys = keys_of(args)?;
    ctx.out.array(keys.len());
    keys.iter().for_each(|(key, _)| ctx.out.bulk(key));
    Ok(())
}

fn get_keys_and_flags(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let keys = keys_of(args)?;
    ctx.out.array(keys.len());
    for (key, flags) in keys {
        ctx.out.array(2);
        ctx.out.bulk(key);
        words(ctx.out, flags.names());
    }
    Ok(())
}

/// `COMMAND LIST [FILTERBY MODULE name | ACLCAT category | PATTERN pattern]`
fn list(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let mut commands: Vec<_> =
        listed().flat_map(|command| std::iter::once(command).chain(listed_subcommands(command))).collect();
    match args.len() {
        2 => {}
        5 if args.is(2, "FILTERBY") && args.is(3, "MODULE") => commands.clear(),
        5 if args.is(2, "FILTERBY") && args.is(3, "ACLCAT") => {
            let category = AclCategories::by_name(args.get(4));
            commands.retain(|command| category.is_some_and(|category| command.acl.contains(category)));
        }
        5 if args.is(2, "FILTERBY") && args.is(3, "PATTERN") => {
            commands.retain(|command| matches(args.get(4), command.name.as_bytes(), Case::Insensitive));
        }
        _ => return Err(CommandError::Syntax),
    }
    ctx.out.array(commands.len());
    commands.iter().for_each(|command| ctx.out.bulk(command.name.as_bytes()));
    Ok(())
}

fn help_lines(ctx: &mut Ctx<'_>, _args: Args<'_>) -> CommandResult {
    help(
        ctx,
        "COMMAND",
        &[
            "(no subcommand)",
            "    Describe all commands: arity, flags, key positions, ACL categories.",
            "COUNT",
            "    Count the commands.",
            "DOCS [<name> ...]",
            "    Document the named commands, or all.",
            "GETKEYS <full-command>",
            "    List the keys in a command.",
            "GETKEYSANDFLAGS <full-command>",
            "    List the keys in a command, and what it does with them.",
            "INFO [<name> ...]",
            "    Describe the named commands, or all.",
            "LIST [FILTERBY (MODULE <module> | ACLCAT <category> | PATTERN <pattern>)]",
            "    List the names of commands and subcommands.",
        ],
    )
}

pub(super) const ROWS: &[Row] = &[
    no_keys("command", info),
    no_keys("command|count", count),
    no_keys("command|docs", docs),
    no_keys("command|getkeys", get_keys),
    no_keys("command|getkeysandflags", get_keys_and_flags),
    no_keys("command|help", help_lines),
    no_keys("command|info", info),
    no_keys("command|list", list),
];

#[cfg(test)]
mod tests {
    use crate::testing::Server;

    #[test]
    fn info_describes_a_command_as_redis_does() {
        let mut server = Server::new();
        assert_eq!(
            server.line("COMMAND INFO get nope"),
            "*2 *10 $3 get :2 *2 +readonly +fast :1 :1 :1 *3 +@read +@string +@fast *0 *1 *6 $5 flags *2 +RO +access \
             $12 begin_search *4 $4 type $5 index $4 spec *2 $5 index :1 $9 find_keys *4 $4 type $5 range $4 spec *6 \
             $7 lastkey :0 $7 keystep :1 $5 limit :0 *0 $-1"
        );
        assert!(
            Server::new()
                .resp3()
                .line("COMMAND INFO get nope")
                .starts_with("*2 *10 $3 get :2 ~2 +readonly +fast")
        );
        assert!(Server::new().resp3().line("COMMAND INFO get nope").ends_with("~0 _"));
        let all = server.line("COMMAND");
        assert_eq!(all, server.line("COMMAND INFO"));
        assert!(all.starts_with(&format!("*{} ", server.line("COMMAND COUNT").trim_start_matches(':'))));
        assert!(!all.contains(" slaveof "), "planned commands are not listed");
    }

    #[test]
    fn docs_have_arguments_and_subcommands() {
        let mut server = Server::new();
        let docs = server.line("COMMAND DOCS setex nope");
        assert!(docs.starts_with("*2 $5 setex *"), "{docs}");
        assert!(docs.contains("$9 arguments *3 *8 $4 name $3 key $4 type $3 key $12 display_text $3 key $14 key_spec_index :0"), "{docs}");
        let docs = Server::new().resp3().line("COMMAND DOCS memory");
        assert!(
            docs.starts_with("%1 $6 memory %5 $7 summary") && docs.contains("$11 subcommands %6"),
            "{docs}"
        );
        assert!(docs.contains("$5 token $7 SAMPLES $5 flags ~1 +optional"), "{docs}");
        assert_eq!(server.line("COMMAND DOCS nope"), "*0");
        assert!(server.line("COMMAND DOCS").starts_with('*'));
    }

    #[test]
    fn keys_are_found_and_refused_as_in_redis() {
        let mut server = Server::new();
        assert_eq!(server.line("COMMAND GETKEYS mset a 1 b 2"), "*2 $1 a $1 b");
        assert_eq!(server.line("COMMAND GETKEYSANDFLAGS set a b"), "*1 *2 $1 a *2 +OW +update");
        assert_eq!(server.line("COMMAND GETKEYS foo a"), "-ERR Invalid command specified");
        assert_eq!(server.line("COMMAND GETKEYS client id"), "-ERR The command has no key arguments");
        assert_eq!(
            server.line("COMMAND GETKEYS mset a"),
            "-ERR Invalid number of arguments specified for command"
        );
        assert_eq!(
            server.line("COMMAND GETKEYS zunionstore d 5 a"),
            "-ERR Invalid arguments specified for command"
        );
        assert_eq!(server.line("COMMAND GETKEYS eval x 0"), "*0");
    }

    #[test]
    fn lists_are_filtered() {
        let mut server = Server::new();
        assert_eq!(server.line("COMMAND LIST FILTERBY PATTERN ge?"), "*1 $3 get");
        assert_eq!(server.line("COMMAND LIST FILTERBY MODULE x"), "*0");
        assert_eq!(server.line("COMMAND LIST FILTERBY ACLCAT nope"), "*0");
        assert!(server.line("COMMAND LIST FILTERBY ACLCAT geo").contains(" geoadd"));
        assert!(server.line("COMMAND LIST").contains(" config|get"));
        assert_eq!(server.line("COMMAND LIST foo"), "-ERR syntax error");
        assert_eq!(server.line("COMMAND LIST FILTERBY foo bar"), "-ERR syntax error");
        assert!(server.line("COMMAND HELP").starts_with("*17 +COMMAND"));
    }
}
