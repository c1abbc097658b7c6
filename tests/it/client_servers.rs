//! The servers that the client's tests run against, and what they say about themselves.

use e2e::conn::Conn;
use e2e::process::{Server, ServerKind};
use e2e::value::Value;
use e2e::wait;
use std::pin::Pin;
use std::rc::Rc;
use towline_client::transport::Target;
use towline_client::{Client, ConnectOptions, ProtocolChoice};

/// A server and a client that speaks one protocol with it.
pub(crate) struct Rig {
    pub(crate) server: Rc<Server>,
    pub(crate) client: Client,
    /// A plain connection beside the client.
    pub(crate) observer: Conn,
}

/// Runs a test on the oldest and the newest server, over both protocols. `options` changes the client's.
pub(crate) fn each(
    options: impl Fn(ConnectOptions) -> ConnectOptions,
    test: impl Fn(Rig) -> Pin<Box<dyn Future<Output = ()>>>,
) {
    // The client needs a thread of its own while a test waits for a server.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    for kind in [ServerKind::Redis70, ServerKind::Valkey91] {
        for protocol in [ProtocolChoice::Resp2, ProtocolChoice::Resp3] {
            // Kept here too: a test that does not mention it must not end it.
            let server = Rc::new(Server::start(kind, &[]).unwrap());
            let target = Target::tcp("127.0.0.1", server.port());
            let options = options(ConnectOptions::new(target).protocol(protocol));
            let observer = server.connect().unwrap();
            runtime.block_on(async {
                let client = Client::open(options).await.unwrap();
                test(Rig { server: Rc::clone(&server), client, observer }).await;
            });
        }
    }
}

impl Rig {
    /// A reply to the observer, as text.
    pub(crate) fn ask(&mut self, line: &str) -> String {
        match self.observer.words(line).unwrap() {
            Value::Bulk(text) | Value::Verbatim(text) | Value::Simple(text) => {
                String::from_utf8_lossy(&text).into_owned()
            }
            other => other.to_string(),
        }
    }

    /// Waits until the server has so many blocked clients.
    pub(crate) fn wait_for_blocked(&mut self, count: usize) {
        let field = format!("blocked_clients:{count}\r\n");
        assert!(wait::until(|| self.ask("INFO clients").contains(&field)), "never saw {field:?}");
    }

    /// The numbers of connections whose last command was `command`, and which are not the observer.
    pub(crate) fn connections_in(&mut self, command: &str) -> Vec<String> {
        let list = self.ask("CLIENT LIST");
        let lines = list.lines().filter(|line| line.contains(&format!("cmd={command} ")));
        lines
            .filter_map(|line| line.split(' ').find_map(|field| field.strip_prefix("id=")))
            .map(str::to_owned)
            .collect()
    }

    /// Closes them.
    pub(crate) fn kill_connections_in(&mut self, command: &str) {
        let ids = self.connections_in(command);
        assert!(!ids.is_empty(), "no connection in {command}");
        for id in ids {
            self.ask(&format!("CLIENT KILL ID {id}"));
        }
    }

    /// How often the server ran a command.
    pub(crate) fn calls(&mut self, command: &str) -> u64 {
        let info = self.ask("INFO commandstats");
        let prefix = format!("cmdstat_{command}:calls=");
        let line = info.lines().find_map(|line| line.strip_prefix(&prefix));
        line.and_then(|rest| rest.split(',').next()).map_or(0, |count| count.parse().unwrap())
    }
}
