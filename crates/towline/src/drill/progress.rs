//! What is shown while a drill runs: on a terminal a line that is written over, otherwise a line each second.
//!
//! Owns standard error for that time. Does not own what is counted.

use std::io::{IsTerminal as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::load::Plan;

/// How often the line on a terminal is renewed.
const TERMINAL_EVERY: Duration = Duration::from_millis(200);

/// How often there is a line elsewhere.
const LINE_EVERY: Duration = Duration::from_secs(1);

/// Shows progress until told to stop.
pub(super) async fn show(name: String, plan: Arc<Plan>, run: Duration, is_over: Arc<AtomicBool>) {
    let is_terminal = std::io::stderr().is_terminal();
    let every = if is_terminal { TERMINAL_EVERY } else { LINE_EVERY };
    let mut last = (Instant::now(), 0);
    loop {
        tokio::time::sleep(every).await;
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        let completed = plan.counters.completed.load(Ordering::Relaxed);
        let failed = plan.counters.failed.load(Ordering::Relaxed);
        let rate = (completed - last.1) as f64 / last.0.elapsed().as_secs_f64();
        last = (Instant::now(), completed);
        let text = line(&name, plan.start.elapsed().min(run), run, completed, rate, failed);
        write(&if is_terminal { format!("\r\x1b[2K{text}") } else { format!("{text}\n") });
    }
    if is_terminal {
        write("\r\x1b[2K");
    }
}

fn line(name: &str, at: Duration, run: Duration, completed: u64, rate: f64, failed: u64) -> String {
    format!(
        "{name}: {:.1} of {:.1} s, {completed} commands, {rate:.0} per second, {failed} failed",
        at.as_secs_f64(),
        run.as_secs_f64()
    )
}

fn write(text: &str) {
    let mut out = std::io::stderr();
    // Nobody watches: the drill goes on all the same.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_how_far_it_is() {
        let text = line("plain", Duration::from_millis(1500), Duration::from_secs(3), 10, 7.0, 1);
        assert_eq!(text, "plain: 1.5 of 3.0 s, 10 commands, 7 per second, 1 failed");
    }
}
