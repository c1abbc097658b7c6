//! The results as a table in Markdown.

use super::load::Outcome;
use super::{Happening, Name};
use crate::statistics::median;
use std::fmt::Write;
use std::time::Duration;

/// Medians over the rounds, with the lowest and the highest; counts are sums.
pub(crate) fn of(events: &[Happening], clients: &[Name], results: &[(Happening, Name, Outcome)]) -> String {
    let mut text = String::from(
        "| event | client | the servers, ms | longest wait, ms | longest wait for other nodes' keys, ms | failed | ran twice | acknowledged, not there | acknowledged |\n|---|---|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for &event in events {
        for &client in clients {
            let rounds: Vec<&Outcome> = results
                .iter()
                .filter(|result| (result.0, result.1) == (event, client))
                .map(|it| &it.2)
                .collect();
            let spread = |figure: fn(&Outcome) -> Option<Duration>| {
                let ms: Option<Vec<f64>> =
                    rounds.iter().map(|round| figure(round).map(|time| time.as_secs_f64() * 1e3)).collect();
                let Some(ms) = ms else { return "not within 20 s".to_owned() };
                let (low, high) =
                    ms.iter().fold((f64::MAX, 0.0f64), |(low, high), it| (low.min(*it), high.max(*it)));
                format!("{:.0} ({low:.0}-{high:.0})", median(&ms))
            };
            let sum = |figure: fn(&Outcome) -> u64| rounds.iter().map(|round| figure(round)).sum::<u64>();
            // Writing into a string does not fail.
            let _ = writeln!(
                text,
                "| {event:?} | {client:?} | {} | {} | {} | {} | {} | {} | {} |",
                spread(|it| Some(it.cluster)),
                spread(|it| it.longest),
                spread(|it| Some(it.longest_other)),
                sum(|it| it.failed),
                sum(|it| it.duplicates),
                sum(|it| it.lost),
                sum(|it| it.acknowledged),
            );
        }
    }
    for &event in events {
        for &client in clients {
            let of_both = results.iter().filter(|result| (result.0, result.1) == (event, client));
            if let Some(error) = of_both.filter_map(|result| result.2.first_error.as_deref()).next() {
                let _ = writeln!(text, "\n{event:?}, {client:?}: the first that failed said: {error}");
            }
        }
    }
    text
}
