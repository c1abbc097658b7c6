//! The writer's side of an increment: commands to bytes.
//!
//! Owns the encoding, the database that the file is in, and the timestamp annotations. Does not own the file.

/// Encodes commands for one file.
///
/// Each file starts with a writer of its own: a reader knows of no database at the start of a file but 0, and
/// whoever writes a `SELECT` into one file must not rely on it in the next.
///
/// ```
/// use towline_persist::aof::LogWriter;
///
/// let (mut writer, mut out) = (LogWriter::new(), Vec::new());
/// writer.timestamp(&mut out, 1_796_033_117);
/// writer.command(&mut out, 0, [&b"SET"[..], b"k", b"v"]);
/// writer.command(&mut out, 0, [&b"DEL"[..], b"k"]);
/// assert_eq!(out, b"#TS:1796033117\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n\
///     *2\r\n$3\r\nDEL\r\n$1\r\nk\r\n");
/// ```
#[derive(Debug, Default)]
pub struct LogWriter {
    database: Option<u32>,
    timestamp_s: Option<u64>,
}

impl LogWriter {
    /// At the start of a file.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes the time of what follows, in seconds since the Unix epoch, unless it was noted already. A time
    /// before the last one is not written: readers rely on the order.
    pub fn timestamp(&mut self, out: &mut Vec<u8>, unix_s: u64) {
        if self.timestamp_s.is_none_or(|last_s| unix_s > last_s) {
            self.timestamp_s = Some(unix_s);
            out.extend_from_slice(b"#TS:");
            number(out, unix_s);
        }
    }

    /// Appends a command for `database`, and the `SELECT` that it needs.
    pub fn command<'a, A>(&mut self, out: &mut Vec<u8>, database: u32, args: A)
    where
        A: IntoIterator<Item = &'a [u8], IntoIter: ExactSizeIterator>,
    {
        self.select(out, database);
        encode(out, args);
    }

    /// Appends a command for `database` that is encoded already, and the `SELECT` that it needs.
    pub fn encoded(&mut self, out: &mut Vec<u8>, database: u32, command: &[u8]) {
        self.select(out, database);
        out.extend_from_slice(command);
    }

    /// Starts a transaction in `database`: up to the `EXEC` that [`exec`](Self::exec) writes, everything is
    /// loaded or nothing.
    pub fn multi(&mut self, out: &mut Vec<u8>, database: u32) {
        // Outside the transaction, so that a cut before it leaves the writer's idea of the database right.
        self.select(out, database);
        encode(out, [&b"MULTI"[..]]);
    }

    /// Ends a transaction.
    pub fn exec(&mut self, out: &mut Vec<u8>) {
        encode(out, [&b"EXEC"[..]]);
    }

    fn select(&mut self, out: &mut Vec<u8>, database: u32) {
        if self.database != Some(database) {
            self.database = Some(database);
            encode(out, [&b"SELECT"[..], database.to_string().as_bytes()]);
        }
    }
}

fn encode<'a, A>(out: &mut Vec<u8>, args: A)
where
    A: IntoIterator<Item = &'a [u8], IntoIter: ExactSizeIterator>,
{
    let args = args.into_iter();
    out.push(b'*');
    number(out, args.len() as u64);
    for arg in args {
        out.push(b'$');
        number(out, arg.len() as u64);
        out.extend_from_slice(arg);
        out.extend_from_slice(b"\r\n");
    }
}

/// Appends a number and a line end.
fn number(out: &mut Vec<u8>, value: u64) {
    let mut text = itoa::Buffer::new();
    out.extend_from_slice(text.format(value).as_bytes());
    out.extend_from_slice(b"\r\n");
}
