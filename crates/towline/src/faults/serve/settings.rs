//! The command line of `towline faults serve`, and what of it everything else follows.
//!
//! Owns flag names, defaults and their bounds.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use towline_faults::rule::Time;

use super::layout::Node;

/// The most nodes: as many as anybody's test cluster has.
const NODES_MAX: usize = 16;

/// Windows and paces: drains take from a tenth of a second to an hour.
const WINDOW_MIN: Duration = Duration::from_millis(100);
const WINDOW_MAX: Duration = Duration::from_secs(3600);

/// A name for a node's address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NodeName {
    address: IpAddr,
    name: String,
}

impl FromStr for NodeName {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (address, name) = text.split_once('=').ok_or("it looks like 127.0.0.2=node2.test")?;
        let address = address.parse().map_err(|_| "no address before the =")?;
        let is_name = !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'));
        is_name.then(|| Self { address, name: name.to_owned() }).ok_or("no host name behind the =")
    }
}

/// Options of `towline faults serve`.
#[derive(Debug, Args)]
pub(in crate::faults) struct ServeArgs {
    /// Where the HTTP API listens. Loopback addresses only, for it asks for no password.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:20324")]
    pub(super) listen: SocketAddr,
    /// The nodes' addresses. Every database listens on all of them, on one port.
    #[arg(long, value_name = "ADDRESS,...", value_delimiter = ',', default_values_t = default_addresses())]
    pub(super) addresses: Vec<IpAddr>,
    /// A host name for a node's address, for clients that ask for names; whoever uses it has to be able to resolve it. May be
    /// given several times.
    #[arg(long = "name", value_name = "ADDRESS=NAME")]
    pub(super) names: Vec<NodeName>,
    /// Names of databases to begin with; more can be made over HTTP.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_value = "m-standard")]
    pub(super) databases: Vec<String>,
    /// The port of the first database; the next ones count up. 0 takes free ones.
    #[arg(long, value_name = "PORT", default_value_t = 12_000)]
    pub(super) port: u16,
    /// How long connections have from MOVING until they are closed.
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = parse_time)]
    pub(super) window: Duration,
    /// The pause before each announcement and between opening and closing ones. Test harnesses look every 0.4 s, so less than
    /// 1.5 s is for tests that wait for frames.
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = parse_time)]
    pub(super) pace: Duration,
    /// The password of databases that are not given one of their own; none by default.
    #[arg(long, value_name = "SECRET")]
    pub(super) password: Option<String>,
    /// Certificate and key (PEM) of databases with TLS; without them there are none.
    #[arg(long, value_name = "FILE", requires = "tls_key_file")]
    pub(super) tls_cert_file: Option<PathBuf>,
    /// See --tls-cert-file.
    #[arg(long, value_name = "FILE", requires = "tls_cert_file")]
    pub(super) tls_key_file: Option<PathBuf>,
    /// Keep a JSON file of all databases here, as harnesses expect it in REDIS_ENDPOINTS_CONFIG_PATH.
    #[arg(long, value_name = "FILE")]
    pub(super) endpoints_file: Option<PathBuf>,
    /// Threads of each database.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(super) workers: u16,
}

fn default_addresses() -> Vec<IpAddr> {
    (1..=3).map(|last| Ipv4Addr::new(127, 0, 0, last).into()).collect()
}

fn parse_time(text: &str) -> Result<Duration, String> {
    text.parse().map(|Time(time)| time).map_err(|problem| format!("{problem}"))
}

impl ServeArgs {
    /// What no single option can tell by itself.
    ///
    /// # Errors
    /// One line on what is wrong; the caller's mistake.
    pub(in crate::faults) fn check(&self) -> Result<(), String> {
        if !self.listen.ip().is_loopback() {
            return Err(format!(
                "--listen {}: not a loopback address, such as 127.0.0.1; it has no password",
                self.listen
            ));
        }
        if !(2..=NODES_MAX).contains(&self.addresses.len()) {
            let count = self.addresses.len();
            return Err(format!("--addresses: {count}; there are 2 to {NODES_MAX} nodes"));
        }
        let mut sorted = self.addresses.clone();
        sorted.sort_unstable();
        sorted.dedup();
        if sorted.len() < self.addresses.len() {
            return Err("--addresses: one of them stands there twice".to_owned());
        }
        if let Some(stray) = self.names.iter().find(|name| !self.addresses.contains(&name.address)) {
            return Err(format!("--name {}={}: no node has this address", stray.address, stray.name));
        }
        if !(WINDOW_MIN..=WINDOW_MAX).contains(&self.window) || self.pace > WINDOW_MAX {
            return Err("--window is 100ms to 3600s, --pace at most 3600s".to_owned());
        }
        match self.port.checked_add(u16::try_from(self.databases.len()).unwrap_or(u16::MAX)) {
            Some(_) => Ok(()),
            None => Err(format!("--port {}: too few ports above it", self.port)),
        }
    }

    /// The host name of a node, if it has one.
    pub(super) fn name_of(&self, node: Node) -> Option<&str> {
        let address = self.addresses.get(node.checked_sub(1)?)?;
        self.names.iter().find(|name| name.address == *address).map(|name| name.name.as_str())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        serve: ServeArgs,
    }

    fn line(words: &str) -> Result<ServeArgs, String> {
        let line = Line::try_parse_from(words.split(' ')).map_err(|error| error.to_string())?;
        line.serve.check().map(|()| line.serve)
    }

    #[test]
    fn defaults_are_what_harnesses_expect() {
        let options = line("x").unwrap();
        assert_eq!(options.listen.to_string(), "127.0.0.1:20324");
        assert_eq!((options.window, options.pace), (Duration::from_secs(15), Duration::from_secs(2)));
        assert_eq!(options.addresses.len(), 3);
        let options = line("x --name 127.0.0.2=node2.test --addresses 127.0.0.1,127.0.0.2").unwrap();
        assert_eq!(
            (options.name_of(2), options.name_of(1), options.name_of(0)),
            (Some("node2.test"), None, None)
        );
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for (words, what) in [
            ("x --listen 0.0.0.0:1", "loopback"),
            ("x --addresses 127.0.0.1", "2 to 16"),
            ("x --addresses 127.0.0.1,127.0.0.1", "twice"),
            ("x --addresses here", "--addresses"),
            ("x --name 127.0.0.9=nine", "no node"),
            ("x --name 127.0.0.1", "looks like"),
            ("x --name 127.0.0.1=a/b", "no host name"),
            ("x --window 5", "bad time"),
            ("x --window 1ms", "--window"),
            ("x --port 65535 --databases a,b", "too few ports"),
            ("x --tls-cert-file a", "--tls-key-file"),
        ] {
            let error = line(words).unwrap_err();
            assert!(error.contains(what), "{words}: {error}");
        }
    }
}
