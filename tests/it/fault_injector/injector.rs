//! A running `towline faults serve`, and the ways to talk to it.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use e2e::conn::Conn;
use e2e::process::towline_binary;
use e2e::value::Value;
use e2e::wait;
use serde_json::{Value as Json, json};

/// The status of an action that has ended well; it must not be in any body before.
pub(crate) const GOOD_END: &str = "success";

/// A running injector. Dropping it kills the process.
#[derive(Debug)]
pub(crate) struct Injector {
    child: Child,
    api: SocketAddr,
    /// By name, as it said at its start.
    pub(crate) endpoints: BTreeMap<String, Json>,
}

impl Injector {
    /// Starts one with short times and free ports; flags that come later win.
    pub(crate) fn start(flags: &[&str]) -> Self {
        let mut command = Command::new(towline_binary().unwrap());
        command.args(["faults", "serve", "--listen", "127.0.0.1:0", "--port", "0"]);
        for (flag, value) in [("--window", "300ms"), ("--pace", "20ms")] {
            if !flags.contains(&flag) {
                command.args([flag, value]);
            }
        }
        let mut child = command.args(flags).stdout(Stdio::piped()).spawn().unwrap();
        let mut first = String::new();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        lines.read_line(&mut first).unwrap();
        let first: Json = serde_json::from_str(&first).unwrap();
        assert_eq!(first["event"], "listening");
        let api = first["listen"].as_str().unwrap().parse().unwrap();
        let endpoints = serde_json::from_value(first["databases"].clone()).unwrap();
        Self { child, api, endpoints }
    }

    /// Its base address.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.api)
    }

    /// One request: status and body.
    pub(crate) fn http(&self, method: &str, path: &str, body: &str) -> (u16, Json) {
        let mut stream = TcpStream::connect(self.api).unwrap();
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        let body = answer.split_once("\r\n\r\n").unwrap().1;
        (status, serde_json::from_str(body).unwrap_or(Json::Null))
    }

    /// Asks for an action: its number.
    pub(crate) fn submit(&self, kind: &str, parameters: Json) -> String {
        let body = json!({ "type": kind, "parameters": parameters }).to_string();
        let (status, answer) = self.http("POST", "/action", &body);
        assert_eq!(status, 200, "{body}: {answer}");
        assert!(!answer.to_string().contains(GOOD_END), "{answer}");
        answer["action_id"].as_str().unwrap().to_owned()
    }

    /// Waits for the end of an action: all that is said of it.
    pub(crate) fn end(&self, id: &str) -> Json {
        let ended = wait::until_some(wait::PATIENCE, || {
            let (status, shown) = self.http("GET", &format!("/action/{id}"), "");
            assert_eq!((status, &shown["action_id"]), (200, &id.into()), "{shown}");
            match shown["status"].as_str().unwrap() {
                "pending" | "running" => {
                    assert!(!shown.to_string().contains(GOOD_END), "{shown}");
                    None
                }
                _ => Some(shown),
            }
        });
        ended.expect("the action ends")
    }

    /// Waits for the good end of an action: its output.
    pub(crate) fn finish(&self, id: &str) -> Json {
        let ended = self.end(id);
        assert_eq!((&ended["status"], &ended["error"]), (&GOOD_END.into(), &Json::Null), "{ended}");
        assert!(ended["start_time"].as_str().unwrap() <= ended["end_time"].as_str().unwrap());
        ended["output"].clone()
    }

    /// Does an action: its output.
    pub(crate) fn run(&self, kind: &str, parameters: Json) -> Json {
        self.finish(&self.submit(kind, parameters))
    }

    /// What `rladmin status` prints.
    pub(crate) fn status(&self) -> String {
        let (status, answer) = self.http("POST", "/rladmin", "rladmin status");
        assert_eq!(status, 200, "{answer}");
        answer["output"].as_str().unwrap().to_owned()
    }

    /// Number and port of a database, by its name in the status.
    pub(crate) fn created(&self, name: &str) -> (u32, u16) {
        let status = self.status();
        let line = status.lines().find(|line| line.split(' ').nth(1) == Some(name)).unwrap();
        let id = line.strip_prefix("db:").and_then(|rest| rest.split(' ').next()).unwrap();
        (id.parse().unwrap(), line.rsplit_once(':').unwrap().1.parse().unwrap())
    }

    /// The address of a node of one of the first databases.
    pub(crate) fn address(&self, database: u64, node: u8) -> SocketAddr {
        let found = self.endpoints.values().find(|endpoint| endpoint["bdb_id"] == database).unwrap();
        let port = found["raw_endpoints"][0]["port"].as_u64().unwrap();
        format!("127.0.0.{node}:{port}").parse().unwrap()
    }

    /// A connection with RESP3 to a node of one of the first databases.
    pub(crate) fn conn(&self, database: u64, node: u8) -> Conn {
        Conn::open_resp3(self.address(database, node)).unwrap()
    }

    /// A connection that has opted in.
    pub(crate) fn notified(&self, database: u64, node: u8, form: Option<&str>) -> Conn {
        Self::notify(self.address(database, node), form)
    }

    /// A connection to an address that has opted in.
    pub(crate) fn notify(address: SocketAddr, form: Option<&str>) -> Conn {
        let mut conn = Conn::open_resp3(address).unwrap();
        conn.set_read_timeout(Duration::from_secs(10)).unwrap();
        let form = form.map(|form| format!(" moving-endpoint-type {form}")).unwrap_or_default();
        let reply = conn.words(&format!("CLIENT MAINT_NOTIFICATIONS ON{form}")).unwrap();
        assert_eq!(reply, Value::Simple(b"OK".to_vec()));
        conn
    }

    /// SIGTERM, and how it ended.
    pub(crate) fn terminate(&mut self) -> ExitStatus {
        let pid = rustix::process::Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        self.child.wait().unwrap()
    }
}

impl Drop for Injector {
    fn drop(&mut self) {
        // Both fail only when the process has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The next frame of a connection: this one, with so many elements.
pub(crate) fn frame(conn: &mut Conn, token: &str, length: usize) -> Vec<Value> {
    match conn.read().unwrap() {
        Value::Push(items) => {
            assert_eq!(items[0], Value::Bulk(token.as_bytes().to_vec()), "{items:?}");
            assert_eq!(items.len(), length, "{items:?}");
            items
        }
        other => panic!("{token} was expected: {other:?}"),
    }
}

/// The next frames of a connection: their numbers.
pub(crate) fn frames(conn: &mut Conn, expected: &[(&str, usize)]) -> Vec<i64> {
    expected.iter().map(|&(token, length)| number(&frame(conn, token, length)[1])).collect()
}

/// An integer.
pub(crate) fn number(value: &Value) -> i64 {
    match value {
        Value::Int(number) => *number,
        other => panic!("no integer: {other:?}"),
    }
}

/// The shards of a JSON text.
pub(crate) fn shards_of(value: &Value) -> Vec<String> {
    serde_json::from_slice(value.bytes().unwrap()).unwrap()
}
