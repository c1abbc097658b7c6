//! What the operating system says of this process and machine.
//!
//! Owns: reading it. Does **not** own how it is shown. What cannot be read is 0: nothing depends on it.

use rustix::param::{clock_ticks_per_second, page_size};
use rustix::time::{ClockId, clock_gettime};

/// CPU time in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct CpuSeconds {
    pub(crate) system: f64,
    pub(crate) user: f64,
}

/// This process's id.
pub(crate) fn id() -> u32 {
    std::process::id()
}

/// CPU time of all threads.
pub(crate) fn cpu() -> CpuSeconds {
    cpu_of("/proc/self/stat", ClockId::ProcessCPUTime)
}

/// CPU time of the calling thread.
pub(crate) fn thread_cpu() -> CpuSeconds {
    cpu_of("/proc/thread-self/stat", ClockId::ThreadCPUTime)
}

/// The kernel counts ticks by kind; the sum is known to the nanosecond and divided in that proportion.
fn cpu_of(stat: &str, clock: ClockId) -> CpuSeconds {
    let total = clock_gettime(clock);
    let total = total.tv_sec as f64 + total.tv_nsec as f64 / 1e9;
    let (user, system) = ticks(&std::fs::read_to_string(stat).unwrap_or_default()).unwrap_or_default();
    if user + system == 0 {
        return CpuSeconds { system: 0.0, user: total };
    }
    let system = total * system as f64 / (user + system) as f64;
    CpuSeconds { system, user: total - system }
}

/// User and system ticks in a line of `/proc/…/stat`.
fn ticks(stat: &str) -> Option<(u64, u64)> {
    /// Places of `utime` and `stime` behind the name, which is in parentheses and may contain anything.
    const USER_AT: usize = 11;
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(USER_AT);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// CPU time of children that ended.
pub(crate) fn children_cpu() -> CpuSeconds {
    const CHILDREN_AT: usize = 13;
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit_once(')').map(|(_, rest)| rest.split_ascii_whitespace());
    let mut ticks = fields.into_iter().flatten().skip(CHILDREN_AT).map(|field| field.parse().unwrap_or(0));
    let per_second = clock_ticks_per_second().max(1) as f64;
    let mut next = || ticks.next().unwrap_or(0u64) as f64 / per_second;
    let (user, system) = (next(), next());
    CpuSeconds { system, user }
}

/// Bytes of memory that are resident.
pub(crate) fn rss_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split_ascii_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or(0) * page_size() as u64
}

/// Bytes of memory that the machine has.
pub(crate) fn machine_memory_bytes() -> u64 {
    let info = rustix::system::sysinfo();
    info.totalram as u64 * u64::from(info.mem_unit.max(1))
}

/// The operating system: name, release and machine.
pub(crate) fn system() -> String {
    let uname = rustix::system::uname();
    let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
    format!("{} {} {}", text(uname.sysname()), text(uname.release()), text(uname.machine()))
}

/// The program's path.
pub(crate) fn executable() -> String {
    std::env::current_exe().map(|path| path.display().to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_answers() {
        let before = cpu();
        assert!(rss_bytes() > 0 && machine_memory_bytes() > rss_bytes());
        assert!(system().starts_with("Linux "));
        let after = cpu();
        assert!(after.user + after.system >= before.user + before.system);
        assert!(thread_cpu().user + thread_cpu().system > 0.0);
        assert!(children_cpu().user >= 0.0);
    }

    #[test]
    fn names_with_parentheses_do_not_shift_the_fields() {
        let stat = "1 (a) b (c)) S 2 3 4 5 6 7 8 9 10 11 120 34 0 0 20";
        assert_eq!(ticks(stat), Some((120, 34)));
        assert_eq!(ticks("garbage"), None);
    }
}
