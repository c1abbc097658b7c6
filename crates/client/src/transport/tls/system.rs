//! The handshake, with the system's own library: OpenSSL, SChannel or Security.framework, by `native-tls`.
//!
//! Owns: what [`TlsOptions`] mean to it, and what its errors mean. The library tells its reasons as text only: those of OpenSSL
//! are sorted into [`TlsFailure`], all else is [`TlsFailure::Other`] in the library's own words. Sessions are not resumed.

use super::files::{Loaded, pem_error, read};
use super::{Pem, TlsConfigError, TlsFailure, TlsOptions};
use crate::transport::{ConnectError, DialStage, Kind, Limit, Stream, Target};
use std::sync::Arc;
use tokio_native_tls::TlsConnector;
use tokio_native_tls::native_tls::{self, Certificate, Identity, Protocol};

const CERTIFICATE_END: &[u8] = b"-----END CERTIFICATE-----";

/// TLS of one client.
#[derive(Debug)]
pub(crate) struct Tls {
    server_name: Option<String>,
    loaded: Arc<Loaded<TlsConnector>>,
}

impl Tls {
    /// Reads all certificates.
    pub(crate) fn new(options: TlsOptions) -> Result<Self, TlsConfigError> {
        let server_name = options.server_name.clone();
        Ok(Self { server_name, loaded: Loaded::new(options, load)? })
    }
}

/// Negotiates TLS on a new stream.
pub(crate) async fn handshake(
    tls: &Arc<Tls>,
    stream: Stream,
    identity: &Target,
    limit: &Limit<'_>,
) -> Result<Stream, ConnectError> {
    let name = match (&tls.server_name, identity) {
        (Some(name), _) => name,
        (None, Target::Tcp { host, .. }) => host,
        (None, target) => return Err(ConnectError::ServerName(target.to_string())),
    };
    let done = limit.hold(DialStage::Tls, async { tls.loaded.now().await.connect(name, stream).await });
    match done.await? {
        Ok(stream) => Ok(Stream { kind: Kind::System(Box::new(stream)) }),
        Err(error) => {
            let failure = failure_of(&error.to_string(), name);
            Err(ConnectError::Tls { target: limit.target.clone(), failure })
        }
    }
}

/// What OpenSSL's words mean.
fn failure_of(text: &str, expected: &str) -> TlsFailure {
    let has = |words: &str| text.contains(words);
    if has("ostname mismatch") || has("IP address mismatch") {
        TlsFailure::WrongName { expected: expected.to_owned(), presented: Vec::new() }
    } else if has("certificate has expired") {
        TlsFailure::Expired
    } else if has("certificate is not yet valid") {
        TlsFailure::NotYetValid
    } else if has("certificate revoked)") {
        TlsFailure::Revoked
    } else if has("local issuer certificate")
        || has("self-signed")
        || has("self signed")
        // One with the name of a trusted authority and another key, as when it was made anew.
        || has("certificate signature failure")
    {
        TlsFailure::UnknownAuthority
    } else if has("certificate verify failed") {
        TlsFailure::Certificate(text.to_owned())
    } else if has("wrong version number") || has("packet length too long") || has("unknown protocol") {
        TlsFailure::NotTls
    } else if has("alert") {
        TlsFailure::Refused(text.to_owned())
    } else if has("unexpected EOF") {
        TlsFailure::Closed
    } else {
        TlsFailure::Other(text.to_owned())
    }
}

fn load(options: &TlsOptions) -> Result<TlsConnector, TlsConfigError> {
    let mut builder = native_tls::TlsConnector::builder();
    builder
        .min_protocol_version(Some(Protocol::Tlsv12))
        .danger_accept_invalid_certs(options.is_insecure)
        .danger_accept_invalid_hostnames(options.is_insecure);
    if !options.authorities.is_empty() {
        builder.disable_built_in_roots(!options.has_system_authorities);
    }
    for source in &options.authorities {
        for certificate in authorities(source)? {
            builder.add_root_certificate(certificate);
        }
    }
    if let Some((chain, key)) = &options.identity {
        builder.identity(identity(chain, key)?);
    }
    builder.build().map(TlsConnector::from).map_err(|error| TlsConfigError::Identity(error.to_string()))
}

fn identity(chain: &Pem, key: &Pem) -> Result<Identity, TlsConfigError> {
    let (chain, what) = (read("the client's certificate", chain)?, "the client's key");
    let text = read(what, key)?;
    if !text.windows(b"PRIVATE KEY".len()).any(|window| window == b"PRIVATE KEY") {
        return Err(pem_error(what, key, "has no private key in PEM form that is not encrypted"));
    }
    Identity::from_pkcs8(&chain, &text).map_err(|error| TlsConfigError::Identity(error.to_string()))
}

/// The certificates of a PEM text; the library takes one at a time.
fn authorities(source: &Pem) -> Result<Vec<Certificate>, TlsConfigError> {
    let what = "authorities";
    let text = read(what, source)?;
    let (mut rest, mut found) = (&text[..], Vec::new());
    while let Some(at) = rest.windows(CERTIFICATE_END.len()).position(|window| window == CERTIFICATE_END) {
        let (one, more) = rest.split_at(at + CERTIFICATE_END.len());
        // Some systems have certificates that nobody can parse any more.
        found.extend(Certificate::from_pem(one));
        rest = more;
    }
    if found.is_empty() {
        return Err(pem_error(what, source, "has no certificate that can be used"));
    }
    Ok(found)
}

/// With rustls in the same build, whose servers the tests have.
#[cfg(all(test, feature = "tls"))]
mod tests {
    use super::super::handshake::tests::{Authority, acceptor, client, dial, echo, exchange, failure};
    use super::*;
    use crate::transport::TlsLibrary;
    use rcgen::{CertificateParams, date_time_ymd};

    fn options() -> TlsOptions {
        TlsOptions::new().library(TlsLibrary::System)
    }

    #[tokio::test]
    async fn bytes_go_through_the_systems_library() {
        let authority = Authority::new();
        let connector =
            client(options().ca_pem(authority.pem()), echo(acceptor(&authority.sign("db.test"), None)));
        let mut stream = dial(&connector).await.unwrap();
        assert!(format!("{stream:?}").contains("system"), "{stream:?}");
        assert_eq!(exchange(&mut stream).await.unwrap(), 7);
        assert!(stream.needs_flush() && stream.write_side().is_none());
    }

    #[tokio::test]
    async fn what_is_wrong_with_a_certificate_is_said() {
        let authority = Authority::new();
        let serve = |params| echo(acceptor(&authority.sign_as(params), None));
        let params = |name: &str| CertificateParams::new(vec![name.to_owned()]).unwrap();
        let trusting = || options().ca_pem(authority.pem());

        let found = failure(&client(trusting(), serve(params("other.test")))).await;
        assert_eq!(found, TlsFailure::WrongName { expected: "db.test".into(), presented: Vec::new() });
        let stranger = options().ca_pem(Authority::new().pem());
        assert_eq!(failure(&client(stranger, serve(params("db.test")))).await, TlsFailure::UnknownAuthority);
        let mut old = params("db.test");
        old.not_after = date_time_ymd(2001, 1, 1);
        assert_eq!(failure(&client(trusting(), serve(old))).await, TlsFailure::Expired);
        let mut early = params("db.test");
        early.not_before = date_time_ymd(4001, 1, 1);
        early.not_after = date_time_ymd(4002, 1, 1);
        assert_eq!(failure(&client(trusting(), serve(early))).await, TlsFailure::NotYetValid);

        let any = client(options().danger_accept_any_certificate(true), serve(params("other.test")));
        assert_eq!(exchange(&mut dial(&any).await.unwrap()).await.unwrap(), 7);
        let named = client(trusting().server_name("other.test"), serve(params("other.test")));
        assert_eq!(exchange(&mut dial(&named).await.unwrap()).await.unwrap(), 7);
    }

    #[tokio::test]
    async fn the_client_shows_its_certificate() {
        let authority = Authority::new();
        let serve = || echo(acceptor(&authority.sign("db.test"), Some(&authority)));
        let (chain, key) = authority.sign("client.test");
        let options = options().ca_pem(authority.pem()).client_pem(chain, key);
        assert_eq!(exchange(&mut dial(&client(options, serve())).await.unwrap()).await.unwrap(), 7);
    }

    #[test]
    fn options_that_cannot_be_used_are_refused_at_once() {
        let error = Tls::new(options().ca_pem("nothing")).unwrap_err();
        assert!(error.to_string().contains("has no certificate"), "{error}");
        let (chain, _) = Authority::new().sign("client.test");
        let error = Tls::new(options().client_pem(chain, "nothing")).unwrap_err();
        assert!(error.to_string().contains("has no private key"), "{error}");
        assert!(Tls::new(options().ca_file("no-such-file.pem")).is_err());
    }
}
