//! CPU time of this process and of the server.

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use std::time::Duration;

/// What this process has used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    pub(crate) user: Duration,
    pub(crate) system: Duration,
    /// Times that a thread went to sleep by itself.
    pub(crate) switches: i64,
}

impl Usage {
    /// Reads it from the kernel.
    pub(crate) fn now() -> anyhow::Result<Self> {
        let usage = getrusage(UsageWho::RUSAGE_SELF)?;
        let duration = |microseconds: i64| Duration::from_micros(microseconds.unsigned_abs());
        Ok(Self {
            user: duration(usage.user_time().num_microseconds()),
            system: duration(usage.system_time().num_microseconds()),
            switches: usage.voluntary_context_switches(),
        })
    }

    /// What was used between `earlier` and this.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            user: self.user.saturating_sub(earlier.user),
            system: self.system.saturating_sub(earlier.system),
            switches: self.switches - earlier.switches,
        }
    }

    /// User and system time together.
    pub(crate) fn cpu(self) -> Duration {
        self.user + self.system
    }
}

/// CPU time of all living threads of a process, from `/proc/PID/task/*/schedstat`; none when it cannot be read.
pub(crate) fn of_process(pid: u32) -> Option<Duration> {
    let mut nanoseconds = 0;
    for task in std::fs::read_dir(format!("/proc/{pid}/task")).ok()? {
        let line = std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
        nanoseconds += line.split_whitespace().next()?.parse::<u64>().ok()?;
    }
    Some(Duration::from_nanos(nanoseconds))
}
