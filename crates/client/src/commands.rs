//! Every command of the command table as a function and as methods.
//!
//! Owns the typed surface: [`make`] has a function for each command, which gives a [`Cmd`]; [`Commands`] and
//! [`TypedCommands`] have a method for each, which sends it; [`Batch`] has one for each, which appends it to a pipeline
//! or transaction. All of it is written from the command table by `cargo xtask fix`, which also checks it: a command
//! that a server gets appears here by itself. Does **not** own arguments ([`ToArgs`]) and replies
//! ([`FromReply`]).
//!
//! ```no_run
//! use std::collections::HashMap;
//! use towline_client::commands::{Commands, TypedCommands, batch};
//!
//! # async fn run(client: &towline_client::Client) -> Result<(), towline_client::Error> {
//! // The caller says what the reply is to be:
//! let user: HashMap<String, String> = Commands::hgetall(client, "user:1").await?;
//! // or takes what it is by nature:
//! let length: u64 = TypedCommands::strlen(client, "greeting").await?;
//! // In a pipeline each command's type becomes a place of the result:
//! let (visits, name) = batch().incr("visits").hget("user:1", "name").query(client).await?;
//! # let _ = (user, length, visits, name);
//! # Ok(())
//! # }
//! ```
//!
//! With one of the two traits in scope they are methods: `client.hgetall("user:1")`. [`Client::get`], `set` and `publish`
//! are methods of the client itself and need no trait.
//!
//! | in the table | here |
//! |---|---|
//! | `key`, `key [key ...]`, `field value [field value ...]` | one parameter, whatever gives these arguments: a value, a slice, a tuple, a map |
//! | `numkeys key [key ...]` | one parameter; the count is counted |
//! | `STREAMS`, `FIELDS` and other words | written by the function |
//! | `[EX seconds]`, `[COUNT count]` | left out; the function `..._with` has a parameter in their place, such as `("EX", 60)` |
//! | `[arg ...]` | one parameter, which may be empty: `NONE` |
//! | a word of Rust (`type`) | with an underscore: `type_` |
//!
//! Commands of modules (`json_get`, `ft_search`, `ts_range`, `bf_add`, `vsim`, ...) are among them, with the same names as at
//! the server, `_` for `.`; a server without the module answers with an error.
//!
//! Commands that turn a connection into something else (`SUBSCRIBE`, `MONITOR`) are not among them.

mod any;
mod batch;
pub mod make;
mod modules;
mod typed;

pub use any::Commands;
pub use batch::{Batch, Grow, batch};
pub use modules::{Aggregated, Document, Fp32, Sample, SearchResults};
pub use typed::TypedCommands;

use bytes::Bytes;
use std::future::Future;
use towline_client_proto::Error;

use crate::args::{Args, ToArgs};
use crate::client::Client;
use crate::cmd::Cmd;
use crate::value::FromReply;

/// No arguments, for a parameter that may be empty.
pub const NONE: Option<&str> = None;

/// Entries of a stream: the id, the fields with their values.
pub type StreamEntries = Vec<(String, Vec<(Bytes, Bytes)>)>;

/// What one step of a scan finds: the cursor of the next step, 0 at the end, and the elements.
pub type Page<T> = (u64, Vec<T>);

/// A member that was popped: the sorted set's key, the member, its score.
pub type PoppedMember = (Bytes, Bytes, f64);

/// Longitude and latitude in degrees.
pub type Position = (f64, f64);

impl Commands for Client {
    fn run<T: FromReply + Send>(&self, cmd: Cmd) -> impl Future<Output = Result<T, Error>> + Send {
        cmd.query(self)
    }
}

impl TypedCommands for Client {
    fn run<T: FromReply + Send>(&self, cmd: Cmd) -> impl Future<Output = Result<T, Error>> + Send {
        cmd.query(self)
    }
}

/// Appends how many groups of `size` arguments `values` has, and these.
fn counted(mut cmd: Cmd, size: usize, values: impl ToArgs) -> Cmd {
    let mut args = Args::default();
    values.write_args(&mut args);
    cmd.push(args.len() / size).push(args);
    cmd
}

#[cfg(test)]
mod tests {
    use super::make;
    use super::*;
    use towline_spec::resolve;

    fn words(cmd: &Cmd) -> Vec<String> {
        cmd.args().map(|arg| String::from_utf8_lossy(arg).into_owned()).collect()
    }

    #[test]
    fn commands_are_what_a_person_would_write() {
        assert_eq!(
            words(&make::strings::set_with("k", b"v", ("EX", 60, "NX"))),
            ["SET", "k", "v", "EX", "60", "NX"]
        );
        assert_eq!(words(&make::zsets::zinter(["a", "b"])), ["ZINTER", "2", "a", "b"]);
        assert_eq!(words(&make::strings::msetex([("a", 1), ("b", 2)])), ["MSETEX", "2", "a", "1", "b", "2"]);
        assert_eq!(words(&make::hashes::httl("h", ["f", "g"])), ["HTTL", "h", "FIELDS", "2", "f", "g"]);
        assert_eq!(
            words(&make::streams::xread_with(("COUNT", 2), ["s", "t"], ["0", "$"])),
            ["XREAD", "COUNT", "2", "STREAMS", "s", "t", "0", "$"]
        );
        assert_eq!(words(&make::scripting::eval("return 1", NONE, NONE)), ["EVAL", "return 1", "0"]);
        assert_eq!(words(&make::connection::client_no_evict("ON")), ["CLIENT", "NO-EVICT", "ON"]);
    }

    #[test]
    fn the_table_knows_what_is_made() {
        for cmd in [
            make::keys::type_("k"),
            make::keys::object_encoding("k"),
            make::streams::xgroup_create("s", "g", "$"),
            make::server::config_get(["maxmemory"]),
            make::transactions::watch(["k"]),
        ] {
            let args: Vec<&[u8]> = cmd.args().collect();
            let row = resolve(&args[..]).unwrap();
            assert!(row.accepts_arity(args.len()), "{}", row.name);
        }
    }
}
