//! A snapshot as JSON.
//!
//! Owns the names in it. They are for people and their tools: new ones may come, none changes its meaning. Written by
//! hand, because an application should not have to build a serialization framework for one object. No key, no value
//! and no credentials are in a snapshot, so none are in its text.

use std::fmt::{Display, Write as _};

use super::{Counters, LinkState, Snapshot};
use crate::diagnosis::{Down, HeadOfLine};
use crate::handshake::{Ready, ServerMode};
use towline_resp::Proto;

impl Snapshot {
    /// The snapshot as one line of JSON; times in milliseconds.
    pub fn to_json(&self) -> String {
        let mut out = String::with_capacity(2048);
        object(&mut out, |o| {
            o.text("link", link_name(self.link));
            o.number("generation", self.generation.0);
            o.maybe("down", self.down.as_ref(), down);
            o.maybe("server", self.info.as_ref(), server);
            o.object("backlog", |o| {
                o.number("commands", self.backlog_commands);
                o.number("bytes", self.backlog_bytes);
                o.number("delayed_commands", self.delayed_commands);
                o.number("room_waiters", self.room_waiters);
            });
            o.object("in_flight", |o| {
                o.number("commands", self.in_flight_commands);
                o.number("bytes", self.in_flight_bytes);
                o.maybe("head_of_line", self.head_of_line.as_ref(), head_of_line);
            });
            o.object("memory", |o| {
                o.number("log_bytes", self.log_bytes);
                o.number("slots", self.slots);
            });
            o.maybe_number("read_age_ms", self.read_age.map(|age| age.as_millis()));
            o.number("backoff_level", self.backoff_level);
            o.maybe_text("last_protocol_error", self.last_protocol_error);
            o.object("counters", |o| counters(o, &self.counters));
        });
        out
    }
}

fn down(o: &mut Object<'_>, down: &Down) {
    o.number("since_ms", down.since.as_millis());
    o.text("trouble", &down.trouble);
}

fn server(o: &mut Object<'_>, info: &Ready) {
    let server = &info.server;
    o.number("protocol", if info.protocol == Proto::Resp3 { 3 } else { 2 });
    o.maybe_number("client_id", info.client_id);
    o.maybe_text("name", server.name.as_ref());
    o.maybe_text("version", server.version.as_ref());
    o.text("mode", mode_name(server.mode));
    o.maybe_text("role", server.role.as_ref());
    o.maybe_text("availability_zone", server.availability_zone.as_ref());
    o.number("refused_steps", info.refused.len());
}

fn head_of_line(o: &mut Object<'_>, head: &HeadOfLine) {
    o.text("name", &head.name);
    o.number("age_ms", head.age.as_millis());
}

fn counters(o: &mut Object<'_>, counters: &Counters) {
    for (name, count) in counters.iter() {
        o.number(name, count);
    }
}

const fn link_name(link: LinkState) -> &'static str {
    match link {
        LinkState::Waiting => "waiting",
        LinkState::Dialing => "dialing",
        LinkState::Shaking => "shaking",
        LinkState::Up => "up",
        LinkState::Closed => "closed",
    }
}

const fn mode_name(mode: ServerMode) -> &'static str {
    match mode {
        ServerMode::Unknown => "unknown",
        ServerMode::Standalone => "standalone",
        ServerMode::Cluster => "cluster",
        ServerMode::Sentinel => "sentinel",
    }
}

/// An object under way.
struct Object<'a> {
    out: &'a mut String,
    is_begun: bool,
}

/// Appends one object.
fn object(out: &mut String, fill: impl FnOnce(&mut Object<'_>)) {
    out.push('{');
    fill(&mut Object { out, is_begun: false });
    out.push('}');
}

impl Object<'_> {
    fn name(&mut self, name: &str) {
        if self.is_begun {
            self.out.push(',');
        }
        self.is_begun = true;
        self.out.push('"');
        self.out.push_str(name);
        self.out.push_str("\":");
    }

    /// A field whose value is a number, or another text that is JSON already.
    fn number(&mut self, name: &str, value: impl Display) {
        self.name(name);
        let _ = write!(self.out, "{value}");
    }

    fn text(&mut self, name: &str, value: impl Display) {
        self.name(name);
        self.out.push('"');
        for character in value.to_string().chars() {
            match character {
                '"' => self.out.push_str("\\\""),
                '\\' => self.out.push_str("\\\\"),
                control if control < ' ' => {
                    let _ = write!(self.out, "\\u{:04x}", u32::from(control));
                }
                other => self.out.push(other),
            }
        }
        self.out.push('"');
    }

    fn maybe_number(&mut self, name: &str, value: Option<impl Display>) {
        match value {
            Some(value) => self.number(name, value),
            None => self.number(name, "null"),
        }
    }

    fn maybe_text(&mut self, name: &str, value: Option<impl Display>) {
        match value {
            Some(value) => self.text(name, value),
            None => self.number(name, "null"),
        }
    }

    fn object(&mut self, name: &str, fill: impl FnOnce(&mut Object<'_>)) {
        self.name(name);
        object(self.out, fill);
    }

    fn maybe<T>(&mut self, name: &str, value: Option<&T>, fill: impl FnOnce(&mut Object<'_>, &T)) {
        match value {
            Some(value) => self.object(name, |o| fill(o, value)),
            None => self.number(name, "null"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn text_from_outside_stays_text() {
        let mut out = String::new();
        object(&mut out, |o| o.text("version", "7.0\"}\n\\\u{1}\u{fc}"));
        let parsed: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert_eq!(parsed["version"], "7.0\"}\n\\\u{1}\u{fc}");
    }

    #[test]
    fn durations_are_whole_milliseconds() {
        let mut out = String::new();
        let head = HeadOfLine { name: "GET".into(), age: Duration::from_micros(1_999) };
        object(&mut out, |o| o.maybe("head_of_line", Some(&head), head_of_line));
        assert_eq!(out, r#"{"head_of_line":{"name":"GET","age_ms":1}}"#);
    }
}
