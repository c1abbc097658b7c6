//! `--stat`: a line about the server each second.
//!
//! Owns which figures of `INFO` are shown. Does not own their meaning.

use std::time::Duration;

use towline_resp::frame::Frame;

use crate::cli::error::CliError;
use crate::cli::modes::accepted;
use crate::cli::options::Settings;
use crate::cli::session::Session;

/// Lines between two headings.
const LINES_PER_HEADING: u64 = 20;

/// Pause between two lines.
const INTERVAL_DEFAULT: Duration = Duration::from_secs(1);

const HEADING: &str = "\
------- data ------ --------------------- load -------------------- - child -
keys       mem      clients blocked requests            connections          ";

/// Prints lines until the process is ended, or `-r` of them.
///
/// # Errors
/// The server refused `INFO`, the connection broke, or the output is closed.
pub(super) fn run(session: &mut Session, settings: &Settings) -> Result<(), CliError> {
    let mut requests_before = None;
    let mut line_count = 0;
    let mut left = settings.repeat.unwrap_or(-1);
    while left != 0 {
        let info = match accepted("INFO", session.request(&["INFO"])?)? {
            Frame::Bulk(text) | Frame::Verbatim { text, .. } => String::from_utf8_lossy(&text).into_owned(),
            _ => return Err(CliError::UnexpectedReply { command: "INFO" }),
        };
        if line_count % LINES_PER_HEADING == 0 {
            session.output().line(HEADING)?;
        }
        line_count += 1;
        let requests = number(&info, "total_commands_processed");
        session.output().line(&line(&info, requests, requests_before))?;
        requests_before = Some(requests);
        left -= i64::from(left > 0);
        if left == 0 {
            break;
        }
        std::thread::sleep(settings.interval.unwrap_or(INTERVAL_DEFAULT));
    }
    Ok(())
}

fn line(info: &str, requests: u64, requests_before: Option<u64>) -> String {
    let keys: u64 = info.lines().filter_map(keys_of).sum();
    let delta = requests.saturating_sub(requests_before.unwrap_or(requests));
    let child = ["rdb_bgsave_in_progress", "aof_rewrite_in_progress"].map(|name| number(info, name) > 0);
    let child = match child {
        [true, _] => "SAVE",
        [_, true] => "AOF",
        _ => "",
    };
    format!(
        "{:<11}{:<9}{:<8}{:<8}{:<20}{:<12}{child:<9}",
        keys,
        human(number(info, "used_memory")),
        number(info, "connected_clients"),
        number(info, "blocked_clients"),
        format!("{requests} (+{delta})"),
        number(info, "total_connections_received"),
    )
}

/// The value of a field of `INFO`; 0 where it is missing.
fn number(info: &str, name: &str) -> u64 {
    let mut fields = info.lines().filter_map(|line| line.split_once(':'));
    fields.find(|(field, _)| *field == name).and_then(|(_, value)| value.trim().parse().ok()).unwrap_or(0)
}

/// The keys of a line such as `db0:keys=3,expires=0,avg_ttl=0`.
fn keys_of(line: &str) -> Option<u64> {
    let (name, value) = line.split_once(':')?;
    let digits = name.strip_prefix("db")?;
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    value.strip_prefix("keys=")?.split(',').next()?.parse().ok()
}

/// Bytes with two decimals of the next binary unit.
fn human(bytes: u64) -> String {
    const UNITS: [char; 5] = ['K', 'M', 'G', 'T', 'P'];
    if bytes < 1024 {
        return format!("{bytes}B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.2}{}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_sums_up_info() {
        let info = "# Clients\r\nconnected_clients:3\r\nblocked_clients:1\r\nused_memory:1945600\r\n\
            total_connections_received:184\r\nrdb_bgsave_in_progress:1\r\n\
            db0:keys=9,expires=0,avg_ttl=0\r\ndb3:keys=1,expires=0\r\ndbx:keys=5\r\n";
        assert_eq!(
            line(info, 1170, Some(1169)),
            "10         1.86M    3       1       1170 (+1)           184         SAVE     "
        );
        assert_eq!(HEADING.lines().last().unwrap().len(), line("", 0, None).len());
    }

    #[test]
    fn sizes_are_readable() {
        for (bytes, text) in
            [(0, "0B"), (1023, "1023B"), (1024, "1.00K"), (1 << 40, "1.00T"), (u64::MAX, "16384.00P")]
        {
            assert_eq!(human(bytes), text);
        }
    }
}
