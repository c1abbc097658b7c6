//! The command line of `towline drill storm`.
//!
//! Owns flag names, defaults and what they mean together.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use towline_transfer_proto::storm::{Policy, Scenario};

/// Nodes and endpoints of a fleet that one run may have: what fits memory and patience.
const ENDPOINTS_MAX: usize = 1_000_000;

/// Options of `towline drill storm`.
#[derive(Debug, Clone, Args)]
pub(in super::super) struct StormArgs {
    /// Which scenarios: A1 to A4, B, C, D, E, F, G5, G20, or all. docs/storm.md says what each is.
    #[arg(long = "scenario", value_delimiter = ',', default_value = "all", value_name = "LIST")]
    scenarios: Vec<String>,
    /// Whose software the fleet runs: legacy, pr2793, pr2793-repaired, ours-1-worker, ours, ours-hello, or all.
    #[arg(long = "policy", value_delimiter = ',', default_value = "all", value_name = "LIST")]
    policies: Vec<String>,
    /// What to run: the scenarios, the grid of the stability law, the further promises of ours, or all three.
    #[arg(
        long = "part",
        value_enum,
        value_delimiter = ',',
        default_value = "scenarios",
        value_name = "LIST"
    )]
    parts: Vec<Part>,
    /// Another number of nodes for every scenario.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(super) nodes: Option<u32>,
    /// Another number of endpoints of each node; at most 128, which is as many lanes as a pair of processes has.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=128))]
    pub(super) endpoints: Option<u32>,
    /// Real handshakes over loopback with one real engine, in real time, instead of the simulation. By default 16 nodes with 64 links.
    #[arg(long = "real", conflicts_with_all = ["scenarios", "policies", "parts", "svg"])]
    pub(super) is_real: bool,
    /// With --real: what the engine takes to serve one handshake, in microseconds. It serves four at a time.
    #[arg(long, value_name = "US", default_value_t = 1_000, requires = "is_real",
        value_parser = clap::value_parser!(u64).range(0..=1_000_000))]
    pub(super) service_us: u64,
    /// What every draw follows from.
    #[arg(long, default_value_t = 1)]
    pub(super) seed: u64,
    /// One JSON list instead of tables.
    #[arg(long = "json")]
    pub(super) is_json: bool,
    /// Draw the connected endpoints over time into this SVG file; with several scenarios, each into one named after it.
    #[arg(long, value_name = "FILE")]
    pub(super) svg: Option<PathBuf>,
}

/// What can be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Part {
    /// Many nodes connect to one.
    Scenarios,
    /// Nodes times permits: where a limit for each node is enough.
    Law,
    /// Meshes, ghosts, silent and slow peers, a million slices, leaving.
    Further,
    /// All three.
    All,
}

/// What the options come to.
#[derive(Debug, Clone)]
pub(in super::super) struct Plan {
    pub(super) scenarios: Vec<Scenario>,
    pub(super) policies: Vec<Policy>,
    parts: Vec<Part>,
}

impl StormArgs {
    /// The runs that were asked for.
    ///
    /// # Errors
    /// One line on what is wrong; the caller's mistake.
    pub(in super::super) fn plan(&self) -> Result<Plan, String> {
        let scenarios = pick(&self.scenarios, "scenario", Scenario::ALL.iter(), |scenario| scenario.name)?;
        let policies = pick(&self.policies, "policy", Policy::ALL.iter(), |(name, _)| name)?;
        let scenarios: Vec<Scenario> = scenarios.into_iter().map(|scenario| self.sized(scenario)).collect();
        if let Some(scenario) = scenarios.iter().find(|scenario| scenario.total() > ENDPOINTS_MAX) {
            return Err(format!("{} endpoints are too many; at most {ENDPOINTS_MAX}", scenario.total()));
        }
        let policies = policies.into_iter().map(|(_, policy)| *policy).collect();
        Ok(Plan { scenarios, policies, parts: self.parts.clone() })
    }

    fn sized(&self, scenario: &Scenario) -> Scenario {
        Scenario {
            nodes: self.nodes.unwrap_or(scenario.nodes),
            endpoints: self.endpoints.unwrap_or(scenario.endpoints),
            ..*scenario
        }
    }
}

impl Plan {
    pub(super) fn has(&self, part: Part) -> bool {
        self.parts.iter().any(|own| *own == part || *own == Part::All)
    }

    /// The file of one scenario's drawing.
    pub(super) fn svg_of(&self, path: &Path, scenario: &str) -> PathBuf {
        if self.scenarios.len() == 1 {
            return path.to_owned();
        }
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        path.with_file_name(format!("{stem}-{scenario}.svg"))
    }
}

/// Those of `all` that are named, in the order of `all`.
fn pick<'a, T>(
    names: &[String],
    kind: &str,
    all: impl Iterator<Item = &'a T> + Clone,
    name_of: impl Fn(&'a T) -> &'a str,
) -> Result<Vec<&'a T>, String> {
    let is_all = names.iter().any(|name| name == "all");
    let is_named = |item: &&'a T| names.iter().any(|name| name.eq_ignore_ascii_case(name_of(item)));
    for name in names.iter().filter(|name| *name != "all") {
        if !all.clone().any(|item| name.eq_ignore_ascii_case(name_of(item))) {
            let known: Vec<&str> = all.map(&name_of).collect();
            return Err(format!("there is no {kind} {name}; there are {}", known.join(", ")));
        }
    }
    Ok(all.filter(|item| is_all || is_named(item)).collect())
}
