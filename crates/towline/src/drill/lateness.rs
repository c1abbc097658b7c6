//! How late this machine runs a thread that asks for nothing but to be woken each millisecond.
//!
//! Owns the measuring thread. A pause of the client that is no longer than what this thread saw is the machine's, not the
//! client's: on two cores, with the load, the client and the server on them, that is most of them.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often it wants to be woken.
const EVERY: Duration = Duration::from_millis(1);

/// Less is not worth a record.
const NOTICED: Duration = Duration::from_micros(200);

/// The measuring, while it runs.
#[derive(Debug)]
pub(super) struct Measuring {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Lateness>,
}

/// What was seen: when it was woken, and how late that was.
#[derive(Debug, Clone, Default)]
pub(super) struct Lateness(Vec<(Duration, Duration)>);

impl Measuring {
    /// Begins; times count from `start`.
    ///
    /// # Errors
    /// There are no more threads.
    pub(super) fn start(start: Instant) -> std::io::Result<Self> {
        let is_over = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&is_over);
        let thread = std::thread::Builder::new().name("lateness".into()).spawn(move || {
            let mut seen = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                let before = Instant::now();
                std::thread::sleep(EVERY);
                let late = before.elapsed().saturating_sub(EVERY);
                if late > NOTICED {
                    seen.push((start.elapsed(), late));
                }
            }
            Lateness(seen)
        })?;
        Ok(Self { is_over, thread })
    }

    /// Ends.
    pub(super) fn finish(self) -> Lateness {
        self.is_over.store(true, Ordering::Relaxed);
        // A panic there has been printed; the run's figures stand without it.
        self.thread.join().unwrap_or_default()
    }
}

impl Lateness {
    /// The longest, of those that reach into a phase; milliseconds.
    pub(super) fn most_ms(&self, time: &Range<Duration>) -> f64 {
        let of_phase =
            self.0.iter().filter(|(at, late)| *at >= time.start && at.saturating_sub(*late) < time.end);
        of_phase.map(|(_, late)| late.as_micros() as f64 / 1000.0).fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_counts_in_each_phase_that_it_touches() {
        let ms = Duration::from_millis;
        let lateness = Lateness(vec![(ms(100), ms(30)), (ms(200), ms(5))]);
        let most = |from, to| lateness.most_ms(&(ms(from)..ms(to)));
        assert_eq!((most(0, 80), most(80, 90), most(110, 190), most(150, 300)), (30.0, 30.0, 0.0, 5.0));
    }

    #[test]
    fn the_thread_ends_when_it_is_told() {
        let measuring = Measuring::start(Instant::now()).unwrap();
        measuring.finish();
    }
}
