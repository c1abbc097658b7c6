//! A server that a client under test connects to: it answers ordinary commands in simple ways, writes down all that happens,
//! and sends what it is told to.
//!
//! Owns the sockets and the record. Does not own the script ([`super::client`]).

use std::collections::HashMap;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use towline_resp::Proto;
use towline_resp::frame::{Decoder, Frame};

/// Connections that are served at once; more are closed.
const CONNECTIONS_MAX: usize = 1024;

/// Longest value that is kept for GET.
const VALUE_BYTES_MAX: usize = 4096;

/// Keys that are kept; beyond that values are forgotten.
const KEYS_MAX: usize = 100_000;

/// What one connection did.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) id: usize,
    /// The address where it came in.
    pub(super) local: SocketAddr,
    pub(super) opened: Instant,
    /// When the client ended it, or when the script did.
    pub(super) closed: Option<Instant>,
    /// Whether the script ended it.
    pub(super) is_cut: bool,
    pub(super) is_resp3: bool,
    /// The words of its opt-in, and whether RESP3 had been agreed on.
    pub(super) opt_in: Option<(Vec<String>, bool)>,
    /// When the last command that is no part of a handshake came.
    pub(super) last_command: Option<Instant>,
    /// Whether a command was unanswered when the client closed.
    pub(super) was_waiting: bool,
}

/// How the opt-in is answered.
#[derive(Debug, Clone)]
pub(super) enum OptIn {
    /// With OK, and these frames right behind it.
    Accept(Vec<Frame>),
    /// As a server that does not know it.
    Refuse,
}

#[derive(Debug)]
struct State {
    seen: Vec<Seen>,
    writers: HashMap<usize, TcpStream>,
    values: HashMap<Vec<u8>, Vec<u8>>,
    opt_in: OptIn,
    /// How long the next ordinary command's reply on each connection is held back.
    hold: HashMap<usize, Duration>,
}

/// The server.
#[derive(Debug, Clone)]
pub(super) struct Scripted(Arc<Mutex<State>>);

impl Scripted {
    /// Listens on all of these addresses.
    ///
    /// # Errors
    /// One of them cannot be had.
    pub(super) fn listen(addresses: &[SocketAddr]) -> io::Result<Self> {
        let state = State {
            seen: Vec::new(),
            writers: HashMap::new(),
            values: HashMap::new(),
            opt_in: OptIn::Accept(Vec::new()),
            hold: HashMap::new(),
        };
        let scripted = Self(Arc::new(Mutex::new(state)));
        for address in addresses {
            let listener = TcpListener::bind(address)?;
            let server = scripted.clone();
            // These threads end with the process, which ends with the script.
            std::thread::spawn(move || server.accept(&listener));
        }
        Ok(scripted)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What all connections did so far.
    pub(super) fn seen(&self) -> Vec<Seen> {
        self.lock().seen.clone()
    }

    /// The connections at an address that are open and opted in.
    pub(super) fn opted_in(&self, local: SocketAddr) -> Vec<Seen> {
        let is_there = |seen: &Seen| seen.closed.is_none() && seen.opt_in.is_some() && seen.local == local;
        self.lock().seen.iter().filter(|seen| is_there(seen)).cloned().collect()
    }

    /// From now on the opt-in is answered so.
    pub(super) fn answer_opt_in(&self, with: OptIn) {
        self.lock().opt_in = with;
    }

    /// Sends a frame to these connections.
    pub(super) fn push(&self, to: &[Seen], frame: &Frame) {
        let (bytes, mut state) = (frame.encode(Proto::Resp3), self.lock());
        for seen in to {
            if let Some(writer) = state.writers.get_mut(&seen.id) {
                // One that has gone meanwhile is written down as closed where it is read.
                let _ = writer.write_all(&bytes);
            }
        }
    }

    /// Holds back the next reply on these connections.
    pub(super) fn hold_next(&self, of: &[Seen], time: Duration) {
        let mut state = self.lock();
        of.iter().for_each(|seen| _ = state.hold.insert(seen.id, time));
    }

    /// Ends connections.
    pub(super) fn cut(&self, which: &[Seen]) {
        let mut state = self.lock();
        for seen in which {
            state.seen[seen.id].is_cut = true;
            if let Some(writer) = state.writers.remove(&seen.id) {
                // Already gone is as good.
                let _ = writer.shutdown(Shutdown::Both);
            }
        }
    }

    fn accept(&self, listener: &TcpListener) {
        while let Ok((stream, _)) = listener.accept() {
            let server = self.clone();
            let is_served = self.lock().writers.len() < CONNECTIONS_MAX;
            if is_served {
                std::thread::spawn(move || server.serve(stream));
            }
        }
    }

    fn serve(&self, mut stream: TcpStream) {
        let Ok((id, _)) = self.register(&stream) else { return };
        let (mut buffer, mut decoder, mut bytes) = (BytesMut::new(), Decoder::default(), [0; 4096]);
        'connection: loop {
            loop {
                match decoder.decode(&mut buffer) {
                    Ok(Some(frame)) => {
                        if self.answer(id, &frame).is_err() {
                            break 'connection;
                        }
                    }
                    Ok(None) => break,
                    Err(_) => break 'connection,
                }
            }
            match stream.read(&mut bytes) {
                Ok(count) if count > 0 => buffer.extend_from_slice(&bytes[..count]),
                _ => break,
            }
        }
        let mut state = self.lock();
        state.writers.remove(&id);
        state.seen[id].closed = Some(Instant::now());
    }

    fn register(&self, stream: &TcpStream) -> io::Result<(usize, SocketAddr)> {
        stream.set_nodelay(true)?;
        let (writer, local) = (stream.try_clone()?, stream.local_addr()?);
        let mut state = self.lock();
        let id = state.seen.len();
        state.seen.push(Seen {
            id,
            local,
            opened: Instant::now(),
            closed: None,
            is_cut: false,
            is_resp3: false,
            opt_in: None,
            last_command: None,
            was_waiting: false,
        });
        state.writers.insert(id, writer);
        Ok((id, local))
    }

    /// Answers one request.
    fn answer(&self, id: usize, request: &Frame) -> io::Result<()> {
        let Frame::Array(words) = request else { return Err(io::ErrorKind::InvalidData.into()) };
        let words: Vec<Bytes> = words
            .iter()
            .filter_map(|word| match word {
                Frame::Bulk(word) => Some(word.clone()),
                _ => None,
            })
            .collect();
        let name = |place: usize| {
            words
                .get(place)
                .map(|word| String::from_utf8_lossy(word).to_ascii_lowercase())
                .unwrap_or_default()
        };
        let mut frames = Vec::new();
        let mut hold = None;
        {
            let mut state = self.lock();
            match (name(0).as_str(), name(1).as_str()) {
                ("hello", version) => {
                    state.seen[id].is_resp3 |= version == "3";
                    frames.push(hello());
                }
                ("client", "maint_notifications") => {
                    let texts = words.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect();
                    let is_resp3 = state.seen[id].is_resp3;
                    match &state.opt_in {
                        OptIn::Refuse => frames
                            .push(error("ERR unknown subcommand 'MAINT_NOTIFICATIONS'. Try CLIENT HELP.")),
                        OptIn::Accept(behind) => {
                            frames.push(simple("OK"));
                            frames.extend(behind.iter().cloned());
                        }
                    }
                    state.seen[id].opt_in = Some((texts, is_resp3));
                }
                ("client", "id") => frames.push(Frame::Integer(id as i64 + 1)),
                ("client" | "auth" | "select" | "readonly", _) => frames.push(simple("OK")),
                _ => {
                    state.seen[id].last_command = Some(Instant::now());
                    hold = state.hold.remove(&id);
                    state.seen[id].was_waiting = hold.is_some();
                    frames.push(ordinary(&mut state.values, &name(0), &words));
                }
            }
        }
        if let Some(time) = hold {
            std::thread::sleep(time);
        }
        let bytes: Vec<u8> = frames.iter().flat_map(|frame| frame.encode(Proto::Resp3)).collect();
        let mut state = self.lock();
        let writer = state.writers.get_mut(&id).ok_or(io::ErrorKind::NotConnected)?;
        writer.write_all(&bytes)?;
        state.seen[id].was_waiting = false;
        Ok(())
    }
}

fn simple(text: &'static str) -> Frame {
    Frame::Simple(Bytes::from_static(text.as_bytes()))
}

fn error(text: &'static str) -> Frame {
    Frame::Error(Bytes::from_static(text.as_bytes()))
}

fn bulk(text: &'static str) -> Frame {
    Frame::Bulk(Bytes::from_static(text.as_bytes()))
}

fn hello() -> Frame {
    Frame::Map(vec![
        (bulk("server"), bulk("redis")),
        (bulk("version"), bulk("8.0.0")),
        (bulk("proto"), Frame::Integer(3)),
        (bulk("id"), Frame::Integer(1)),
        (bulk("mode"), bulk("standalone")),
        (bulk("role"), bulk("master")),
        (bulk("modules"), Frame::Array(Vec::new())),
    ])
}

/// The few commands that loops of test programs are made of; anything else is answered with OK.
fn ordinary(values: &mut HashMap<Vec<u8>, Vec<u8>>, name: &str, words: &[Bytes]) -> Frame {
    let key = words.get(1).map(|key| key.to_vec()).unwrap_or_default();
    match name {
        "ping" => words.get(1).map_or_else(|| simple("PONG"), |word| Frame::Bulk(word.clone())),
        "echo" => words.get(1).map_or(Frame::Null, |word| Frame::Bulk(word.clone())),
        "get" => values.get(&key).map_or(Frame::Null, |value| Frame::Bulk(Bytes::copy_from_slice(value))),
        "set" => {
            let value = words.get(2).filter(|value| value.len() <= VALUE_BYTES_MAX);
            if let Some(value) = value.filter(|_| values.len() < KEYS_MAX) {
                values.insert(key, value.to_vec());
            }
            simple("OK")
        }
        "incr" => {
            let old = values.get(&key).and_then(|value| std::str::from_utf8(value).ok()?.parse::<i64>().ok());
            let new = old.unwrap_or(0).wrapping_add(1);
            if values.len() < KEYS_MAX {
                values.insert(key, new.to_string().into_bytes());
            }
            Frame::Integer(new)
        }
        "command" | "cluster" => Frame::Array(Vec::new()),
        "info" => bulk("# Server\r\nredis_version:8.0.0\r\nredis_mode:standalone\r\n"),
        _ => simple("OK"),
    }
}
