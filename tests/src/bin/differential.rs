//! Compares two servers on random programs; see `e2e::diff`.

use anyhow::Context;
use clap::Parser;
use e2e::diff::{self, Settings, TOPICS, Topic};
use e2e::process::ServerKind;
use std::process::ExitCode;

/// Sends the same random commands to two servers and compares every reply.
#[derive(Debug, Parser)]
struct Options {
    /// A group of commands, or `all`.
    #[arg(long = "type", value_name = "TOPIC", default_value = "all")]
    topic: String,
    /// The first program's seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many commands to compare for each topic.
    #[arg(long, default_value_t = 20_000)]
    count: u64,
    /// One server: towline, redis70, redis82 or valkey91.
    #[arg(long, default_value = "towline")]
    a: String,
    /// The other server.
    #[arg(long, default_value = "redis70")]
    b: String,
    /// Stop a topic after so many differences.
    #[arg(long, default_value_t = 10)]
    findings: usize,
}

#[expect(clippy::print_stdout, reason = "a tool that reports to a person")]
fn main() -> anyhow::Result<ExitCode> {
    let options = Options::parse();
    let sides = [ServerKind::from_name(&options.a)?, ServerKind::from_name(&options.b)?];
    let topics: Vec<&'static Topic> = if options.topic == "all" {
        TOPICS.iter().collect()
    } else {
        let names: Vec<&str> = TOPICS.iter().map(|topic| topic.name).collect();
        let missing = || format!("there is no topic {}; the topics are {}", options.topic, names.join(", "));
        vec![Topic::from_name(&options.topic).with_context(missing)?]
    };
    let mut total = 0;
    for topic in topics {
        let summary = diff::run(&Settings {
            topic,
            seed: options.seed,
            count: options.count,
            sides,
            findings_max: options.findings,
        })?;
        for finding in &summary.findings {
            println!("{finding}\n");
        }
        total += summary.findings.len();
        let known: Vec<String> =
            summary.known.iter().map(|(name, count)| format!("{name} {count}")).collect();
        println!(
            "{:<13}{} commands, {} differences, known: {}",
            topic.name,
            summary.compared,
            summary.findings.len(),
            if known.is_empty() { "none".into() } else { known.join(", ") }
        );
    }
    Ok(if total == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
