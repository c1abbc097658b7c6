//! Hand-made servers for what no real one does on demand.
//!
//! Owns: a listener, and connections that are served strictly in order: a command is read only when the reply before it is
//! written to its last byte, as behind a proxy that passes backpressure on. What is answered is the test's business; the
//! handshake's commands have ready-made answers ([`greeting`]).

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpSocket;
use tokio::task::JoinSet;

use crate::value::{self, Value};

/// Bytes of one read. Few, so that what the server has no time for stays in the kernel's buffers.
const READ_BYTES: usize = 16 * 1024;

/// Answers one command by appending to the output: nothing, one reply, or whatever else.
pub type Answer = dyn Fn(&[Vec<u8>], &mut Vec<u8>) + Send + Sync;

/// How many connections are open, and how many ever were at once.
#[derive(Debug, Default)]
struct Open {
    now: AtomicUsize,
    most: AtomicUsize,
}

/// A hand-made server on the loopback address. Dropping it ends its connections.
#[derive(Debug)]
pub struct OddPeer {
    address: SocketAddr,
    accepted: Arc<AtomicUsize>,
    open: Arc<Open>,
    /// Ends the tasks with it.
    _tasks: JoinSet<()>,
}

impl OddPeer {
    /// Starts one on the current runtime. `buffer_bytes` bounds each of the kernel's buffers of a connection; `None`
    /// leaves them as they are.
    ///
    /// # Errors
    /// No port is free.
    pub fn start(
        buffer_bytes: Option<u32>,
        answer: impl Fn(&[Vec<u8>], &mut Vec<u8>) + Send + Sync + 'static,
    ) -> anyhow::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        if let Some(bytes) = buffer_bytes {
            // Accepted sockets inherit them.
            socket.set_send_buffer_size(bytes)?;
            socket.set_recv_buffer_size(bytes)?;
        }
        socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
        let listener = socket.listen(1024)?;
        let address = listener.local_addr()?;
        let accepted = Arc::new(AtomicUsize::new(0));
        let open = Arc::new(Open::default());
        let (counter, counted, answer) = (Arc::clone(&accepted), Arc::clone(&open), Arc::new(answer));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                counter.fetch_add(1, Ordering::Relaxed);
                let (answer, open) = (Arc::clone(&answer), Arc::clone(&counted));
                let now = open.now.fetch_add(1, Ordering::Relaxed) + 1;
                open.most.fetch_max(now, Ordering::Relaxed);
                connections.spawn(async move {
                    // Without it small replies are late, nothing worse.
                    let _ = stream.set_nodelay(true);
                    // The end of a connection is not the peer's concern.
                    let _ = serve(stream, &*answer).await;
                    open.now.fetch_sub(1, Ordering::Relaxed);
                });
                while connections.try_join_next().is_some() {}
            }
        });
        Ok(Self { address, accepted, open, _tasks: tasks })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many connections it has accepted.
    pub fn accepted(&self) -> usize {
        self.accepted.load(Ordering::Relaxed)
    }

    /// The most connections that were open at once.
    pub fn most_open(&self) -> usize {
        self.open.most.load(Ordering::Relaxed)
    }
}

/// Serves one connection strictly in order, until its end.
///
/// # Errors
/// The connection breaks, or its client sends what is no command.
pub async fn serve(mut stream: impl AsyncRead + AsyncWrite + Unpin, answer: &Answer) -> anyhow::Result<()> {
    let (mut input, mut output) = (Vec::new(), Vec::new());
    loop {
        while let Some((command, used)) = parsed(&input)? {
            input.drain(..used);
            output.clear();
            answer(&command, &mut output);
            stream.write_all(&output).await?;
            stream.flush().await?;
        }
        let before = input.len();
        input.resize(before + READ_BYTES, 0);
        let count = stream.read(&mut input[before..]).await?;
        input.truncate(before + count);
        if count == 0 {
            return Ok(());
        }
    }
}

/// The next whole command and its length.
fn parsed(input: &[u8]) -> anyhow::Result<Option<(Vec<Vec<u8>>, usize)>> {
    let Some((value, used)) = value::parse(input)? else { return Ok(None) };
    let Value::Array(items) = value else { anyhow::bail!("not a command: {value}") };
    let arguments = items.iter().map(|item| item.bytes().unwrap_or_default().to_vec()).collect();
    Ok(Some((arguments, used)))
}

/// Answers the handshake's commands and `PING`; whether it was one of them.
pub fn greeting(command: &[Vec<u8>], out: &mut Vec<u8>) -> bool {
    let Some(name) = command.first() else { return false };
    match name.to_ascii_uppercase().as_slice() {
        b"HELLO" => out.extend_from_slice(b"%2\r\n+server\r\n+odd\r\n+proto\r\n:3\r\n"),
        b"CLIENT" if command.get(1).is_some_and(|second| second.eq_ignore_ascii_case(b"id")) => {
            out.extend_from_slice(b":1\r\n");
        }
        b"CLIENT" | b"AUTH" | b"SELECT" => out.extend_from_slice(b"+OK\r\n"),
        b"PING" => match command.get(1) {
            Some(token) => bulk(token, out),
            None => out.extend_from_slice(b"+PONG\r\n"),
        },
        _ => return false,
    }
    true
}

/// Appends a bulk string.
pub fn bulk(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(format!("${}\r\n", bytes.len()).as_bytes());
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}
