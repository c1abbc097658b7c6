//! TLS: what is asked for, and why it failed.
//!
//! Owns: [`TlsOptions`], the choice of the library, and the errors, which exist without the features `tls` and `native-tls` too, so that configurations are the
//! same in all builds. Does **not** own the handshakes themselves (`handshake`, `system`).

#[cfg(any(feature = "tls", feature = "native-tls"))]
mod files;
#[cfg(feature = "tls")]
mod handshake;
#[cfg(feature = "native-tls")]
mod system;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How to speak TLS. The default checks the server's certificate against the system's authorities.
///
/// ```
/// use towline_client::transport::TlsOptions;
///
/// let options = TlsOptions::new().ca_file("ca.pem").client_files("client.pem", "client.key").server_name("db");
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct TlsOptions {
    authorities: Vec<Pem>,
    has_system_authorities: bool,
    identity: Option<(Pem, Pem)>,
    server_name: Option<String>,
    is_insecure: bool,
    library: Option<TlsLibrary>,
}

/// Who speaks TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TlsLibrary {
    /// rustls with aws-lc: the same on every system. Feature `tls`. The default where it is built: its errors name more, and
    /// later handshakes resume the session of earlier ones.
    Rustls,
    /// The system's own: OpenSSL, SChannel, Security.framework. Feature `native-tls`. For those whose rules name it, or whose
    /// keys only it can use.
    System,
}

impl TlsOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Trusts the authorities in a PEM file, in place of the system's. It is read again when it changes.
    pub fn ca_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.authorities.push(Pem::File(path.into()));
        self
    }

    /// Trusts the authorities in this PEM text, in place of the system's.
    pub fn ca_pem(mut self, pem: impl AsRef<[u8]>) -> Self {
        self.authorities.push(Pem::Text(pem.as_ref().into()));
        self
    }

    /// Trusts the system's authorities besides those that are named.
    pub const fn with_system_authorities(mut self) -> Self {
        self.has_system_authorities = true;
        self
    }

    /// Shows a certificate to the server: PEM files with the chain, the own certificate first, and with its key. They
    /// are read again when they change.
    pub fn client_files(mut self, chain: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.identity = Some((Pem::File(chain.into()), Pem::File(key.into())));
        self
    }

    /// Shows a certificate to the server, from PEM texts.
    pub fn client_pem(mut self, chain: impl AsRef<[u8]>, key: impl AsRef<[u8]>) -> Self {
        self.identity = Some((Pem::Text(chain.as_ref().into()), Pem::Text(key.as_ref().into())));
        self
    }

    /// The name that the server is asked for (SNI) and that its certificate must have, in place of the target's host.
    /// Needed for Unix sockets and tunnels.
    pub fn server_name(mut self, name: impl Into<String>) -> Self {
        self.server_name = Some(name.into());
        self
    }

    /// Whether a name is set, so that the target's host is not needed for it.
    pub const fn has_server_name(&self) -> bool {
        self.server_name.is_some()
    }

    /// Uses this library in place of the default: [`TlsLibrary::Rustls`] if it is built, else the system's.
    pub const fn library(mut self, library: TlsLibrary) -> Self {
        self.library = Some(library);
        self
    }

    /// Does not check the server's certificate: **anybody on the path may answer in its place** and sees every
    /// password. For tests.
    pub const fn danger_accept_any_certificate(mut self, is_insecure: bool) -> Self {
        self.is_insecure = is_insecure;
        self
    }
}

/// Shows no key and no certificate, only where they come from.
impl fmt::Debug for TlsOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsOptions")
            .field("authorities", &self.authorities)
            .field("has_system_authorities", &self.has_system_authorities)
            .field("identity", &self.identity)
            .field("server_name", &self.server_name)
            .field("is_insecure", &self.is_insecure)
            .field("library", &self.library)
            .finish()
    }
}

/// Where a certificate or key comes from.
#[derive(Clone, PartialEq, Eq)]
enum Pem {
    File(PathBuf),
    Text(Arc<[u8]>),
}

impl Pem {
    #[cfg_attr(
        not(any(feature = "tls", feature = "native-tls")),
        expect(dead_code, reason = "only the handshake reads files")
    )]
    fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Text(_) => None,
        }
    }
}

impl fmt::Debug for Pem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => fmt::Debug::fmt(path, f),
            Self::Text(_) => f.write_str("(text)"),
        }
    }
}

/// What is wrong with [`TlsOptions`]; the caller's to mend.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TlsConfigError {
    /// This build has no TLS, or not by the library that is asked for.
    #[error(
        "TLS is asked for that this build has not: enable the feature `tls`, or `native-tls`, of towline-client"
    )]
    NotBuilt,
    /// A certificate or a key cannot be used.
    #[error("{what} from {from}: {reason}")]
    Pem {
        /// What it is to be.
        what: &'static str,
        /// The file, or that it is a text.
        from: String,
        /// What is wrong.
        reason: String,
    },
    /// The system's authorities are not where systems have them.
    #[error("this system has no list of authorities; name one with `ca_file`, or in SSL_CERT_FILE")]
    NoSystemAuthorities,
    /// The client's certificate and key do not fit each other.
    #[error("the client's certificate and key cannot be used: {0}")]
    Identity(String),
    /// The configured name is none that a certificate can have.
    #[error("the TLS option `server_name` is '{0}', which is no name that a certificate can have")]
    ServerName(String),
}

/// Why TLS with a server failed. `Display` says what to look at.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TlsFailure {
    /// The certificate is for other names: another server, or the option `server_name` is missing.
    #[error("the server's certificate is not for '{expected}' but for: {}", presented.join(", "))]
    WrongName {
        /// The name that was asked for; empty when it is not known.
        expected: String,
        /// The names in the certificate.
        presented: Vec<String>,
    },
    /// The certificate is not signed by an authority that is trusted.
    #[error("the server's certificate is signed by an authority that is not trusted; name it with `ca_file`")]
    UnknownAuthority,
    /// The certificate is not valid any more, or this host's clock is wrong.
    #[error("the server's certificate has expired, or this host's clock is ahead")]
    Expired,
    /// The certificate is not valid yet, or this host's clock is wrong.
    #[error("the server's certificate is not valid yet, or this host's clock is behind")]
    NotYetValid,
    /// The certificate has been revoked.
    #[error("the server's certificate has been revoked")]
    Revoked,
    /// The certificate has another fault.
    #[error("the server's certificate cannot be used: {0}")]
    Certificate(String),
    /// The server refused with an alert, for example because it wants a certificate of the client.
    #[error("the server refused: {0}")]
    Refused(String),
    /// What came is not TLS: probably a port without TLS.
    #[error("the server does not speak TLS on this port")]
    NotTls,
    /// The server closed the connection in the middle of the handshake.
    #[error("the server closed the connection during the handshake")]
    Closed,
    /// The connection failed.
    #[error("the connection failed during the handshake: {0}")]
    Io(io::ErrorKind),
    /// Another violation of the protocol.
    #[error("{0}")]
    Other(String),
}

/// TLS of one client, by either library; without the features there is nothing to connect with.
#[derive(Debug, Clone)]
pub(super) enum Tls {
    #[cfg(feature = "tls")]
    Rustls(Arc<handshake::Tls>),
    #[cfg(feature = "native-tls")]
    System(Arc<system::Tls>),
}

impl Tls {
    /// Reads all certificates.
    pub(super) fn new(options: TlsOptions) -> Result<Self, TlsConfigError> {
        let default = if cfg!(feature = "tls") { TlsLibrary::Rustls } else { TlsLibrary::System };
        match options.library.unwrap_or(default) {
            #[cfg(feature = "tls")]
            TlsLibrary::Rustls => Ok(Self::Rustls(Arc::new(handshake::Tls::new(options)?))),
            #[cfg(feature = "native-tls")]
            TlsLibrary::System => Ok(Self::System(Arc::new(system::Tls::new(options)?))),
            #[cfg(not(all(feature = "tls", feature = "native-tls")))]
            _ => Err(TlsConfigError::NotBuilt),
        }
    }
}

/// Negotiates TLS on a new stream.
#[cfg_attr(
    not(any(feature = "tls", feature = "native-tls")),
    expect(clippy::unused_async, unused_variables, reason = "the signature of the one with a library")
)]
pub(super) async fn handshake(
    tls: &Tls,
    stream: super::Stream,
    identity: &super::Target,
    limit: &super::Limit<'_>,
) -> Result<super::Stream, super::ConnectError> {
    match *tls {
        #[cfg(feature = "tls")]
        Tls::Rustls(ref tls) => handshake::handshake(tls, stream, identity, limit).await,
        #[cfg(feature = "native-tls")]
        Tls::System(ref tls) => system::handshake(tls, stream, identity, limit).await,
    }
}
