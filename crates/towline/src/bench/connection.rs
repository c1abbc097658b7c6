//! Sockets to the server: where it is, how a connection is opened and made ready.
//!
//! Owns addresses, the handshake (HELLO or AUTH, SELECT) and single requests outside the measured path. Does not own
//! the load itself (`drive`).

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

use super::options::TargetArgs;
use super::reply::ReplyCounter;
use crate::tls::Connector;

/// Bytes that the answer to a single request may have; INFO has a few thousand.
const ANSWER_BYTES_MAX: usize = 4 << 20;

/// A connected socket of any supported kind.
#[derive(Debug)]
pub(crate) enum Stream {
    /// TCP, without Nagle's delay.
    Tcp(TcpStream),
    /// A Unix stream socket.
    Unix(UnixStream),
    /// TLS over TCP.
    #[cfg(feature = "tls")]
    Tls(Box<tokio_rustls::client::TlsStream<TcpStream>>),
}

impl Stream {
    /// Whether written bytes may wait in it until it is flushed.
    pub(crate) fn buffers(&self) -> bool {
        match self {
            Self::Tcp(_) | Self::Unix(_) => false,
            #[cfg(feature = "tls")]
            Self::Tls(_) => true,
        }
    }
}

impl AsyncRead for Stream {
    #[inline]
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_read(context, into),
            Self::Unix(stream) => Pin::new(stream).poll_read(context, into),
            #[cfg(feature = "tls")]
            Self::Tls(stream) => Pin::new(stream).poll_read(context, into),
        }
    }
}

impl AsyncWrite for Stream {
    #[inline]
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Unix(stream) => Pin::new(stream).poll_write(context, bytes),
            #[cfg(feature = "tls")]
            Self::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_flush(context),
            Self::Unix(stream) => Pin::new(stream).poll_flush(context),
            #[cfg(feature = "tls")]
            Self::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(context),
            #[cfg(feature = "tls")]
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}

/// Where the server listens, names already resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Address {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// A server and the identity to use there.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    address: Address,
    /// With the host that the certificate must name.
    tls: Option<(Connector, String)>,
    label: String,
    user: Option<String>,
    password: Option<String>,
    db: u32,
    is_resp3: bool,
    timeout: Option<Duration>,
}

impl Target {
    /// Resolves the host of `options` to its first address that accepts a connection.
    ///
    /// # Errors
    /// When the name is unknown, or nothing accepts at any of its addresses; the text says what to do.
    pub(crate) async fn resolve(options: &TargetArgs) -> Result<Self> {
        let mut target = Self {
            address: Address::Unix(PathBuf::new()),
            tls: Connector::new(&options.tls)?.map(|connector| (connector, options.host.clone())),
            label: String::new(),
            user: options.user.clone(),
            password: options.password.clone(),
            db: options.db,
            is_resp3: options.is_resp3,
            timeout: (options.timeout_secs > 0).then(|| Duration::from_secs(options.timeout_secs)),
        };
        if target.user.is_some() && target.password.is_none() {
            bail!("--user needs a password; add -a PASSWORD");
        }
        if let Some(path) = &options.socket {
            if target.tls.is_some() {
                bail!("--tls is for TCP; leave out --socket");
            }
            target.label = path.display().to_string();
            target.address = Address::Unix(path.clone());
            target.within(target.open()).await?;
            return Ok(target);
        }
        target.label = format!("{}:{}", options.host, options.port);
        let addresses = tokio::net::lookup_host((options.host.as_str(), options.port))
            .await
            .with_context(|| format!("host {:?} has no address; check -h", options.host))?;
        let mut failure = None;
        for address in addresses {
            target.address = Address::Tcp(address);
            match target.within(target.open()).await {
                Ok(_) => return Ok(target),
                Err(error) => failure = Some(error),
            }
        }
        Err(failure.unwrap_or_else(|| anyhow::anyhow!("host {:?} has no address; check -h", options.host)))
    }

    /// Whether the server is on this machine.
    pub(crate) fn is_local(&self) -> bool {
        match &self.address {
            Address::Tcp(address) => address.ip().is_loopback(),
            Address::Unix(_) => true,
        }
    }

    /// How long a run may see no progress; `None` is for ever.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    /// Opens a socket and makes it ready: protocol, identity, database.
    ///
    /// # Errors
    /// When the connect fails or takes longer than the timeout, or the server refuses the handshake.
    pub(crate) async fn connect(&self) -> Result<Stream> {
        let ready = async {
            let mut stream = self.open().await?;
            self.handshake(&mut stream).await?;
            Ok(stream)
        };
        self.within(ready).await
    }

    /// Bounds `work` by the timeout.
    ///
    /// # Errors
    /// Those of `work`, or that the time is over.
    pub(crate) async fn within<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        let Some(limit) = self.timeout else { return work.await };
        let outcome = tokio::time::timeout(limit, work).await;
        outcome.unwrap_or_else(|_| bail!("no answer from {} within {} s", self.label, limit.as_secs()))
    }

    /// Opens a socket, without a handshake.
    ///
    /// # Errors
    /// When nothing accepts there.
    pub(crate) async fn open(&self) -> Result<Stream> {
        let failed = |error| anyhow::anyhow!("cannot connect to {}: {}", self.label, advice(&error));
        let stream = match &self.address {
            Address::Tcp(address) => TcpStream::connect(address).await.map_err(failed)?,
            Address::Unix(path) => return UnixStream::connect(path).await.map(Stream::Unix).map_err(failed),
        };
        stream.set_nodelay(true).map_err(failed)?;
        match &self.tls {
            None => Ok(Stream::Tcp(stream)),
            Some((connector, host)) => self.shake(connector, host, stream).await,
        }
    }

    #[cfg(feature = "tls")]
    async fn shake(&self, connector: &Connector, host: &str, stream: TcpStream) -> Result<Stream> {
        let name = connector.name(host)?;
        let tls = tokio_rustls::TlsConnector::from(std::sync::Arc::clone(&connector.config));
        // Boxed: it is larger than all the rest of connecting.
        let shaken = Box::pin(tls.connect(name, stream)).await;
        let stream = shaken.with_context(|| format!("no TLS with {}", self.label))?;
        Ok(Stream::Tls(Box::new(stream)))
    }

    #[cfg(not(feature = "tls"))]
    async fn shake(&self, connector: &Connector, _host: &str, _stream: TcpStream) -> Result<Stream> {
        match *connector {}
    }

    async fn handshake(&self, stream: &mut Stream) -> Result<()> {
        let user = self.user.as_deref().unwrap_or("default");
        let mut line = Vec::new();
        match (&self.password, self.is_resp3) {
            (Some(password), true) => line.extend(["HELLO", "3", "AUTH", user, password]),
            (None, true) => line.extend(["HELLO", "3"]),
            (Some(password), false) if self.user.is_none() => line.extend(["AUTH", password]),
            (Some(password), false) => line.extend(["AUTH", user, password]),
            (None, false) => {}
        }
        if !line.is_empty() {
            request(stream, &line).await?;
        }
        if self.db != 0 {
            request(stream, &["SELECT", &self.db.to_string()]).await?;
        }
        Ok(())
    }
}

/// What an I/O error on connect means for the person at the terminal.
fn advice(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            "connection refused; start a server there (towline server) or name another with -h and -p"
                .to_owned()
        }
        io::ErrorKind::NotFound => {
            "no such socket; check --socket and that the server has it open".to_owned()
        }
        _ if error.raw_os_error() == Some(rustix::io::Errno::MFILE.raw_os_error()) => {
            "too many open files; raise the limit (ulimit -n) or open fewer connections".to_owned()
        }
        _ => error.to_string(),
    }
}

/// Sends one command and returns the raw bytes of its reply.
///
/// # Errors
/// When the connection fails, the reply is an error (the text is the server's, with advice where there is some), or it
/// exceeds a bound.
pub(crate) async fn request(stream: &mut Stream, arguments: &[&str]) -> Result<Vec<u8>> {
    stream.write_all(&encode(arguments)).await.context("the server closed the connection")?;
    stream.flush().await.context("the server closed the connection")?;
    let mut answer = Vec::new();
    let mut counter = ReplyCounter::default();
    loop {
        let before = answer.len();
        let read = stream.read_buf(&mut answer).await.context("the server closed the connection")?;
        if read == 0 {
            bail!("the server closed the connection");
        }
        let mut refusal = None;
        let replies = counter
            .feed(&answer[before..], |text| refusal = Some(String::from_utf8_lossy(text).into_owned()))?;
        if let Some(text) = refusal {
            bail!("the server refused {}: {text}{}", arguments[0], hint(&text));
        }
        if replies > 0 {
            return Ok(answer);
        }
        if answer.len() > ANSWER_BYTES_MAX {
            bail!("the reply to {} is longer than {ANSWER_BYTES_MAX} bytes", arguments[0]);
        }
    }
}

/// One command as bytes.
pub(crate) fn encode(arguments: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", arguments.len()).into_bytes();
    for argument in arguments {
        bytes.extend_from_slice(format!("${}\r\n{argument}\r\n", argument.len()).as_bytes());
    }
    bytes
}

fn hint(refusal: &str) -> &'static str {
    let word = refusal.split(' ').next().unwrap_or_default();
    match word {
        "NOAUTH" => "; give the password with -a",
        "WRONGPASS" => "; check -a and --user",
        "NOPROTO" => "; leave out -3",
        _ => "",
    }
}

/// The number after `name:` in the reply to INFO.
pub(crate) fn info_number(reply: &[u8], name: &str) -> Option<u64> {
    let text = String::from_utf8_lossy(reply);
    let found = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    found?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn info_fields_are_found_by_their_whole_name() {
        let reply = b"$40\r\n# Server\r\nprocess_id:12\r\nxprocess_id:13\r\n\r\n";
        assert_eq!(info_number(reply, "process_id"), Some(12));
        assert_eq!(info_number(reply, "process"), None);
    }

    #[test]
    fn a_refused_connection_says_what_to_do() {
        let text = advice(&io::Error::from(io::ErrorKind::ConnectionRefused));
        assert!(text.contains("towline server") && text.contains("-p"), "{text}");
    }
}
