//! Makes a server announce something: by `TOWLINE DRAIN`, or by the HTTP interface of a fault injector.
//!
//! Owns the requests, and ends what it has begun. Does not own what is checked when the frames come.

use std::cell::RefCell;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};
use serde_json::{Value, json};
use towline_resp::frame::Frame;

use super::wire::{PATIENCE, Wire, shown};

/// How long an action of the injector may take.
const ACTION_MAX: Duration = Duration::from_secs(40);

/// The time between two questions for an action's state; also how often clients of such injectors ask.
const ASK_EVERY: Duration = Duration::from_millis(300);

/// Longest answer of the injector.
const ANSWER_BYTES_MAX: u64 = 1 << 20;

/// Characters of an answer that an error shows: one line.
const ANSWER_SHOWN_MAX: usize = 100;

/// The effects of `slot_migrate`.
const SLOT_EFFECTS: [&str; 4] = ["remove-add", "add", "remove", "slot-shuffle"];

/// A successor for checks that follow nobody: an address of the range for documentation.
const SUCCESSOR: &str = "192.0.2.7:6390";

/// The ways to an event.
#[derive(Debug)]
pub(super) struct Inject {
    target: SocketAddr,
    /// The numbers of the drains that were begun at the target.
    drains: RefCell<Vec<i64>>,
    injector: Option<Injector>,
}

/// A fault injector's address, and the database there.
#[derive(Debug, Clone)]
struct Injector {
    host: String,
    database: u64,
}

impl Inject {
    /// Events at `target`, through the injector with this URL if there is one.
    ///
    /// # Errors
    /// The URL is not like `http://host:port`; the caller's mistake.
    pub(super) fn new(target: SocketAddr, url: Option<&str>, database: u64) -> Result<Self> {
        let injector = match url {
            None => None,
            Some(url) => {
                let rest = url.strip_prefix("http://").map(|rest| rest.trim_end_matches('/'));
                let host = rest.filter(|rest| rest.contains(':') && !rest.contains('/'));
                let host = host.ok_or_else(|| anyhow!("--inject takes http://HOST:PORT, not {url}"))?;
                Some(Injector { host: host.to_owned(), database })
            }
        };
        Ok(Self { target, drains: RefCell::default(), injector })
    }

    /// Asks the injector, if there is one, whether it has the database. An injector that does not show its databases is
    /// believed.
    ///
    /// # Errors
    /// Nobody answers there, or what answers is no injector, or the database is not there; the caller's mistake.
    pub(super) fn verify(&self) -> Result<()> {
        let Some(injector) = &self.injector else { return Ok(()) };
        let Injector { host, database } = injector;
        let Some(known) = injector.databases()? else { return Ok(()) };
        if known.contains(database) {
            return Ok(());
        }
        let known: Vec<_> = known.iter().map(u64::to_string).collect();
        bail!("--database {database}: the fault injector at {host} has {}", known.join(", "))
    }

    /// Cancels the drains that were begun and whose window is still open: the next run is told nothing of this one.
    ///
    /// # Errors
    /// The server stopped answering.
    pub(super) fn end(&self) -> Result<()> {
        let drains = self.drains.take();
        if drains.is_empty() {
            return Ok(());
        }
        let mut wire = Wire::resp3(self.target)?;
        for seq in drains {
            // One that is over by now cannot be cancelled, and need not be.
            wire.call(&["TOWLINE", "DRAIN", "CANCEL", &seq.to_string()])?;
        }
        Ok(())
    }

    /// Makes the server announce MOVING to the connections of the target, with this window where it can be chosen; the window
    /// if it could.
    ///
    /// # Errors
    /// There is no way to: the text says what it would take.
    pub(super) fn moving(&self, window: Duration) -> Result<Option<Duration>> {
        if let Some(injector) = &self.injector {
            injector.begin("bind", &json!({ "bdb_id": injector.database, "cluster_index": 0 }))?;
            return Ok(None);
        }
        let mut wire = Wire::resp3(self.target)?;
        let (seconds, local) = (window.as_secs_f64().to_string(), self.target.to_string());
        match wire.call(&["TOWLINE", "DRAIN", "WINDOW", &seconds, "TO", SUCCESSOR, "ON", &local])? {
            Frame::Integer(seq) => {
                self.drains.borrow_mut().push(seq);
                Ok(Some(window))
            }
            Frame::Error(text) if text.starts_with(b"ERR unknown command") => {
                bail!("needs an event: the server has no TOWLINE DRAIN, and there is no --inject")
            }
            other => bail!("TOWLINE DRAIN was answered with {}", shown(&other)),
        }
    }

    /// Makes the server announce and do something else, to the end.
    ///
    /// # Errors
    /// There is no injector, or it does not know this.
    pub(super) fn other(&self, action: &str) -> Result<()> {
        let injector = self.injector.as_ref().context("needs a fault injector: --inject http://HOST:PORT")?;
        let parameters = json!({ "bdb_id": injector.database, "cluster_index": 0 });
        if action != "slot_migrate" {
            return injector.act(action, &parameters).map(drop);
        }
        // Which effect is possible depends on where the slots are.
        let mut last = None;
        for effect in SLOT_EFFECTS {
            let mut parameters = parameters.clone();
            parameters["effect"] = effect.into();
            match injector.act(action, &parameters) {
                Ok(_) => return Ok(()),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| anyhow!("{action} has no effect")))
    }
}

impl Injector {
    /// The numbers of the databases, ascending; none if the injector does not show them.
    fn databases(&self) -> Result<Option<Vec<u64>>> {
        let parameters = json!({ "bdb_id": self.database, "rladmin_command": "status" });
        let body = json!({ "type": "execute_rladmin_command", "parameters": parameters });
        let begun = self.ask("POST", "/action", &body.to_string())?;
        let Some(id) = begun["action_id"].as_str() else { return Ok(None) };
        let Ok(state) = self.finish("execute_rladmin_command", id) else { return Ok(None) };
        Ok(shown_databases(&state))
    }

    /// Starts an action and says its number.
    fn begin(&self, action: &str, parameters: &Value) -> Result<String> {
        let body = json!({ "type": action, "parameters": parameters });
        let begun = self.ask("POST", "/action", &body.to_string())?;
        let id = begun["action_id"].as_str();
        id.map(str::to_owned).with_context(|| format!("{action} was answered with {begun}"))
    }

    /// Does an action to its end, and returns what the injector says of it then.
    fn act(&self, action: &str, parameters: &Value) -> Result<Value> {
        self.finish(action, &self.begin(action, parameters)?)
    }

    /// Waits for the end of the action with this number.
    fn finish(&self, action: &str, id: &str) -> Result<Value> {
        let end = Instant::now() + ACTION_MAX;
        loop {
            let state = self.ask("GET", &format!("/action/{id}"), "")?;
            match state["status"].as_str() {
                Some("success" | "finished" | "completed") => return Ok(state),
                Some("pending" | "running") if Instant::now() < end => std::thread::sleep(ASK_EVERY),
                _ => bail!("{action} ended with {state}"),
            }
        }
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> Result<Value> {
        let address = self.host.to_socket_addrs().ok().and_then(|mut addresses| addresses.next());
        let address = address.with_context(|| format!("{} has no address", self.host))?;
        let mut stream = TcpStream::connect_timeout(&address, PATIENCE)
            .with_context(|| format!("no fault injector answers at {}", self.host))?;
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            self.host,
            body.len()
        );
        let mut answer = String::new();
        let exchanged = stream
            .set_read_timeout(Some(ACTION_MAX))
            .and_then(|()| stream.write_all(request.as_bytes()))
            .and_then(|()| stream.take(ANSWER_BYTES_MAX).read_to_string(&mut answer));
        exchanged.with_context(|| format!("no fault injector answers at {}: {method} {path}", self.host))?;
        let body = answer.split_once("\r\n\r\n").map(|(_, body)| body).unwrap_or_default();
        serde_json::from_str(body).with_context(|| {
            let start: String = answer.chars().take(ANSWER_SHOWN_MAX).collect();
            format!("no fault injector answers at {}: {method} {path} was answered with {start:?}", self.host)
        })
    }
}

/// The databases, as `rladmin status` shows them, each a word like `db:7`; none if there is no such text.
fn shown_databases(state: &Value) -> Option<Vec<u64>> {
    let output = &state["output"];
    let text = output["output"].as_str().or(output.as_str())?;
    let number = |word: &str| word.trim_start_matches('*').strip_prefix("db:")?.parse().ok();
    let mut numbers: Vec<u64> = text.split_whitespace().filter_map(number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    (!numbers.is_empty()).then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn databases_are_found_in_the_status() {
        let text = "DATABASES:\nDB:ID NAME\ndb:12 a\n*db:3 b\nSHARDS:\ndb:3 b redis:1\n";
        for state in [json!({ "output": { "output": text } }), json!({ "output": text })] {
            assert_eq!(shown_databases(&state), Some(vec![3, 12]));
        }
        assert_eq!(shown_databases(&json!({ "output": "done" })), None);
        assert_eq!(shown_databases(&json!({ "status": "success" })), None);
    }

    #[test]
    fn urls_are_read_and_refused() {
        let target = "127.0.0.1:1".parse().unwrap();
        assert!(Inject::new(target, Some("http://127.0.0.1:20324/"), 1).is_ok());
        for bad in ["127.0.0.1:20324", "https://x:1", "http://x", "http://x:1/y"] {
            assert!(Inject::new(target, Some(bad), 1).is_err(), "{bad}");
        }
        let without = Inject::new(target, None, 1).unwrap();
        assert!(without.other("failover").unwrap_err().to_string().contains("--inject"));
    }
}
