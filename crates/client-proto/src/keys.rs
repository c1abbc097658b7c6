//! The keys of an encoded command.
//!
//! Owns the reading of keys out of RESP bytes that this client is about to send or has sent. Does not own key positions
//! (`towline-spec`), slots, or who waits for whom.
//!
//! It answers one question: may this command run before or beside another one without anybody noticing? Two commands
//! with known and different keys may. So whatever is not certain is [`KeysIn::Unknown`]: bytes that are no whole
//! command, commands that are not in the table, and commands about the whole data set or about the connection.

use towline_spec::{ArgList, Command, CommandId, Flags, SideEffect, for_each_key, id, resolve_any};

/// What is known of the keys of a command, or of a `MULTI` … `EXEC` unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeysIn {
    /// These are all, so many; one that is given twice counts twice. At least one.
    Keys(usize),
    /// It has no keys, and neither depends on data or on the connection's state nor changes them (`PING`).
    Keyless,
    /// It may concern any key: it has to wait for everything before it, and everything after it waits for it.
    Unknown,
}

/// Commands whose answer is the same at any place in the stream.
const KEYLESS: [CommandId; 7] = [
    id("ping"),
    id("echo"),
    id("time"),
    id("command"),
    id("command|count"),
    id("command|docs"),
    id("command|info"),
];

const MULTI: CommandId = id("multi");
const EXEC: CommandId = id("exec");

/// Calls `each` with every key in `bytes`, which hold one command or one `MULTI` … `EXEC` unit, and says how much is
/// known. Nothing is called unless all keys are known. Channels of sharded publish and subscribe count as keys.
///
/// Takes time in proportion to the number of arguments, and no memory for commands of up to 16 of them.
///
/// ```
/// use towline_client_proto::{KeysIn, keys_in};
///
/// let mut keys = Vec::new();
/// let found = keys_in(b"*3\r\n$4\r\nMGET\r\n$1\r\na\r\n$1\r\nb\r\n", |key| keys.push(key.to_vec()));
/// assert_eq!(found, KeysIn::Keys(2));
/// assert_eq!(keys, [b"a", b"b"]);
/// assert_eq!(keys_in(b"*1\r\n$8\r\nFLUSHALL\r\n", |_| ()), KeysIn::Unknown);
/// ```
pub fn keys_in(bytes: &[u8], mut each: impl FnMut(&[u8])) -> KeysIn {
    let Some(count) = walk(bytes, &mut |_| ()) else { return KeysIn::Unknown };
    if count == 0 {
        return KeysIn::Keyless;
    }
    walk(bytes, &mut each);
    KeysIn::Keys(count)
}

/// The number of keys; `None` if they are not known.
fn walk(bytes: &[u8], each: &mut dyn FnMut(&[u8])) -> Option<usize> {
    let mut rest = bytes;
    let mut args = Args::default();
    args.read(&mut rest)?;
    let first = resolve_any(&args)?;
    if first.id != MULTI {
        return if rest.is_empty() { keys_of(first, &args, each) } else { None };
    }
    let mut count = 0;
    loop {
        args.read(&mut rest)?;
        let command = resolve_any(&args)?;
        if command.id == EXEC {
            return rest.is_empty().then_some(count);
        }
        count += keys_of(command, &args, each)?;
    }
}

fn keys_of(command: &Command, args: &Args<'_>, each: &mut dyn FnMut(&[u8])) -> Option<usize> {
    if KEYLESS.contains(&command.id) {
        return Some(0);
    }
    let is_elsewhere = command.flags.contains(Flags::TOUCHES_ARBITRARY_KEYS)
        || matches!(command.effect, SideEffect::Connection | SideEffect::Admin);
    if is_elsewhere || !command.accepts_arity(args.len()) {
        return None;
    }
    let mut count = 0;
    for_each_key(command, args, |index, _| {
        each(args.arg(index));
        count += 1;
    })
    .ok()?;
    (count > 0).then_some(count)
}

/// Arguments that are kept without an allocation.
const INLINE_MAX: usize = 16;

/// The arguments of one command, as slices of its bytes.
#[derive(Default)]
struct Args<'a> {
    inline: [&'a [u8]; INLINE_MAX],
    /// Those after the first [`INLINE_MAX`].
    more: Vec<&'a [u8]>,
    len: usize,
}

impl ArgList for Args<'_> {
    fn len(&self) -> usize {
        self.len
    }

    fn arg(&self, index: usize) -> &[u8] {
        match self.inline.get(index) {
            Some(arg) => arg,
            None => self.more[index - INLINE_MAX],
        }
    }
}

impl<'a> Args<'a> {
    /// Replaces the arguments by those of the command at the start of `rest`, and moves `rest` past it. `None` if
    /// there is no whole command.
    fn read(&mut self, rest: &mut &'a [u8]) -> Option<()> {
        self.len = 0;
        self.more.clear();
        let count = header(b'*', rest)?;
        for _ in 0..count {
            let len = header(b'$', rest)?;
            let arg = rest.get(..len)?;
            *rest = rest[len..].strip_prefix(b"\r\n")?;
            match self.inline.get_mut(self.len) {
                Some(place) => *place = arg,
                None => self.more.push(arg),
            }
            self.len += 1;
        }
        (count > 0).then_some(())
    }
}

/// A mark, a number and a line end. Numbers of more than nine digits are in no command that this client sends.
fn header(mark: u8, rest: &mut &[u8]) -> Option<usize> {
    let line = rest.strip_prefix(&[mark])?;
    let digits = line.iter().position(|byte| !byte.is_ascii_digit()).filter(|len| (1..=9).contains(len))?;
    let value = line[..digits].iter().fold(0, |sum, digit| sum * 10 + usize::from(digit - b'0'));
    *rest = line[digits..].strip_prefix(b"\r\n")?;
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use towline_resp::frame::encode_command;

    fn encoded(commands: &[&str]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for command in commands {
            encode_command(&command.split(' ').collect::<Vec<_>>(), &mut bytes);
        }
        bytes
    }

    /// The keys with a space between, or what else is known.
    fn text(commands: &[&str]) -> String {
        let mut keys = Vec::new();
        match keys_in(&encoded(commands), |key| keys.push(String::from_utf8_lossy(key).into_owned())) {
            KeysIn::Keys(count) => {
                assert_eq!(count, keys.len());
                keys.join(" ")
            }
            other => {
                assert!(keys.is_empty(), "{commands:?} called with {keys:?}");
                format!("{other:?}")
            }
        }
    }

    #[test]
    fn keys_are_found_where_the_table_says() {
        for (command, expected) in [
            ("GET a", "a"),
            ("get a", "a"),
            ("SET a 1 EX 5", "a"),
            ("MSET a 1 b 2", "a b"),
            ("DEL a b c", "a b c"),
            ("DEL a a", "a a"),
            ("EVALSHA f00 2 a b c", "a b"),
            ("XREAD COUNT 5 STREAMS s t 0 0", "s t"),
            ("ZUNIONSTORE d 2 a b", "d a b"),
            ("BLPOP a b 0", "a b"),
            ("OBJECT ENCODING a", "a"),
            ("INCR a", "a"),
            ("RENAME a b", "a b"),
        ] {
            assert_eq!(text(&[command]), expected, "{command}");
        }
    }

    #[test]
    fn what_is_not_certain_is_unknown() {
        for command in [
            "FLUSHALL",
            "DBSIZE",
            "KEYS *",
            "SCAN 0",
            "RANDOMKEY",
            "SELECT 1",
            "CLIENT NO-EVICT on",
            "CLIENT REPLY OFF",
            "AUTH password",
            "RESET",
            "SUBSCRIBE a",
            "PUBLISH a b",
            "WATCH a",
            "UNWATCH",
            "MULTI",
            "EXEC",
            "SWAPDB 0 1",
            "CONFIG GET *",
            "EVALSHA f00 0",
            "EVALSHA f00 9 a",
            // Its patterns name keys that follow from data.
            "SORT a BY w_*",
            "GET",
            "GET a b",
            "NOSUCHCOMMAND a",
            "OBJECT NOSUCH a",
            "SHUTDOWN",
        ] {
            assert_eq!(text(&[command]), "Unknown", "{command}");
        }
        for command in ["PING", "ping hello", "ECHO x", "TIME", "COMMAND", "COMMAND COUNT"] {
            assert_eq!(text(&[command]), "Keyless", "{command}");
        }
    }

    #[test]
    fn a_unit_has_the_keys_of_all_its_commands() {
        assert_eq!(text(&["MULTI", "SET a 1", "PING", "MGET b c", "EXEC"]), "a b c");
        assert_eq!(text(&["MULTI", "EXEC"]), "Keyless");
        assert_eq!(text(&["multi", "PING", "exec"]), "Keyless");
        // One command about everything makes the unit one.
        assert_eq!(text(&["MULTI", "SET a 1", "FLUSHALL", "EXEC"]), "Unknown");
        assert_eq!(text(&["MULTI", "SET a 1"]), "Unknown");
        assert_eq!(text(&["MULTI", "SET a 1", "DISCARD"]), "Unknown");
        assert_eq!(text(&["MULTI", "SET a 1", "EXEC", "GET b"]), "Unknown");
        assert_eq!(text(&["MULTI", "MULTI", "EXEC"]), "Unknown");
        assert_eq!(text(&["GET a", "GET b"]), "Unknown", "two commands are no unit");
    }

    #[test]
    fn bytes_that_are_no_whole_command_are_unknown() {
        let whole = encoded(&["MULTI", "SET a 1", "MGET b c", "EXEC"]);
        for end in 0..whole.len() {
            assert_eq!(keys_in(&whole[..end], |_| panic!("a key of half a unit")), KeysIn::Unknown, "{end}");
        }
        for bytes in [
            &b"PING\r\n"[..],
            b"*0\r\n",
            b"*-1\r\n",
            b"*1\r\n$-1\r\n",
            b"*1\r\n$9999999999\r\nPING\r\n",
            b"*999999999\r\n$4\r\nPING\r\n",
            b"*1\n$4\nPING\n",
            b"*2\r\n$3\r\nGET\r\n$1\r\nab\r\n",
            b"*2\r\n$3\r\nGET\r\n+a\r\n",
        ] {
            assert_eq!(keys_in(bytes, |_| ()), KeysIn::Unknown, "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn many_arguments_and_any_bytes_in_keys() {
        let keys: Vec<String> = (0..100).map(|n| format!("k{n}")).collect();
        assert_eq!(text(&[&format!("DEL {}", keys.join(" "))]), keys.join(" "));
        let mut bytes = Vec::new();
        encode_command(&[&b"GET"[..], b"\r\n\0\xff"], &mut bytes);
        let mut key = Vec::new();
        assert_eq!(keys_in(&bytes, |found| key.extend_from_slice(found)), KeysIn::Keys(1));
        assert_eq!(key, b"\r\n\0\xff");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(bytes: Vec<u8>) {
            let _ = keys_in(&bytes, |_| ());
        }

        #[test]
        fn any_arguments_of_any_command_are_read_without_panic(
            row in 0..towline_spec::COUNT,
            args in prop::collection::vec("[a-z0-9*-]{0,6}|STREAMS|STORE|KEYS|-?[0-9]{1,3}", 0..24),
            is_unit: bool,
        ) {
            let name = towline_spec::rows()[row].name;
            let words: Vec<&str> = name.split('|').chain(args.iter().map(String::as_str)).collect();
            let mut bytes = Vec::new();
            if is_unit {
                encode_command(&["MULTI"], &mut bytes);
            }
            encode_command(&words, &mut bytes);
            if is_unit {
                encode_command(&["EXEC"], &mut bytes);
            }
            let mut keys = 0;
            let found = keys_in(&bytes, |key| {
                assert!(words.iter().any(|word| word.as_bytes() == key));
                keys += 1;
            });
            match found {
                KeysIn::Keys(count) => prop_assert!(count == keys && count > 0),
                KeysIn::Keyless | KeysIn::Unknown => prop_assert_eq!(keys, 0),
            }
        }
    }
}
