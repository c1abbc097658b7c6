//! A timeline: at so many seconds do this.
//!
//! Owns the form of a script and the clock that runs it. Does not own what a step does (see [`super::shared`]).
//!
//! A script is a JSON array of steps in the order of time. A step says when, counted from the script's start, and what:
//! other rules, a cut of every open connection, or first the one and then the other.
//!
//! ```json
//! [
//!   {"at": "0s", "rules": ["delay@both:0/20ms,jitter=5ms"]},
//!   {"at": "10s", "rules": ["rate@s2c:0/64k"], "open": true},
//!   {"at": "20s", "rules": [], "open": true, "cut": "reset"}
//! ]
//! ```

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};
use towline_faults::link::Close;
use towline_faults::plan::RULES_MAX;
use towline_faults::rule::{Rule, Time};

use super::report::Event;
use super::shared::{Reach, Shared};

/// The most steps of a script: a day in steps of ten seconds.
const STEPS_MAX: usize = 10_000;

/// How connections are closed, as JSON has it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum How {
    #[default]
    Fin,
    Reset,
}

impl How {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Fin => "fin",
            Self::Reset => "reset",
        }
    }

    pub(super) const fn close(self) -> Close {
        match self {
            Self::Fin => Close::Fin,
            Self::Reset => Close::Reset,
        }
    }
}

/// One step as written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct StepText {
    at: String,
    rules: Option<Vec<String>>,
    #[serde(default)]
    open: bool,
    cut: Option<How>,
}

/// One step.
#[derive(Debug, Clone)]
struct Step {
    at: Duration,
    rules: Option<(Vec<Rule>, Reach)>,
    cut: Option<How>,
}

/// A script; the empty one does nothing.
#[derive(Debug, Clone, Default)]
pub(super) struct Script {
    steps: Arc<[Step]>,
}

impl Script {
    /// Reads a script.
    ///
    /// # Errors
    /// One line on what is wrong, with the step's number; the caller's mistake.
    pub(super) fn parse(text: &[u8]) -> Result<Self, String> {
        let texts: Vec<StepText> = serde_json::from_slice(text).map_err(|error| {
            format!(
                "a script is a JSON array of steps such as {{\"at\": \"5s\", \"cut\": \"reset\"}}: {error}"
            )
        })?;
        if texts.len() > STEPS_MAX {
            return Err(format!("{} steps; at most {STEPS_MAX} are possible", texts.len()));
        }
        let mut steps: Vec<Step> = Vec::with_capacity(texts.len());
        for (number, text) in (1..).zip(texts) {
            let last = steps.last().map_or(Duration::ZERO, |step| step.at);
            let step = Step::read(text).and_then(|step| match step.at < last {
                true => Err(format!("{} is before the step that stands before it", Time(step.at))),
                false => Ok(step),
            });
            steps.push(step.map_err(|problem| format!("step {number}: {problem}"))?);
        }
        Ok(Self { steps: steps.into() })
    }

    /// The script as JSON, each rule in its canonical form.
    pub(super) fn json(&self) -> Value {
        self.steps.iter().map(Step::json).collect()
    }
}

impl Step {
    fn read(text: StepText) -> Result<Self, String> {
        let Time(at) = text.at.parse().map_err(|problem| format!("{problem}"))?;
        if text.rules.is_none() && text.cut.is_none() {
            return Err("nothing to do; there are rules and cut".to_owned());
        }
        let reach = match (text.open, &text.rules) {
            (true, None) => return Err("open is for rules only".to_owned()),
            (true, Some(_)) => Reach::OpenToo,
            (false, _) => Reach::New,
        };
        let rules = text.rules.map(|rules| parse_rules(&rules)).transpose()?;
        Ok(Self { at, rules: rules.map(|rules| (rules, reach)), cut: text.cut })
    }

    fn json(&self) -> Value {
        let mut step = json!({ "at": Time(self.at).to_string() });
        if let Some((rules, reach)) = &self.rules {
            step["rules"] = rules.iter().map(ToString::to_string).collect();
            if *reach == Reach::OpenToo {
                step["open"] = true.into();
            }
        }
        if let Some(how) = self.cut {
            step["cut"] = how.name().into();
        }
        step
    }

    fn act(&self, shared: &Shared) {
        if let Some((rules, reach)) = &self.rules {
            shared
                .set_rules(rules.clone(), *reach)
                .expect("invariant: they were counted when they were read");
        }
        if let Some(how) = self.cut {
            shared.cut(None, how);
        }
    }
}

/// Rules from their texts.
///
/// # Errors
/// One line on the first that cannot be understood, or on their number.
pub(super) fn parse_rules(texts: &[String]) -> Result<Vec<Rule>, String> {
    if texts.len() > RULES_MAX {
        return Err(format!("{} rules; at most {RULES_MAX} are possible", texts.len()));
    }
    texts.iter().map(|text| text.parse::<Rule>().map_err(|error| error.to_string())).collect()
}

/// Runs the script in force, and each that replaces it from its own start, for ever.
pub(super) async fn run(shared: &Shared) {
    let mut scripts = shared.scripts();
    loop {
        let script = scripts.borrow_and_update().clone();
        let start = Instant::now();
        let steps = async {
            for step in script.steps.iter() {
                sleep_until(start + step.at).await;
                step.act(shared);
            }
            shared.report.line(&Event::ScriptEnded { at_ms: shared.at_ms(), steps: script.steps.len() });
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = steps, if !script.steps.is_empty() => {}
            changed = scripts.changed() => if changed.is_err() { return },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_shown_as_it_was_read() {
        let text = r#"[{"at":"0s","rules":["delay@both:0/20ms,jitter=5ms"]},
            {"at":"1500ms","rules":[],"open":true,"cut":"reset"},{"at":"1500ms","cut":"fin"}]"#;
        let script = Script::parse(text.as_bytes()).unwrap();
        assert_eq!(script.json(), serde_json::from_str::<Value>(text).unwrap());
        assert_eq!(Script::parse(b"[]").unwrap().json(), json!([]));
    }

    #[test]
    fn mistakes_are_named_with_their_step() {
        for (text, what) in [
            ("cut", "JSON array"),
            (r#"[{"cut":"fin"}]"#, "at"),
            (r#"[{"at":"5","cut":"fin"}]"#, "step 1: bad time `5`"),
            (r#"[{"at":"1s"}]"#, "step 1: nothing to do"),
            (r#"[{"at":"1s","cut":"fin","open":true}]"#, "step 1: open is for rules"),
            (r#"[{"at":"1s","cut":"gently"}]"#, "gently"),
            (r#"[{"at":"1s","cut":"fin"},{"at":"999ms","cut":"fin"}]"#, "step 2: 999ms is before"),
            (r#"[{"at":"1s","rules":["cut@c2s"]}]"#, "step 1: rule `cut@c2s`: bad place"),
            (r#"[{"at":"1s","ruless":[]}]"#, "ruless"),
        ] {
            let error = Script::parse(text.as_bytes()).unwrap_err();
            assert!(error.contains(what) && !error.contains('\n'), "{text}: {error}");
        }
    }
}
