//! `--bigkeys` and `--memkeys`: the largest key of each type, and averages.
//!
//! Owns the sampling and the report. Every key is looked at once, in pages of one `SCAN` and two round trips.

use bytes::Bytes;
use towline_resp::frame::Frame;

use crate::cli::error::CliError;
use crate::cli::modes::{Pages, accepted};
use crate::cli::options::{ScanOptions, Settings};
use crate::cli::render::quoted;
use crate::cli::session::Session;

/// Pages between two pauses.
const PAGES_PER_PAUSE: u64 = 100;

/// Types that are told apart. A server has a dozen with modules; a hostile one could invent more.
const TYPES_MAX: usize = 64;

/// What counts as the size of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Size {
    /// Members, or bytes of a string.
    Members,
    /// `MEMORY USAGE`.
    Memory {
        /// Members that the server looks at; `None`: its own default.
        samples: Option<u32>,
    },
}

/// What is known of one type's keys.
#[derive(Debug)]
struct TypeTally {
    name: String,
    /// The command that tells a key's size, and the unit of its reply.
    measure: Option<(&'static str, &'static str)>,
    keys: u64,
    total: u64,
    biggest: Option<(Bytes, u64)>,
}

impl TypeTally {
    fn new(name: String) -> Self {
        let measure = match name.as_str() {
            "string" => Some(("STRLEN", "bytes")),
            "list" => Some(("LLEN", "items")),
            "set" => Some(("SCARD", "members")),
            "hash" => Some(("HLEN", "fields")),
            "zset" => Some(("ZCARD", "members")),
            "stream" => Some(("XLEN", "entries")),
            _ => None,
        };
        Self { name, measure, keys: 0, total: 0, biggest: None }
    }

    fn unit(&self, size: Size) -> &'static str {
        match (size, self.measure) {
            (Size::Members, Some((_, unit))) => unit,
            (Size::Members, None) => "?",
            (Size::Memory { .. }, _) => "bytes",
        }
    }

    /// Whether the key is the biggest so far.
    fn add(&mut self, key: &Bytes, size: u64) -> bool {
        self.keys += 1;
        self.total = self.total.saturating_add(size);
        let is_biggest = self.biggest.as_ref().is_none_or(|(_, biggest)| size > *biggest);
        if is_biggest {
            // A copy: the key itself would keep its whole page in memory.
            self.biggest = Some((Bytes::copy_from_slice(key), size));
        }
        is_biggest
    }
}

/// What is known of all keys.
#[derive(Debug)]
struct Tally {
    size: Size,
    keys: u64,
    key_bytes: u64,
    types: Vec<TypeTally>,
}

impl Tally {
    fn new(size: Size) -> Self {
        let names = ["list", "hash", "string", "stream", "set", "zset"];
        let types = names.into_iter().map(|name| TypeTally::new(name.to_owned())).collect();
        Self { size, keys: 0, key_bytes: 0, types }
    }

    /// The place of a type, made now if it is new and there is room.
    fn place(&mut self, name: &[u8]) -> Option<usize> {
        let name = String::from_utf8_lossy(name);
        if let Some(place) = self.types.iter().position(|known| known.name == name) {
            return Some(place);
        }
        if self.types.len() == TYPES_MAX {
            return None;
        }
        self.types.push(TypeTally::new(name.into_owned()));
        Some(self.types.len() - 1)
    }

    fn name_width(&self) -> usize {
        self.types.iter().map(|known| known.name.len()).max().unwrap_or(0)
    }

    fn percent(&self, part: u64) -> f64 {
        if self.keys == 0 { 0.0 } else { 100.0 * part as f64 / self.keys as f64 }
    }

    fn summary(&self) -> String {
        let average = |total: u64, count: u64| if count == 0 { 0.0 } else { total as f64 / count as f64 };
        let width = self.name_width();
        let mut text = format!(
            "\n-------- summary -------\n\nSampled {} keys in the keyspace!\nTotal key length in bytes is {} (avg len {:.2})\n\n",
            self.keys,
            self.key_bytes,
            average(self.key_bytes, self.keys)
        );
        for known in &self.types {
            if let Some((key, size)) = &known.biggest {
                let (name, unit) = (&known.name, known.unit(self.size));
                text.push_str(&format!("Biggest {name:>width$} found {} has {size} {unit}\n", shown(key)));
            }
        }
        text.push('\n');
        for known in &self.types {
            text.push_str(&format!(
                "{} {}s with {} {} ({:05.2}% of keys, avg size {:.2})\n",
                known.keys,
                known.name,
                known.total,
                known.unit(self.size),
                self.percent(known.keys),
                average(known.total, known.keys)
            ));
        }
        text
    }
}

/// Samples all keys, says so whenever a bigger one turns up, and ends with a summary; Ctrl-C ends it early.
///
/// # Errors
/// The server refused a command, the connection broke, or the output is closed.
pub(super) fn run(
    session: &mut Session,
    settings: &Settings,
    options: &ScanOptions,
    size: Size,
) -> Result<(), CliError> {
    session.output().write(
        b"\n# Scanning the entire keyspace to find biggest keys as well as\n\
          # average sizes per key type.  You can use -i 0.1 to sleep 0.1 sec\n\
          # per 100 SCAN commands (not usually needed).\n\n",
    )?;
    session.connect()?;
    let Frame::Integer(total) = accepted("DBSIZE", session.request(&["DBSIZE"])?)? else {
        return Err(CliError::UnexpectedReply { command: "DBSIZE" });
    };
    let mut tally = Tally::new(size);
    session.catch_interrupts()?;
    match sample(session, settings, options, total.unsigned_abs(), &mut tally) {
        Ok(()) | Err(CliError::Interrupted) => {}
        Err(error) => return Err(error),
    }
    session.output().write(tally.summary().as_bytes())
}

fn sample(
    session: &mut Session,
    settings: &Settings,
    options: &ScanOptions,
    total: u64,
    tally: &mut Tally,
) -> Result<(), CliError> {
    let mut pages = Pages::new(options);
    let mut page_count = 0;
    while let Some(keys) = pages.next(session)? {
        if session.take_interrupt() {
            return Err(CliError::Interrupted);
        }
        page(session, &keys, total, tally)?;
        page_count += 1;
        if let Some(interval) = settings.interval.filter(|_| page_count % PAGES_PER_PAUSE == 0) {
            std::thread::sleep(interval);
        }
    }
    Ok(())
}

fn page(session: &mut Session, keys: &[Bytes], total: u64, tally: &mut Tally) -> Result<(), CliError> {
    let commands: Vec<Vec<&[u8]>> = keys.iter().map(|key| vec![&b"TYPE"[..], key]).collect();
    let types = session.request_all(&commands)?;
    let mut found = Vec::new();
    for (key, reply) in keys.iter().zip(types) {
        let Frame::Simple(name) = accepted("TYPE", reply)? else {
            return Err(CliError::UnexpectedReply { command: "TYPE" });
        };
        // A key may be gone since the scan saw it.
        if &name[..] != b"none"
            && let Some(place) = tally.place(&name)
        {
            found.push((key, place));
        }
    }
    let sizes = sizes(session, &found, tally)?;
    let percent = if total == 0 { 0.0 } else { 100.0 * tally.keys as f64 / total as f64 };
    for ((key, place), size) in found.into_iter().zip(sizes) {
        tally.keys += 1;
        tally.key_bytes += key.len() as u64;
        let width = tally.name_width();
        let unit = tally.types[place].unit(tally.size);
        if tally.types[place].add(key, size) {
            let name = &tally.types[place].name;
            session.output().line(&format!(
                "[{percent:05.2}%] Biggest {name:<width$} found so far {} with {size} {unit}",
                shown(key)
            ))?;
        }
    }
    Ok(())
}

/// The size of each key; 0 where the server does not tell.
fn sizes(session: &mut Session, found: &[(&Bytes, usize)], tally: &Tally) -> Result<Vec<u64>, CliError> {
    let samples = match tally.size {
        Size::Memory { samples: Some(samples) } => Some(samples.to_string()),
        _ => None,
    };
    let mut commands: Vec<Vec<&[u8]>> = Vec::new();
    for (key, place) in found {
        let command = match (tally.size, tally.types[*place].measure) {
            (Size::Memory { .. }, _) => {
                let mut command: Vec<&[u8]> = vec![b"MEMORY", b"USAGE", key];
                if let Some(samples) = &samples {
                    command.extend([&b"SAMPLES"[..], samples.as_bytes()]);
                }
                command
            }
            (Size::Members, Some((name, _))) => vec![name.as_bytes(), key],
            // A module's type: nothing tells its size, but the replies have to stay in step.
            (Size::Members, None) => vec![&b"TYPE"[..], key],
        };
        commands.push(command);
    }
    let replies = session.request_all(&commands)?;
    replies
        .into_iter()
        .map(|reply| match reply {
            Frame::Integer(size) => Ok(size.unsigned_abs()),
            // The key is gone, or has another type by now.
            Frame::Null | Frame::NullArray | Frame::Simple(_) => Ok(0),
            Frame::Error(text) if text.starts_with(b"WRONGTYPE") => Ok(0),
            reply => {
                accepted("MEMORY USAGE", reply)?;
                Ok(0)
            }
        })
        .collect()
}

/// The key in single and double quotes, as redis-cli shows it.
fn shown(key: &[u8]) -> String {
    let mut bytes = vec![b'\''];
    quoted(key, &mut bytes);
    bytes.push(b'\'');
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_names_the_biggest_key_of_each_type() {
        let mut tally = Tally::new(Size::Members);
        for (name, key, size) in [
            ("string", "a", 3),
            ("string", "b\n", 9),
            ("string", "c", 9),
            ("hash", "h", 2),
            ("ReJSON-RL", "j", 0),
        ] {
            let place = tally.place(name.as_bytes()).unwrap();
            tally.keys += 1;
            tally.key_bytes += key.len() as u64;
            tally.types[place].add(&Bytes::copy_from_slice(key.as_bytes()), size);
        }
        let text = tally.summary();
        for line in [
            "Sampled 5 keys in the keyspace!",
            "Total key length in bytes is 6 (avg len 1.20)",
            "Biggest    string found '\"b\\n\"' has 9 bytes",
            "3 strings with 21 bytes (60.00% of keys, avg size 7.00)",
            "1 hashs with 2 fields (20.00% of keys, avg size 2.00)",
            "0 sets with 0 members (00.00% of keys, avg size 0.00)",
            "1 ReJSON-RLs with 0 ? (20.00% of keys, avg size 0.00)",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is missing in\n{text}");
        }
    }

    #[test]
    fn types_are_bounded() {
        let mut tally = Tally::new(Size::Members);
        let places = (0..2 * TYPES_MAX).filter_map(|index| tally.place(format!("t{index}").as_bytes()));
        assert_eq!(places.count(), TYPES_MAX - 6);
        assert!(tally.place(b"list").is_some());
    }
}
