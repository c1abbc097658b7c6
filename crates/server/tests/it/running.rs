//! A server that ends with its test.

use std::net::{Ipv4Addr, TcpListener};
use towline_server::{Config, Server, StartError, Stopper};

/// How often a start is tried again when another process took a port in between.
const START_TRIES: usize = 5;

/// A running server.
pub(crate) struct Running {
    server: Option<Server>,
    stopper: Stopper,
}

impl Running {
    /// Starts a server; `{port}` in `flags` stands for a port that is free.
    pub(crate) fn start(flags: &[&str]) -> (Self, u16) {
        for _ in 0..START_TRIES {
            let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
            match Server::start(config(flags, port)) {
                Ok(server) => {
                    let stopper = server.stopper();
                    return (Self { server: Some(server), stopper }, port);
                }
                Err(StartError::Listen { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
        panic!("no port is free");
    }

    /// The server.
    pub(crate) fn server(&self) -> &Server {
        self.server.as_ref().unwrap()
    }
}

/// The configuration that `flags` give.
pub(crate) fn config(flags: &[&str], port: u16) -> Config {
    let base = ["--bind", "127.0.0.1", "--workers", "2", "--save", ""].map(str::to_owned);
    let flags = flags.iter().map(|flag| flag.replace("{port}", &port.to_string()));
    Config::load(None, [], base.into_iter().chain(flags)).unwrap()
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stopper.stop();
        if let Some(server) = self.server.take() {
            let ended = server.join();
            assert!(ended.is_ok() || std::thread::panicking(), "{ended:?}");
        }
    }
}
