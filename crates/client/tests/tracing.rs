//! The feature `tracing`. One test alone in its process: which events are wanted is cached for all threads.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use towline_client::transport::Target;
use towline_client::{Client, ConnectOptions, Peer, ProtocolChoice};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::format::FmtSpan;

/// Collects what is logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no test has failed under it").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn options(address: SocketAddr) -> ConnectOptions {
    ConnectOptions::new(Target::tcp(address.ip().to_string(), address.port()))
        .peer(Peer::Proxy)
        .protocol(ProtocolChoice::Resp2)
}

#[tokio::test]
async fn traces_have_the_connection_and_commands_but_no_keys() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(LevelFilter::TRACE)
        .with_span_events(FmtSpan::CLOSE)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);

    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        drop(listener);
        for reply in ["+PONG\r\n", "+OK\r\n"] {
            assert!(socket.read(&mut [0; 1024]).await.unwrap() > 0);
            socket.write_all(reply.as_bytes()).await.unwrap();
        }
    });
    let client = Client::open(options(address)).await.unwrap();
    client.set("secret-key", "secret-value").await.unwrap();
    // Nobody listens any more.
    let failed = Client::lazy(options(address)).unwrap();
    let _event = failed.events().next().await;

    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    for word in ["INFO", "connected (g1)", "command{name=SET}", "WARN", "dial g1 failed", "server=127.0.0.1"]
    {
        assert!(text.contains(word), "no {word} in\n{text}");
    }
    assert!(!text.contains("secret"), "{text}");
}
