//! The handshake, with rustls.
//!
//! Owns: what [`TlsOptions`] mean to rustls, and what its errors mean. The cryptography is aws-lc-rs, given explicitly: the process's default provider is neither read nor set, so
//! other users of rustls in the process do not matter.

use super::files::{Loaded, pem_error, read};
use super::{Pem, TlsConfigError, TlsFailure, TlsOptions};
use crate::transport::{ConnectError, DialStage, Kind, Limit, Stream, Target};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::crypto::{
    CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature,
};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio_rustls::rustls::{
    AlertDescription, CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore,
    SignatureScheme,
};

/// Where systems keep the authorities that they trust.
const BUNDLES: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
];

/// The variable with which users of OpenSSL name another one.
const BUNDLE_VARIABLE: &str = "SSL_CERT_FILE";

/// TLS of one client.
#[derive(Debug)]
pub(crate) struct Tls {
    server_name: Option<ServerName<'static>>,
    /// A configuration keeps the sessions that handshakes resume.
    loaded: Arc<Loaded<Arc<ClientConfig>>>,
}

impl Tls {
    /// Reads all certificates.
    pub(crate) fn new(options: TlsOptions) -> Result<Self, TlsConfigError> {
        let server_name = options.server_name.as_ref().map(|name| {
            ServerName::try_from(name.clone()).map_err(|_| TlsConfigError::ServerName(name.clone()))
        });
        let server_name = server_name.transpose()?;
        let loaded = Loaded::new(options, |options| load(options).map(Arc::new))?;
        Ok(Self { server_name, loaded })
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
        (Some(name), _) => name.clone(),
        (None, Target::Tcp { host, .. }) => {
            ServerName::try_from(host.clone()).map_err(|_| ConnectError::ServerName(host.clone()))?
        }
        (None, target) => return Err(ConnectError::ServerName(target.to_string())),
    };
    let expected = name.to_str().into_owned();
    let done = limit.hold(DialStage::Tls, async {
        let connector = TlsConnector::from(tls.loaded.now().await);
        connector.connect(name, stream).await
    });
    match done.await? {
        Ok(stream) => Ok(Stream { kind: Kind::Tls(Box::new(stream)) }),
        Err(error) => {
            let mut failure = TlsFailure::of(&error);
            if let Some(TlsFailure::WrongName { expected: empty, .. }) = &mut failure {
                *empty = expected;
            }
            let failure = failure.unwrap_or_else(|| match error.kind() {
                io::ErrorKind::UnexpectedEof => TlsFailure::Closed,
                kind => TlsFailure::Io(kind),
            });
            Err(ConnectError::Tls { target: limit.target.clone(), failure })
        }
    }
}

impl TlsFailure {
    /// What TLS says about an error of a stream; `None` if TLS is not the reason. A server that refuses the client's
    /// certificate says so only after the handshake, so that the first read of a connection fails with it.
    pub fn of(error: &io::Error) -> Option<Self> {
        let error = error.get_ref()?.downcast_ref::<Error>()?;
        Some(match error {
            Error::InvalidCertificate(error) => certificate_failure(error),
            Error::AlertReceived(AlertDescription::CertificateRequired) => {
                Self::Refused("it wants a certificate of the client".to_owned())
            }
            Error::AlertReceived(alert) => Self::Refused(format!("alert {alert:?}")),
            Error::InvalidMessage(_) => Self::NotTls,
            error => Self::Other(error.to_string()),
        })
    }
}

fn certificate_failure(error: &CertificateError) -> TlsFailure {
    match error {
        CertificateError::NotValidForName => {
            TlsFailure::WrongName { expected: String::new(), presented: Vec::new() }
        }
        CertificateError::NotValidForNameContext { presented, .. } => {
            TlsFailure::WrongName { expected: String::new(), presented: presented.clone() }
        }
        // The latter: one with the name of a trusted authority and another key, as when it was made anew.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => TlsFailure::UnknownAuthority,
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => TlsFailure::Expired,
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            TlsFailure::NotYetValid
        }
        CertificateError::Revoked => TlsFailure::Revoked,
        error => TlsFailure::Certificate(error.to_string()),
    }
}

fn load(options: &TlsOptions) -> Result<ClientConfig, TlsConfigError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier: Arc<dyn ServerCertVerifier> = if options.is_insecure {
        Arc::new(AnyCertificate(Arc::clone(&provider)))
    } else {
        authorities(options, &provider)?
    };
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("invariant: the provider has suites for both versions")
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let Some((chain, key)) = &options.identity else { return Ok(builder.with_no_client_auth()) };
    let chain = certificates("the client's certificate", chain)?;
    let what = "the client's key";
    let key = PrivateKeyDer::from_pem_slice(&read(what, key)?)
        .map_err(|_| pem_error(what, key, "has no private key in PEM form that is not encrypted"))?;
    builder.with_client_auth_cert(chain, key).map_err(|error| TlsConfigError::Identity(error.to_string()))
}

fn authorities(
    options: &TlsOptions,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<WebPkiServerVerifier>, TlsConfigError> {
    let mut sources = options.authorities.clone();
    if options.has_system_authorities || sources.is_empty() {
        let named = std::env::var_os(BUNDLE_VARIABLE).map(PathBuf::from);
        let found = named.or_else(|| BUNDLES.iter().map(PathBuf::from).find(|path| path.exists()));
        sources.push(Pem::File(found.ok_or(TlsConfigError::NoSystemAuthorities)?));
    }
    let what = "authorities";
    let mut roots = RootCertStore::empty();
    for source in &sources {
        // Some systems have certificates that nobody can parse any more.
        if roots.add_parsable_certificates(certificates(what, source)?).0 == 0 {
            return Err(pem_error(what, source, "has no certificate that can be used"));
        }
    }
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider)).build();
    verifier.map_err(|error| TlsConfigError::Pem {
        what,
        from: "all sources".to_owned(),
        reason: error.to_string(),
    })
}

fn certificates(what: &'static str, source: &Pem) -> Result<Vec<CertificateDer<'static>>, TlsConfigError> {
    let text = read(what, source)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    match found {
        Ok(found) if found.is_empty() => Err(pem_error(what, source, "has no certificate in PEM form")),
        Ok(found) => Ok(found),
        Err(error) => Err(pem_error(what, source, &format!("is not well-formed PEM: {error}"))),
    }
}

/// Any certificate will do, as long as its key signed the handshake.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
pub(super) mod tests;
