use super::*;
use crate::transport::{Connector, Dialing, TcpOptions, Transport};
use rcgen::{CertificateParams, CertifiedIssuer, IsCa, Issuer, KeyPair, date_time_ymd};
use std::sync::Mutex;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

/// An authority and what it signs.
pub(in crate::transport::tls) struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key, as PEM texts.
pub(in crate::transport::tls) type Signed = (String, String);

impl Authority {
    pub(in crate::transport::tls) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        // Unlike the name of what it signs, which OpenSSL would take for signed by itself.
        params.distinguished_name.push(rcgen::DnType::CommonName, "an authority");
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub(in crate::transport::tls) fn pem(&self) -> String {
        self.0.pem()
    }

    pub(in crate::transport::tls) fn sign(&self, name: &str) -> Signed {
        self.sign_as(CertificateParams::new(vec![name.to_owned()]).unwrap())
    }

    pub(in crate::transport::tls) fn sign_as(&self, params: CertificateParams) -> Signed {
        let issuer: &Issuer<'static, KeyPair> = &self.0;
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, issuer).unwrap().pem(), key.serialize_pem())
    }
}

pub(in crate::transport::tls) fn acceptor((chain, key): &Signed, clients: Option<&Authority>) -> TlsAcceptor {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap();
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(authority) => {
            let mut roots = RootCertStore::empty();
            roots.add(CertificateDer::from_pem_slice(authority.pem().as_bytes()).unwrap()).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            builder.with_client_cert_verifier(verifier.build().unwrap())
        }
    };
    let chain = CertificateDer::pem_slice_iter(chain.as_bytes()).map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
    TlsAcceptor::from(Arc::new(builder.with_single_cert(chain, key).unwrap()))
}

/// Hands out one end of a pipe whose other end `serve` has.
struct Pipes<S>(S);

impl<S: Fn(DuplexStream) + Send + Sync + 'static> Transport for Pipes<S> {
    fn connect<'a>(&'a self, _target: &'a Target) -> Dialing<'a> {
        let (near, far) = tokio::io::duplex(64 * 1024);
        (self.0)(far);
        Box::pin(async { Ok(Box::new(near) as _) })
    }
}

/// A client of a server in memory.
pub(in crate::transport::tls) fn client(
    options: TlsOptions,
    serve: impl Fn(DuplexStream) + Send + Sync + 'static,
) -> Connector {
    Connector::new(TcpOptions::new(), Some(options), Some(Arc::new(Pipes(serve)))).unwrap()
}

/// A server that answers each byte.
pub(in crate::transport::tls) fn echo(
    acceptor: TlsAcceptor,
) -> impl Fn(DuplexStream) + Send + Sync + 'static {
    move |stream| {
        let acceptor = acceptor.clone();
        tokio::spawn(async move {
            let Ok(mut stream) = acceptor.accept(stream).await else { return };
            while let Ok(byte) = stream.read_u8().await {
                if stream.write_u8(byte).await.is_err() || stream.flush().await.is_err() {
                    return;
                }
            }
        });
    }
}

pub(in crate::transport::tls) async fn dial(connector: &Connector) -> Result<Stream, ConnectError> {
    connector.connect(&Target::tcp("db.test", 6379), Duration::MAX).await
}

pub(in crate::transport::tls) async fn exchange(stream: &mut Stream) -> io::Result<u8> {
    stream.write_u8(7).await?;
    stream.flush().await?;
    stream.read_u8().await
}

pub(in crate::transport::tls) async fn failure(connector: &Connector) -> TlsFailure {
    match dial(connector).await.unwrap_err() {
        ConnectError::Tls { failure, .. } => failure,
        error => panic!("{error}"),
    }
}

#[tokio::test]
async fn bytes_go_through_and_the_process_keeps_no_provider() {
    let authority = Authority::new();
    let connector =
        client(TlsOptions::new().ca_pem(authority.pem()), echo(acceptor(&authority.sign("db.test"), None)));
    let mut stream = dial(&connector).await.unwrap();
    assert_eq!(exchange(&mut stream).await.unwrap(), 7);
    assert!(stream.needs_flush());
    assert!(CryptoProvider::get_default().is_none());
    assert!(format!("{connector:?} {stream:?}").contains("tls"));
}

#[tokio::test]
async fn what_is_wrong_with_a_certificate_is_said() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let trusting = || TlsOptions::new().ca_pem(authority.pem());
    let other = echo(acceptor(&authority.sign("other.test"), None));
    let found = failure(&client(trusting(), other)).await;
    let presented = vec![r#"DnsName("other.test")"#.to_owned()];
    assert_eq!(found, TlsFailure::WrongName { expected: "db.test".into(), presented });

    let other = echo(acceptor(&authority.sign("other.test"), None));
    dial(&client(trusting().server_name("other.test"), other)).await.unwrap();

    let strange = echo(acceptor(&stranger.sign("db.test"), None));
    assert_eq!(failure(&client(trusting(), strange)).await, TlsFailure::UnknownAuthority);
    let strange = echo(acceptor(&stranger.sign("other.test"), None));
    dial(&client(TlsOptions::new().danger_accept_any_certificate(true), strange)).await.unwrap();

    let mut params = CertificateParams::new(vec!["db.test".to_owned()]).unwrap();
    (params.not_before, params.not_after) = (date_time_ymd(2001, 1, 1), date_time_ymd(2002, 1, 1));
    let old = echo(acceptor(&authority.sign_as(params), None));
    assert_eq!(failure(&client(trusting(), old)).await, TlsFailure::Expired);

    let mut params = CertificateParams::new(vec!["db.test".to_owned()]).unwrap();
    (params.not_before, params.not_after) = (date_time_ymd(2900, 1, 1), date_time_ymd(2901, 1, 1));
    let new = echo(acceptor(&authority.sign_as(params), None));
    assert_eq!(failure(&client(trusting(), new)).await, TlsFailure::NotYetValid);
}

#[tokio::test]
async fn servers_without_tls_are_told_from_those_that_hang_up() {
    let options = || TlsOptions::new().danger_accept_any_certificate(true);
    let plaintext = |mut stream: DuplexStream| {
        tokio::spawn(async move {
            stream.write_all(b"-ERR unknown command\r\n").await.unwrap();
            let _ = stream.read_to_end(&mut Vec::new()).await;
        });
    };
    assert_eq!(failure(&client(options(), plaintext)).await, TlsFailure::NotTls);
    assert_eq!(failure(&client(options(), drop)).await, TlsFailure::Io(io::ErrorKind::BrokenPipe));
    let hangs_up = |mut stream: DuplexStream| {
        tokio::spawn(async move { stream.read_u8().await });
    };
    assert_eq!(failure(&client(options(), hangs_up)).await, TlsFailure::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_stalled_handshake_ends_with_the_connect_timeout() {
    let held = Mutex::new(Vec::new());
    let connector = client(TlsOptions::new().danger_accept_any_certificate(true), move |stream| {
        held.lock().unwrap().push(stream);
    });
    let timeout = Duration::from_secs(5);
    let error = connector.connect(&Target::tcp("db.test", 6379), timeout).await.unwrap_err();
    assert!(matches!(error, ConnectError::Timeout { stage: DialStage::Tls, .. }), "{error}");
}

#[tokio::test]
async fn a_server_gets_the_clients_certificate_and_says_when_it_wants_one() {
    let authority = Authority::new();
    let server = authority.sign("db.test");
    let trusting = || TlsOptions::new().ca_pem(authority.pem());
    let (chain, key) = authority.sign("client");
    let connector = client(trusting().client_pem(&chain, key), echo(acceptor(&server, Some(&authority))));
    assert_eq!(exchange(&mut dial(&connector).await.unwrap()).await.unwrap(), 7);

    // With TLS 1.3 the refusal comes after the client's part of the handshake.
    let anonymous = client(trusting(), echo(acceptor(&server, Some(&authority))));
    let mut stream = dial(&anonymous).await.unwrap();
    let error = exchange(&mut stream).await.unwrap_err();
    let failure = TlsFailure::of(&error).unwrap();
    assert!(failure.to_string().contains("certificate of the client"), "{failure}");
}

#[tokio::test]
async fn certificates_are_read_again_and_stay_when_that_fails() {
    let (old, new) = (Authority::new(), Authority::new());
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ca.pem");
    std::fs::write(&path, old.pem()).unwrap();
    let acceptors = Arc::new(Mutex::new(acceptor(&old.sign("db.test"), None)));
    let served = Arc::clone(&acceptors);
    let connector = client(TlsOptions::new().ca_file(&path), move |stream| {
        echo(served.lock().unwrap().clone())(stream);
    });
    dial(&connector).await.unwrap();

    std::fs::write(&path, "half a certifi").unwrap();
    dial(&connector).await.unwrap();

    *acceptors.lock().unwrap() = acceptor(&new.sign("db.test"), None);
    assert_eq!(failure(&connector).await, TlsFailure::UnknownAuthority);
    // A second authority beside the first makes another length, whatever the clock of the file system resolves.
    std::fs::write(&path, old.pem() + &new.pem()).unwrap();
    dial(&connector).await.unwrap();
}

#[test]
fn options_that_cannot_work_are_refused_with_their_source() {
    let authority = Authority::new();
    let (chain, key) = authority.sign("client");
    let error = |options: TlsOptions| Tls::new(options).unwrap_err().to_string();
    let text = error(TlsOptions::new().ca_file("/nowhere/ca.pem"));
    assert!(text.contains("'/nowhere/ca.pem'") && text.contains("No such file"), "{text}");
    let text = error(TlsOptions::new().ca_pem(&key));
    assert!(text.contains("authorities") && text.contains("no certificate"), "{text}");
    let trusting = || TlsOptions::new().ca_pem(authority.pem());
    let text = error(trusting().client_pem(&chain, &chain));
    assert!(text.contains("client's key") && text.contains("no private key"), "{text}");
    let text = error(trusting().client_pem(authority.pem(), &key));
    assert!(text.contains("client's certificate and key"), "{text}");
    assert!(error(trusting().server_name("not a name")).contains("'not a name'"));
    assert!(!format!("{:?}", trusting().client_pem(chain, &key)).contains("PRIVATE"));
}

#[tokio::test]
async fn a_target_without_a_name_needs_one() {
    let connector = client(TlsOptions::new().danger_accept_any_certificate(true), drop);
    let error = connector.connect(&Target::unix("/tmp/s"), Duration::MAX).await.unwrap_err();
    assert!(matches!(error, ConnectError::ServerName(_)), "{error}");
}
