//! CPU time, memory and listener counters, read from `/proc`.
//!
//! Owns the readings and nothing of their meaning. Works on Linux; elsewhere every reading is absent.

use std::fs;
use std::path::Path;

/// CPU nanoseconds that process `pid` has used, over all its threads; `None` when it cannot be read.
///
/// The scheduler's own account has nanosecond steps, but a running thread's figure is up to one tick old.
pub(crate) fn process_ns(pid: u32) -> Option<u64> {
    tasks_ns(Path::new(&format!("/proc/{pid}/task")))
}

/// CPU nanoseconds that this process has used.
pub(crate) fn own_ns() -> Option<u64> {
    tasks_ns(Path::new("/proc/self/task"))
}

fn tasks_ns(directory: &Path) -> Option<u64> {
    let mut total = 0_u64;
    for task in fs::read_dir(directory).ok()? {
        // A thread that ended between listing and reading takes its time with it; the others still count.
        let Ok(text) = fs::read_to_string(task.ok()?.path().join("schedstat")) else { continue };
        total += text.split_ascii_whitespace().next()?.parse::<u64>().ok()?;
    }
    Some(total)
}

/// Resident bytes of process `pid`.
pub(crate) fn rss_bytes(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.split_ascii_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}

/// Connections that full accept queues of this machine have refused since boot (`ListenOverflows`).
pub(crate) fn listen_overflows() -> Option<u64> {
    field(&fs::read_to_string("/proc/net/netstat").ok()?, "TcpExt:", "ListenOverflows")
}

/// The value under `name` in a pair of lines (names, then values) that begin with `prefix`.
fn field(text: &str, prefix: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter(|line| line.starts_with(prefix));
    let names = lines.next()?.split_ascii_whitespace();
    let values = lines.next()?.split_ascii_whitespace();
    names.zip(values).find(|(candidate, _)| *candidate == name)?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_readings_are_there_and_grow() {
        let before = own_ns().unwrap();
        assert!(rss_bytes(std::process::id()).unwrap() > 0);
        assert!(process_ns(std::process::id()).unwrap() >= before);
    }

    #[test]
    fn a_missing_process_has_no_readings() {
        assert_eq!(process_ns(u32::MAX), None);
        assert_eq!(rss_bytes(u32::MAX), None);
    }

    #[test]
    fn a_field_is_found_by_its_column() {
        let text = "TcpExt: A ListenOverflows B\nTcpExt: 1 22 3\nIpExt: C\nIpExt: 4\n";
        assert_eq!(field(text, "TcpExt:", "ListenOverflows"), Some(22));
        assert_eq!(field(text, "TcpExt:", "Missing"), None);
    }
}
