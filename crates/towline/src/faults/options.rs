//! The command line of `towline faults`.
//!
//! Owns flag names, defaults and their bounds.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Subcommand};
use towline_faults::plan::RULES_MAX;
use towline_faults::rule::Rule;

use super::serve::ServeArgs;

/// Options of `towline faults`.
#[derive(Debug, Args)]
pub(crate) struct FaultsArgs {
    /// What to do.
    #[command(subcommand)]
    pub(super) job: FaultsJob,
}

/// What `towline faults` can do.
#[derive(Debug, Subcommand)]
pub(super) enum FaultsJob {
    /// Forward TCP connections to a server, with faults by rules; one JSON line for each fault.
    Proxy(ProxyArgs),
    /// Serve databases that move on request, by the HTTP API of the fault injector that clients' test harnesses use.
    Serve(Box<ServeArgs>),
}

/// Options of `towline faults proxy`.
#[derive(Debug, Args)]
pub(super) struct ProxyArgs {
    /// Where clients connect; port 0 takes a free one, which the first line of output names.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7379")]
    pub(super) listen: SocketAddr,
    /// The server that connections are forwarded to. A name is looked up for each connection.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:6379")]
    pub(super) upstream: Upstream,
    /// What goes wrong, for example `cut@s2c:100`, `stall@c2s:rand:0..4096/2s,chance=10%` or `refuse@dial,nth=2`; may be
    /// given several times. docs/faults.md has the grammar.
    #[arg(long = "rule", value_name = "RULE")]
    pub(super) rules: Vec<Rule>,
    /// What happens when: a file with a JSON array of steps such as {"at": "5s", "cut": "reset"}. docs/faults.md has the form.
    #[arg(long, value_name = "FILE")]
    pub(super) script: Option<PathBuf>,
    /// What random choices follow from: the same seed gives the same ones.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(super) seed: u64,
    /// Serve HTTP here: GET and PUT /rules and /script, POST /cut, GET /stats. Loopback addresses only, for it asks for no password.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(super) control: Option<SocketAddr>,
}

impl ProxyArgs {
    /// What no single option can tell by itself.
    ///
    /// # Errors
    /// One line on what is wrong; the caller's mistake.
    pub(super) fn check(&self) -> Result<(), String> {
        if let Some(control) = self.control.filter(|control| !control.ip().is_loopback()) {
            return Err(format!(
                "--control {control}: not a loopback address, such as 127.0.0.1; it has no password"
            ));
        }
        if self.rules.len() > RULES_MAX {
            return Err(format!("{} rules; at most {RULES_MAX} are possible", self.rules.len()));
        }
        let needless = self.rules.iter().find_map(|rule| match rule {
            Rule::Dns(dns) if dns.name != self.upstream.host => Some(&dns.name),
            _ => None,
        });
        match needless {
            Some(name) => Err(format!(
                "a rule is about the name {name}, but --upstream is {}; the proxy looks up no other name",
                self.upstream.host
            )),
            None => Ok(()),
        }
    }
}

/// A server's name or address, and its port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Upstream {
    /// Without brackets, if it is an IPv6 address.
    pub(super) host: String,
    pub(super) port: u16,
}

impl FromStr for Upstream {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Ok(address) = text.parse::<SocketAddr>() {
            return Ok(Self { host: address.ip().to_string(), port: address.port() });
        }
        let (host, port) = text.rsplit_once(':').ok_or("no port; it looks like 127.0.0.1:6379")?;
        let port =
            port.parse().ok().filter(|&port| port > 0).ok_or("the port is a number from 1 to 65535")?;
        if host.is_empty() || host.contains([':', '/', ' ']) {
            return Err("no host; it looks like 127.0.0.1:6379 or [::1]:6379");
        }
        Ok(Self { host: host.to_owned(), port })
    }
}

impl fmt::Display for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        proxy: ProxyArgs,
    }

    fn line(words: &str) -> ProxyArgs {
        Line::try_parse_from(words.split(' ')).unwrap().proxy
    }

    #[test]
    fn upstreams_are_names_or_addresses() {
        for (text, shown) in
            [("redis.test:1", "redis.test:1"), ("[::1]:6379", "[::1]:6379"), ("1.2.3.4:5", "1.2.3.4:5")]
        {
            assert_eq!(text.parse::<Upstream>().unwrap().to_string(), shown);
        }
        for text in ["redis", "redis:0", "redis:99999", ":6379", "::1:6379", "a b:1", ""] {
            assert!(text.parse::<Upstream>().is_err(), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        assert!(line("x --rule cut@c2s:1 --control 127.0.0.1:0").check().is_ok());
        assert!(line("x --control 0.0.0.0:80").check().unwrap_err().contains("loopback"));
        let moved = "x --rule dns@redis.test/0s=127.0.0.1";
        assert!(line(moved).check().unwrap_err().contains("redis.test"));
        assert!(line(&format!("{moved} --upstream redis.test:6379")).check().is_ok());
        let error = Line::try_parse_from(["x", "--rule", "cut@c2s"]).unwrap_err().to_string();
        assert!(error.contains("bad place `c2s`"), "{error}");
    }
}
