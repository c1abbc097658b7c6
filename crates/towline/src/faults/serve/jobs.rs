//! Actions that were asked for: numbers, states, results.
//!
//! Owns what `GET /action` shows. Does not own running them.
//!
//! A body must not contain the word for the good end before that has come: there is a harness that looks for it in the whole
//! text. It is in [`State::name`] and nowhere else.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

/// Actions that are remembered. 10,000: a test run's worth. Beyond that the oldest that have ended are forgotten.
const JOBS_MAX: usize = 10_000;

/// Actions that have not ended. 1,000: more than anybody runs at once; one more is refused.
pub(super) const UNFINISHED_MAX: usize = 1000;

/// Where an action is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// It waits for another action on its database.
    Pending,
    Running,
    Done,
    Failed,
}

impl State {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Done => "success",
            Self::Failed => "failed",
        }
    }

    const fn has_ended(self) -> bool {
        matches!(self, Self::Done | Self::Failed)
    }
}

#[derive(Debug)]
struct Job {
    kind: &'static str,
    state: State,
    output: Value,
    error: Option<String>,
    submitted: SystemTime,
    started: Option<SystemTime>,
    ended: Option<SystemTime>,
}

/// All actions.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    all: BTreeMap<u64, Job>,
    last: u64,
    unfinished: usize,
}

impl Jobs {
    /// Enters an action; its number, or `None` when too many have not ended.
    pub(super) fn submit(&mut self, kind: &'static str, now: SystemTime) -> Option<u64> {
        if self.unfinished >= UNFINISHED_MAX {
            return None;
        }
        if self.all.len() >= JOBS_MAX {
            let oldest = self.all.iter().find(|(_, job)| job.state.has_ended()).map(|(&id, _)| id);
            oldest.and_then(|id| self.all.remove(&id));
        }
        self.last += 1;
        self.unfinished += 1;
        let state = State::Pending;
        let (output, error, started, ended) = (Value::Null, None, None, None);
        self.all.insert(self.last, Job { kind, state, output, error, submitted: now, started, ended });
        Some(self.last)
    }

    pub(super) fn start(&mut self, id: u64, now: SystemTime) {
        if let Some(job) = self.all.get_mut(&id) {
            (job.state, job.started) = (State::Running, Some(now));
        }
    }

    pub(super) fn end(&mut self, id: u64, result: Result<Value, String>, now: SystemTime) {
        let Some(job) = self.all.get_mut(&id).filter(|job| !job.state.has_ended()) else { return };
        self.unfinished -= 1;
        job.ended = Some(now);
        match result {
            Ok(output) => (job.state, job.output) = (State::Done, output),
            Err(error) => (job.state, job.error) = (State::Failed, Some(error)),
        }
    }

    /// What `GET /action/{id}` answers.
    pub(super) fn show(&self, id: &str) -> Option<Value> {
        let job = self.all.get(&id.parse().ok()?)?;
        let progress = match job.state {
            State::Pending => 0,
            State::Running => 50,
            State::Done | State::Failed => 100,
        };
        let mut shown = json!({
            "action_id": id,
            "action_type": job.kind,
            "error": job.error,
            "output": job.output,
            "progress": progress,
            "status": job.state.name(),
        });
        // Absent rather than null: there are harnesses that read them as times.
        for (name, time) in [("start_time", job.started), ("end_time", job.ended)] {
            if let Some(time) = time {
                shown[name] = rfc3339(time).into();
            }
        }
        Some(shown)
    }

    /// What `GET /action` answers.
    pub(super) fn list(&self) -> Value {
        let one = |(id, job): (&u64, &Job)| {
            json!({
                "job_id": id.to_string(),
                "action_type": job.kind,
                "status": job.state.name(),
                "submitted_at": rfc3339(job.submitted),
            })
        };
        json!({ "actions": self.all.iter().map(one).collect::<Vec<_>>() })
    }
}

/// A time in UTC, in milliseconds.
fn rfc3339(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (days, second) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (mut year, mut day) = (1970, days);
    let is_leap =
        |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    while day >= 365 + u64::from(is_leap(year)) {
        day -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let mut month = 0;
    for length in [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        month += 1;
        if day < length {
            break;
        }
        day -= length;
    }
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let ms = since.subsec_millis();
    format!("{year}-{month:02}-{:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z", day + 1)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn an_action_goes_from_pending_to_its_end() {
        let (mut jobs, now) = (Jobs::default(), UNIX_EPOCH);
        let id = jobs.submit("bind", now).unwrap();
        assert_eq!(id.to_string(), "1");
        let done = State::Done.name();
        let shown = |jobs: &Jobs| jobs.show("1").unwrap();
        assert_eq!(shown(&jobs)["status"], "pending");
        assert!(shown(&jobs).get("start_time").is_none());
        jobs.start(id, now);
        assert_eq!(shown(&jobs)["status"], "running");
        assert!(!shown(&jobs).to_string().contains(done) && !jobs.list().to_string().contains(done));
        jobs.end(id, Ok(json!({ "output": "moved" })), now);
        jobs.end(id, Err("late".into()), now);
        assert_eq!((&shown(&jobs)["status"], &shown(&jobs)["error"]), (&done.into(), &Value::Null));
        assert_eq!(shown(&jobs)["output"]["output"], "moved");
        let id = jobs.submit("migrate", now).unwrap();
        jobs.end(id, Err("no".into()), now);
        assert_eq!(jobs.show("2").unwrap()["error"], "no");
        assert!(jobs.show("3").is_none() && jobs.show("x").is_none());
        assert_eq!(jobs.list()["actions"][1]["action_type"], "migrate");
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let (mut jobs, now) = (Jobs::default(), UNIX_EPOCH);
        for _ in 0..UNFINISHED_MAX {
            assert!(jobs.submit("bind", now).is_some());
        }
        assert!(jobs.submit("bind", now).is_none());
        jobs.end(7, Ok(Value::Null), now);
        for _ in 0..JOBS_MAX {
            let id = jobs.submit("bind", now).unwrap();
            jobs.end(id, Ok(Value::Null), now);
        }
        assert_eq!(jobs.all.len(), JOBS_MAX);
        assert!(jobs.show("7").is_none() && jobs.show("8").is_some());
    }

    #[test]
    fn times_are_in_utc() {
        let at = |seconds, ms| rfc3339(UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_millis(ms));
        assert_eq!(at(0, 0), "1970-01-01T00:00:00.000Z");
        assert_eq!(at(951_782_400, 5), "2000-02-29T00:00:00.005Z");
        assert_eq!(at(1_798_761_599, 999), "2026-12-31T23:59:59.999Z");
        assert_eq!(at(4_107_542_400, 0), "2100-03-01T00:00:00.000Z");
    }
}
