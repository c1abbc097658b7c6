//! `--latency` and `--latency-history`: round trips of `PING`.
//!
//! Owns the measurement and its lines. A closed loop with one request at a time: it shows what one idle client sees,
//! not what a server does under load (`towline bench` measures that).

use std::time::{Duration, Instant};

use crate::cli::error::CliError;
use crate::cli::modes::accepted;
use crate::cli::options::Settings;
use crate::cli::render::Style;
use crate::cli::session::Session;

/// Pause between two requests: redis-cli's.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(10);

/// How long a measurement takes whose result goes to a file or pipe.
const RANGE_DEFAULT: Duration = Duration::from_secs(1);

/// How long a line of the history is: redis-cli's.
const HISTORY_RANGE_DEFAULT: Duration = Duration::from_secs(15);

/// Begins a terminal's line anew.
const LINE_AGAIN: &str = "\x1b[0G\x1b[2K";

/// What is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Course {
    /// Everything since the beginning.
    Total,
    /// A line for each range of time.
    History,
}

/// Round trips of one range.
#[derive(Debug, Default)]
struct Samples {
    count: u64,
    total: Duration,
    least: Option<Duration>,
    most: Duration,
}

impl Samples {
    fn add(&mut self, round_trip: Duration) {
        self.count += 1;
        self.total += round_trip;
        self.least = Some(self.least.map_or(round_trip, |least| least.min(round_trip)));
        self.most = self.most.max(round_trip);
    }

    /// Least, most and mean, in milliseconds.
    fn figures(&self) -> [f64; 3] {
        let ms = |duration: Duration| duration.as_secs_f64() * 1e3;
        let mean = if self.count == 0 { 0.0 } else { ms(self.total) / self.count as f64 };
        [ms(self.least.unwrap_or_default()), ms(self.most), mean]
    }

    fn line(&self, style: Style) -> String {
        let [least, most, mean] = self.figures();
        match style {
            Style::Standard => {
                format!("min: {least:.2}, max: {most:.2}, avg: {mean:.2} ({} samples)", self.count)
            }
            Style::Raw => format!("{least:.2} {most:.2} {mean:.2} {}", self.count),
            Style::Csv => format!("{least:.2},{most:.2},{mean:.2},{}", self.count),
            Style::Json | Style::QuotedJson => format!(
                "{{\"min_ms\":{least:.3},\"max_ms\":{most:.3},\"avg_ms\":{mean:.3},\"samples\":{}}}",
                self.count
            ),
        }
    }
}

/// Measures: for ever on a terminal and for the history, otherwise once. `-r` bounds the lines of the history.
///
/// # Errors
/// The server refused `PING`, the connection broke, or the output is closed.
pub(super) fn run(session: &mut Session, settings: &Settings, course: Course) -> Result<(), CliError> {
    let style = session.output().style();
    let is_live = session.output().is_terminal() && style == Style::Standard;
    let range = match course {
        Course::Total if is_live => None,
        Course::Total => Some(settings.interval.unwrap_or(RANGE_DEFAULT)),
        Course::History => Some(settings.interval.unwrap_or(HISTORY_RANGE_DEFAULT)),
    };
    session.connect()?;
    let mut lines_left = settings.repeat.unwrap_or(-1);
    loop {
        let began = Instant::now();
        let mut samples = Samples::default();
        while range.is_none_or(|range| began.elapsed() < range) {
            let sent = Instant::now();
            accepted("PING", session.request(&["PING"])?)?;
            samples.add(sent.elapsed());
            if is_live {
                session.output().write(format!("{LINE_AGAIN}{}", samples.line(style)).as_bytes())?;
            }
            std::thread::sleep(SAMPLE_INTERVAL);
        }
        let prefix = if is_live { LINE_AGAIN } else { "" };
        let suffix = match (course, style) {
            (Course::History, Style::Standard) => {
                format!(" -- {:.2} seconds range", began.elapsed().as_secs_f64())
            }
            _ => String::new(),
        };
        session.output().line(&format!("{prefix}{}{suffix}", samples.line(style)))?;
        lines_left -= i64::from(lines_left > 0);
        if course == Course::Total || lines_left == 0 {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_in_every_style() {
        let mut samples = Samples::default();
        assert_eq!(samples.line(Style::Raw), "0.00 0.00 0.00 0");
        for micros in [100, 400, 250] {
            samples.add(Duration::from_micros(micros));
        }
        assert_eq!(samples.line(Style::Standard), "min: 0.10, max: 0.40, avg: 0.25 (3 samples)");
        assert_eq!(samples.line(Style::Raw), "0.10 0.40 0.25 3");
        assert_eq!(samples.line(Style::Csv), "0.10,0.40,0.25,3");
        assert_eq!(
            samples.line(Style::Json),
            r#"{"min_ms":0.100,"max_ms":0.400,"avg_ms":0.250,"samples":3}"#
        );
    }
}
