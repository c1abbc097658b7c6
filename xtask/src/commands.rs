//! The typed commands of the client, written from the command table so that the two cannot drift apart.
//!
//! Owns: the files of crates/client/src/commands and blocking that say so in their first lines. They are checked in rather than
//! built: a reader can go to a command's definition, documentation has them, a user's build needs no generator, and a
//! change of the table shows in a diff what it does to callers. `cargo xtask verify` fails when they are stale.
//!
//! What is generated for a command follows from its syntax alone:
//!
//! * a required value, choice or repetition is one parameter; a repetition takes whatever gives its arguments (a
//!   slice, a tuple, a map), and its count (`numkeys`) is counted;
//! * tokens are written by the function;
//! * options are left out. A command that has any has a second function, `..._with`, with a parameter in their place.

mod replies;
mod shape;

use anyhow::{Context, bail};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command as Process, Stdio};
use towline_spec::{Command, Group};

use shape::{Method, methods};

const DIRECTORY: &str = "crates/client/src";
const NOTICE: &str =
    "Written by `cargo xtask fix` from the command table; change crates/spec/src or xtask/src/commands.";

/// Commands that a client cannot send: they turn the connection into something else.
const REFUSED: &[&str] = &[
    "subscribe",
    "psubscribe",
    "ssubscribe",
    "unsubscribe",
    "punsubscribe",
    "sunsubscribe",
    "monitor",
    "sync",
    "psync",
    "replconf",
    "reset",
    "client|reply",
    "script|debug",
];

/// Whether the files are those that the table gives; a line for each that is not.
///
/// # Errors
/// A file is missing, or rustfmt cannot be run.
pub(crate) fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut finds = Vec::new();
    for (name, new) in texts(root)? {
        let path = root.join(DIRECTORY).join(&name);
        if std::fs::read_to_string(&path).unwrap_or_default() != new {
            finds.push(format!("{DIRECTORY}/{name} is out of date: run `cargo xtask fix`"));
        }
    }
    Ok(finds)
}

/// Writes the files.
///
/// # Errors
/// A file cannot be written, or rustfmt cannot be run.
pub(crate) fn write(root: &Path) -> anyhow::Result<()> {
    for (name, new) in texts(root)? {
        let path = root.join(DIRECTORY).join(&name);
        if std::fs::read_to_string(&path).unwrap_or_default() != new {
            std::fs::write(&path, new).with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    Ok(())
}

/// Every file's name and text.
fn texts(root: &Path) -> anyhow::Result<Vec<(String, String)>> {
    let methods: Vec<Method> = rows().flat_map(methods).collect();
    let mut files = Vec::new();
    let mut groups: Vec<Group> = methods.iter().map(|method| method.command.group).collect();
    groups.dedup();
    groups.sort_by_key(|group| file_of(*group));
    groups.dedup();
    let mut modules = String::new();
    for group in groups {
        let file = file_of(group);
        let _ = writeln!(modules, "pub mod {file};");
        let of_group = methods.iter().filter(|method| method.command.group == group);
        files.push((format!("commands/make/{file}.rs"), constructors(group, of_group)));
    }
    files.push(("commands/make.rs".to_owned(), index(&modules)));
    files.push(("commands/any.rs".to_owned(), caller_chosen(&methods, Calls::Async)));
    files.push(("commands/typed.rs".to_owned(), fixed(&methods, Calls::Async)));
    files.push(("commands/batch/methods.rs".to_owned(), batched(&methods)));
    files.push(("blocking/any.rs".to_owned(), caller_chosen(&methods, Calls::Blocking)));
    files.push(("blocking/typed.rs".to_owned(), fixed(&methods, Calls::Blocking)));
    files.into_iter().map(|(name, text)| Ok((name, formatted(root, &text)?))).collect()
}

/// The server's commands, then those of modules.
fn rows() -> impl Iterator<Item = &'static Command> {
    let server = towline_spec::rows().iter().filter(|row| is_sendable(row));
    server.chain(towline_spec::modules::rows())
}

fn is_sendable(row: &Command) -> bool {
    !row.is_internal && !row.is_container() && !REFUSED.contains(&row.name)
}

/// The file of a group.
const fn file_of(group: Group) -> &'static str {
    match group {
        Group::Generic => "keys",
        Group::String => "strings",
        Group::Bitmap => "bitmaps",
        Group::List => "lists",
        Group::Hash => "hashes",
        Group::Set => "sets",
        Group::SortedSet => "zsets",
        Group::HyperLogLog => "hyperloglog",
        Group::Geo => "geo",
        Group::Stream => "streams",
        Group::PubSub => "pubsub",
        Group::Transactions => "transactions",
        Group::Scripting => "scripting",
        Group::Connection => "connection",
        Group::Server => "server",
        Group::Cluster => "cluster",
        Group::Json => "json",
        Group::Search => "search",
        Group::TimeSeries => "timeseries",
        Group::Probabilistic => "bloom",
        Group::VectorSet => "vectors",
    }
}

fn index(modules: &str) -> String {
    format!(
        "//! A function for each command, which gives it with its arguments.\n//!\n//! {NOTICE}\n\n{modules}"
    )
}

/// The functions that make commands.
fn constructors<'a>(group: Group, methods: impl Iterator<Item = &'a Method>) -> String {
    let methods: Vec<_> = methods.collect();
    let mut imports = "use crate::args::ToArgs;\n".to_owned();
    if methods.iter().any(|method| method.body().contains("counted(")) {
        imports.push_str("use crate::commands::counted;\n");
    }
    if methods.iter().all(|method| method.params.is_empty()) {
        imports.clear();
    }
    let mut text = format!(
        "//! Commands of the group `{}`.\n//!\n//! {NOTICE}\n\n{imports}use crate::cmd::{{Cmd, cmd}};\n",
        group.name()
    );
    for method in methods {
        let _ = write!(
            text,
            "\n{}\npub fn {}{} -> Cmd {{\n{}\n}}\n",
            method.long_doc(),
            method.name,
            method.params(""),
            method.body()
        );
    }
    text
}

/// Whose methods a trait has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Calls {
    /// The client's: they give futures.
    Async,
    /// The blocking client's: they give results.
    Blocking,
}

impl Calls {
    /// What a method gives for a reply of this type.
    fn output(self, reply: &str) -> String {
        match self {
            Self::Async => format!("impl Future<Output = Result<{reply}, Error>> + Send"),
            Self::Blocking => format!("Result<{reply}, Error>"),
        }
    }

    /// The parameter that the caller fills.
    const fn generics(self) -> &'static str {
        match self {
            Self::Async => "<T: FromReply + Send>",
            Self::Blocking => "<T: FromReply>",
        }
    }

    /// How the file begins: what it imports and the trait's first method.
    fn opening(self, title: &str, imports: &str, own: &str, doc: &str, name: &str) -> String {
        let (future, made, common) = match self {
            Self::Async => (
                "use std::future::Future;\n",
                "super",
                "their errors and what dropping them means are those\n/// of [`Cmd::query`].",
            ),
            Self::Blocking => (
                "",
                "crate::commands",
                "their errors are those of\n/// [`Client::query`](super::Client::query).",
            ),
        };
        let [generics, output] = [self.generics().to_owned(), self.output("T")];
        format!(
            "// Long because: one trait has a method for each command.\n\
             //! {title}\n//!\n//! {NOTICE}\n\n\
             {imports}{future}\n{own}use towline_client_proto::Error;\n\n\
             use crate::args::ToArgs;\nuse crate::cmd::Cmd;\nuse crate::value::FromReply;\nuse {made}::{name};\n\n\
             {doc}{{\n\
             /// Sends a command. What the methods have in common: {common}\n\
             fn run{generics}(&self, cmd: Cmd) -> {output};\n"
        )
    }
}

/// The trait whose methods give the type that the caller asks for.
fn caller_chosen(methods: &[Method], calls: Calls) -> String {
    let mut text = calls.opening(
        "A method for each command, with the type that the caller asks for.",
        "",
        "",
        "/// A method for each command; the caller says what the reply is to be. See [`crate::commands`].\n\
         pub trait Commands ",
        "make",
    );
    let (generics, output) = (calls.generics(), calls.output("T"));
    for method in methods {
        let _ = write!(
            text,
            "\n{}\nfn {}{generics}{} -> {output} {{ self.run({}) }}\n",
            method.short_doc(),
            method.name,
            method.params("&self"),
            method.call(),
        );
    }
    text.push_str("}\n");
    text
}

/// Types of replies that are not the language's.
const REPLY_TYPES: &str =
    "{Aggregated, Page, PoppedMember, Position, Sample, SearchResults, StreamEntries, make}";

/// The trait whose methods give the type that the reply has by nature.
fn fixed(methods: &[Method], calls: Calls) -> String {
    let mut text = calls.opening(
        "A method for each command, with the type that its reply has by nature.",
        "use std::collections::HashMap;\n",
        "use bytes::Bytes;\n",
        "/// A method for each command, with a fixed type where the command has one reply; the caller chooses it elsewhere.\n\
         /// See [`crate::commands`].\n\
         pub trait TypedCommands ",
        REPLY_TYPES,
    );
    for method in methods {
        let reply = replies::of(&method.name);
        let generics = if reply.is_some() { "" } else { calls.generics() };
        let _ = write!(
            text,
            "\n{}\nfn {}{generics}{} -> {} {{ self.run({}) }}\n",
            method.short_doc(),
            method.name,
            method.params("&self"),
            calls.output(reply.unwrap_or("T")),
            method.call(),
        );
    }
    text.push_str("}\n");
    text
}

/// The methods that append commands to a typed pipeline.
fn batched(methods: &[Method]) -> String {
    let mut text = format!(
        "// Long because: one type has a method for each command.\n\
         //! A method for each command, which appends it to a batch.\n//!\n//! {NOTICE}\n\n\
         use std::collections::HashMap;\n\nuse bytes::Bytes;\n\n\
         use super::{{Batch, Grow}};\nuse crate::args::ToArgs;\nuse crate::commands::{REPLY_TYPES};\n\n\
         impl<B: Grow> Batch<B> {{\n"
    );
    for (index, method) in methods.iter().enumerate() {
        let reply = replies::of(&method.name);
        let generics = if reply.is_some() { "" } else { "<T>" };
        let separator = if index == 0 { "" } else { "\n" };
        let _ = write!(
            text,
            "{separator}{}\npub fn {}{generics}{} -> Batch<B::With<{}>> {{ self.and({}) }}\n",
            method.short_doc(),
            method.name,
            method.params("self"),
            reply.unwrap_or("T"),
            method.call(),
        );
    }
    text.push_str("}\n");
    text
}

/// As `cargo fmt` leaves it.
fn formatted(root: &Path, text: &str) -> anyhow::Result<String> {
    let mut child = Process::new("rustfmt")
        .args(["--edition", "2024", "--config-path"])
        .arg(root)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start rustfmt")?;
    let mut input = child.stdin.take().context("rustfmt has no input")?;
    // Its output is only written once it has read everything.
    input.write_all(text.as_bytes()).context("cannot write to rustfmt")?;
    drop(input);
    let output = child.wait_with_output().context("rustfmt did not end")?;
    if !output.status.success() {
        bail!("rustfmt does not understand what was generated");
    }
    String::from_utf8(output.stdout).context("rustfmt wrote no UTF-8")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn of(name: &str) -> Vec<Method> {
        methods(rows().find(|row| row.name == name).unwrap())
    }

    #[test]
    fn options_are_a_second_function() {
        let set = of("set");
        assert_eq!(set.iter().map(|method| method.name.as_str()).collect::<Vec<_>>(), ["set", "set_with"]);
        assert_eq!(set[0].params("&self"), "(&self, key: impl ToArgs, value: impl ToArgs)");
        assert_eq!(set[1].body(), r#"cmd("SET").arg(key).arg(value).arg(options)"#);
        assert_eq!(of("lpop")[1].params(""), "(key: impl ToArgs, count: impl ToArgs)");
        assert_eq!(of("zadd")[1].body(), r#"cmd("ZADD").arg(key).arg(options).arg(score_members)"#);
    }

    #[test]
    fn tokens_are_written_and_counts_are_counted() {
        assert_eq!(of("xread")[0].body(), r#"cmd("XREAD").arg("STREAMS").arg(keys).arg(ids)"#);
        assert_eq!(of("lmpop")[0].body(), r#"counted(cmd("LMPOP"), 1, keys).arg(where_)"#);
        assert_eq!(of("eval")[0].body(), r#"counted(cmd("EVAL").arg(script), 1, keys).arg(args)"#);
        assert_eq!(of("httl")[0].body(), r#"counted(cmd("HTTL").arg(key).arg("FIELDS"), 1, fields)"#);
        assert_eq!(of("msetex")[0].body(), r#"counted(cmd("MSETEX"), 2, key_values)"#);
        assert_eq!(of("client|no-evict")[0].body(), r#"cmd("CLIENT").arg("NO-EVICT").arg(enabled)"#);
    }

    #[test]
    fn commands_of_modules_have_methods_too() {
        let names = |name| of(name).into_iter().map(|method| method.name).collect::<Vec<_>>();
        assert_eq!(names("json.get"), ["json_get", "json_get_with"]);
        assert_eq!(names("ft._list"), ["ft_list"]);
        assert_eq!(names("ft.cursor|read"), ["ft_cursor_read", "ft_cursor_read_with"]);
        assert_eq!(of("json.mget")[0].body(), r#"cmd("JSON.MGET").arg(keys).arg(path)"#);
        assert_eq!(
            of("ft.cursor|read")[0].body(),
            r#"cmd("FT.CURSOR").arg("READ").arg(index).arg(cursor_id)"#
        );
        assert_eq!(of("cms.merge")[0].body(), r#"counted(cmd("CMS.MERGE").arg(destination), 1, sources)"#);
        assert_eq!(of("ts.mget")[0].body(), r#"cmd("TS.MGET").arg("FILTER").arg(filters)"#);
        assert_eq!(of("bf.insert")[0].body(), r#"cmd("BF.INSERT").arg(key).arg("ITEMS").arg(items)"#);
    }

    #[test]
    fn every_name_is_one_methods_and_every_reply_has_a_method() {
        let names: Vec<String> = rows().flat_map(methods).map(|method| method.name).collect();
        let unique: BTreeSet<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(unique.len(), names.len());
        let orphans: Vec<_> = replies::names().filter(|name| !unique.contains(name)).collect();
        assert!(orphans.is_empty(), "{orphans:?}");
    }
}
