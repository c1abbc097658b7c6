//! TLS on a port of its own.
//!
//! Owns: rustls's configuration, made from the files that ours names, its replacement at run time, and handshakes. Does
//! **not** own which clients are let in (see [`crate::worker`]) nor what is said inside (see [`crate::connection`]).
//!
//! The cryptography is aws-lc-rs, given explicitly: the process has no default provider, so nothing else that is linked in
//! can change it. Versions 1.2 and 1.3 are spoken.
//!
//! A client counts for `maxclients` from the moment it is accepted, in its handshake as well. What protects the others is
//! this: a handshake that waits for its peer costs a task and a socket (nothing of TLS is allocated before the first
//! byte), is ended after `tls-handshake-timeout-ms`, and the costly steps, signatures, are taken [`STEPS_PER_ROUND`] at a time,
//! with a round of everybody else's work in between.

use crate::config::{Config, TlsAuthClients};
use crate::connection::{self, Desk, unix_ms};
use crate::farewell;
use crate::session::Session;
use crate::shared::Shared;
use crate::stream::Stream;
use crate::worker::{self, Greeting};
use arc_swap::ArcSwapOption;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::io::{self, Read as _};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::{spawn_local, yield_now};
use tokio_rustls::rustls::crypto::{CryptoProvider, aws_lc_rs};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, pem};
use tokio_rustls::rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use tokio_rustls::rustls::{self, RootCertStore, ServerConfig};
use tokio_rustls::server::TlsStream;
use tokio_rustls::{Accept, TlsAcceptor};

/// Steps of handshakes that a worker takes before all its other tasks get a turn. A step with a signature takes about
/// half a millisecond with a 2048-bit RSA key, so this bounds what handshakes add to the latency of commands.
const STEPS_PER_ROUND: usize = 2;
/// Bytes that are read of a PEM file; the public authorities of the whole web are a quarter of a megabyte.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// Why TLS cannot be set up: one line that names the parameter, the file and the remedy. The configuration is at fault, or
/// the environment.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A parameter is not set.
    #[error("TLS needs '{parameter}': set it to a PEM file{hint}")]
    NotSet {
        /// The parameter.
        parameter: &'static str,
        /// What else would do.
        hint: &'static str,
    },
    /// A file cannot be read.
    #[error("{parameter} '{path}': cannot read the file: {source}")]
    Unreadable {
        /// The parameter.
        parameter: &'static str,
        /// The file.
        path: String,
        /// What the system says.
        source: io::Error,
    },
    /// A file has not what is looked for.
    #[error("{parameter} '{path}': {reason}")]
    Content {
        /// The parameter.
        parameter: &'static str,
        /// The file.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The key does not belong to the certificate, or neither can be used.
    #[error(
        "'{cert}' and '{key}' do not go together: {reason} (tls-key-file must be the key of the first certificate in tls-cert-file)"
    )]
    Identity {
        /// `tls-cert-file`.
        cert: String,
        /// `tls-key-file`.
        key: String,
        /// What rustls says.
        reason: rustls::Error,
    },
}

/// What new handshakes go by.
#[derive(Debug, Default)]
pub(crate) struct Tls(ArcSwapOption<ServerConfig>);

impl Tls {
    /// Reads the files again and makes new connections use them; those that exist keep what they have. Does nothing when
    /// there is no TLS port.
    ///
    /// # Errors
    /// [`TlsError`]; everything is as before then.
    pub(crate) fn reload(&self, config: &Config) -> Result<(), TlsError> {
        if config.tls_port != 0 {
            self.0.store(Some(Arc::new(server_config(config)?)));
        }
        Ok(())
    }
}

/// What rustls is to do, as `config` says.
fn server_config(config: &Config) -> Result<ServerConfig, TlsError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let (cert_path, certs) = certificates("tls-cert-file", config.tls_cert_file.as_deref(), "")?;
    let (key_path, key) = private_key(config.tls_key_file.as_deref())?;
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .expect("invariant: the provider has suites for both versions");
    let builder = match config.tls_auth_clients {
        TlsAuthClients::No => builder.with_no_client_auth(),
        auth => builder.with_client_cert_verifier(client_verifier(config, provider, auth)?),
    };
    builder.with_single_cert(certs, key).map_err(|reason| TlsError::Identity {
        cert: cert_path.to_owned(),
        key: key_path.to_owned(),
        reason,
    })
}

fn client_verifier(
    config: &Config,
    provider: Arc<CryptoProvider>,
    auth: TlsAuthClients,
) -> Result<Arc<dyn rustls::server::danger::ClientCertVerifier>, TlsError> {
    const PARAMETER: &str = "tls-ca-cert-file";
    let hint = " with who may sign clients' certificates, or set 'tls-auth-clients no'";
    let (path, authorities) = certificates(PARAMETER, config.tls_ca_cert_file.as_deref(), hint)?;
    let content = |reason: String| TlsError::Content { parameter: PARAMETER, path: path.to_owned(), reason };
    let mut roots = RootCertStore::empty();
    for authority in authorities {
        roots.add(authority).map_err(|error| content(format!("not a usable certificate: {error}")))?;
    }
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
    let builder = if auth == TlsAuthClients::Optional { builder.allow_unauthenticated() } else { builder };
    builder.build().map_err(|error: VerifierBuilderError| content(error.to_string()))
}

/// The certificates of a PEM file, of which there is at least one, and the file's path.
fn certificates<'a>(
    parameter: &'static str,
    path: Option<&'a str>,
    hint: &'static str,
) -> Result<(&'a str, Vec<CertificateDer<'static>>), TlsError> {
    let path = path.ok_or(TlsError::NotSet { parameter, hint })?;
    let content = |reason: String| TlsError::Content { parameter, path: path.to_owned(), reason };
    let pem = read(parameter, path)?;
    let certs: Vec<_> = CertificateDer::pem_slice_iter(&pem)
        .collect::<Result<_, _>>()
        .map_err(|error| content(not_pem(&error)))?;
    if certs.is_empty() {
        return Err(content("has no certificate; it needs '-----BEGIN CERTIFICATE-----'".into()));
    }
    Ok((path, certs))
}

fn private_key(path: Option<&str>) -> Result<(&str, PrivateKeyDer<'static>), TlsError> {
    const PARAMETER: &str = "tls-key-file";
    let path = path.ok_or(TlsError::NotSet { parameter: PARAMETER, hint: "" })?;
    let pem = read(PARAMETER, path)?;
    let key = PrivateKeyDer::from_pem_slice(&pem).map_err(|error| {
        let reason = match error {
            pem::Error::NoItemsFound => {
                "has no private key that can be used; it needs '-----BEGIN PRIVATE KEY-----', not encrypted \
                 (openssl pkey -in FILE -out NEW decrypts one)"
                    .into()
            }
            error => not_pem(&error),
        };
        TlsError::Content { parameter: PARAMETER, path: path.to_owned(), reason }
    })?;
    Ok((path, key))
}

fn not_pem(error: &pem::Error) -> String {
    format!("is not well-formed PEM: {error}")
}

fn read(parameter: &'static str, path: &str) -> Result<Vec<u8>, TlsError> {
    let unreadable = |source| TlsError::Unreadable { parameter, path: path.to_owned(), source };
    let mut pem = Vec::new();
    let file = std::fs::File::open(path).map_err(unreadable)?;
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut pem).map_err(unreadable)?;
    if pem.len() as u64 > FILE_BYTES_MAX {
        let reason = format!("is larger than {FILE_BYTES_MAX} bytes; is it the right file?");
        return Err(TlsError::Content { parameter, path: path.to_owned(), reason });
    }
    Ok(pem)
}

/// Accepts connections on the TLS port until the worker ends.
pub(crate) async fn accept(listener: TcpListener, shared: Arc<Shared>, desk: Rc<RefCell<Desk>>) {
    let turns = Rc::new(Turns::default());
    spawn_local(Rc::clone(&turns).grant());
    let mut accepted = 0;
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                let tls = shared.tls.0.load_full();
                let session =
                    worker::admit_tcp(&shared, &shared.config(), &stream, peer, Greeting::Handshake);
                if let (Some(tls), Some(session)) = (tls, session) {
                    let client = begin(stream, tls, session, Rc::clone(&turns), Rc::clone(&desk));
                    spawn_local(client);
                }
            }
            Err(error) => worker::rest(&error).await,
        }
        accepted += 1;
        if accepted % worker::ACCEPTS_PER_TURN == 0 {
            yield_now().await;
        }
    }
}

/// Serves a connection once its handshake has succeeded.
async fn begin(
    stream: TcpStream,
    tls: Arc<ServerConfig>,
    mut session: Session,
    turns: Rc<Turns>,
    desk: Rc<RefCell<Desk>>,
) {
    let shaken = {
        let timeout_ms = desk.borrow().local.shared.config().tls_handshake_timeout_ms;
        let handshake = Box::pin(handshake(stream, tls, &session, &turns));
        tokio::time::timeout(Duration::from_millis(timeout_ms), handshake).await
    };
    let error = match shaken {
        Ok(Ok(stream)) => return connection::serve(Stream::Tls(Box::new(stream)), session, desk).await,
        Ok(Err(error)) => error,
        Err(_) => io::ErrorKind::TimedOut.into(),
    };
    tracing::debug!(%error, peer = &*session.client.addresses.peer, "a TLS handshake failed");
    farewell::session_end(&mut desk.borrow_mut().local, &mut session, unix_ms());
}

async fn handshake(
    stream: TcpStream,
    tls: Arc<ServerConfig>,
    session: &Session,
    turns: &Turns,
) -> io::Result<TlsStream<TcpStream>> {
    let client = &session.client;
    let killed = || io::Error::from(io::ErrorKind::ConnectionAborted);
    poll_fn(|cx| {
        client.register(cx.waker());
        if client.is_killed() { Poll::Ready(Err(killed())) } else { stream.poll_read_ready(cx) }
    })
    .await?;
    let mut accept = TlsAcceptor::from(tls).accept(stream);
    poll_fn(|cx| {
        client.register(cx.waker());
        if client.is_killed() { Poll::Ready(Err(killed())) } else { turns.poll(cx, &mut accept) }
    })
    .await
}

/// Who may take a step of its handshake in this round of the worker.
#[derive(Debug, Default)]
struct Turns {
    taken: Cell<usize>,
    waiting: RefCell<VecDeque<Waker>>,
    changed: Notify,
}

impl Turns {
    /// Takes a step, now or in one of the next rounds.
    fn poll(
        &self,
        cx: &mut Context<'_>,
        accept: &mut Accept<TcpStream>,
    ) -> Poll<io::Result<TlsStream<TcpStream>>> {
        self.changed.notify_one();
        if self.taken.get() == STEPS_PER_ROUND {
            self.waiting.borrow_mut().push_back(cx.waker().clone());
            return Poll::Pending;
        }
        self.taken.set(self.taken.get() + 1);
        Pin::new(accept).poll(cx)
    }

    /// Begins a new round whenever all other tasks had their turn in the old one.
    async fn grant(self: Rc<Self>) {
        loop {
            self.changed.notified().await;
            // Who is woken may be gone, or in line twice, and take no step: the line's end counts, not the steps.
            while self.taken.get() > 0 || !self.waiting.borrow().is_empty() {
                yield_now().await;
                self.taken.set(0);
                let mut waiting = self.waiting.borrow_mut();
                let count = waiting.len().min(STEPS_PER_ROUND);
                waiting.drain(..count).for_each(Waker::wake);
            }
        }
    }
}

#[cfg(test)]
mod tests;
