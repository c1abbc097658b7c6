//! The client's sessions: passwords, TLS, transactions, pushes, and errors that a person can act on.
//!
//! `SE` and `Rust` numbers are those of docs/client-pains.md.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use e2e::clients::{Lateness, open, options};
use e2e::fault_proxy::FaultProxy;
use e2e::odd_peer::{OddPeer, bulk, greeting};
use e2e::process::{Server, ServerKind, free_port};
use e2e::wait::PATIENCE;
use tokio::task::JoinSet;
use tokio::time::Instant;
use towline_client::transport::TlsOptions;
use towline_client::{
    Client, ConnectOptions, Credentials, CredentialsError, CredentialsFuture, CredentialsProvider, Error,
    ErrorKind, RotatingCredentials, Sent, Transacted, cmd, pipe,
};
use towline_faults::link::Close;

/// Opens a client that is refused for good: the error, and how long it took.
async fn refused(options: ConnectOptions) -> (Error, Duration) {
    let start = Instant::now();
    let error = Client::open(options).await.expect_err("it must be refused");
    (error, start.elapsed())
}

/// SE 18, SE 19: a wrong password is told at once and in the server's words, on every server, first connection or later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_password_is_told_at_once() {
    for kind in ServerKind::ALL {
        let server = Server::start(kind, &["--requirepass", "right"]).unwrap();
        let lateness = Lateness::measure();
        let wrong = options(server.address()).credentials(Credentials::password("wrong"));
        let (error, took) = refused(wrong).await;
        assert!(matches!(error.kind(), ErrorKind::Handshake(_)), "{}: {error}", kind.name());
        assert!(error.to_string().contains("WRONGPASS") && !error.is_retryable(), "{}: {error}", kind.name());
        assert!(!error.to_string().contains("wrong\""), "the password is in {error}");
        assert!(took < lateness.stretch(Duration::from_secs(1)), "{}: {took:?}", kind.name());
        let (error, took) = refused(options(server.address())).await;
        assert!(error.to_string().contains("NOAUTH"), "{}: {error}", kind.name());
        assert!(took < lateness.stretch(Duration::from_secs(1)), "{}: {took:?}", kind.name());
        let right = options(server.address()).credentials(Credentials::password("right"));
        Client::open(right).await.unwrap().set("key", "value").await.unwrap();
    }
}

/// SE 19: an `AUTH` that is refused in the middle of traffic takes nobody's reply (Redis 8.2 leaves one without an answer if
/// it is not the first command of what it reads).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_change_of_password_shifts_no_reply() {
    for kind in [ServerKind::Redis82, ServerKind::Redis70, ServerKind::Valkey91] {
        let server = Server::start(kind, &["--requirepass", "right"]).unwrap();
        let rotating = RotatingCredentials::new(Credentials::password("right"));
        let client =
            Client::open(options(server.address()).credentials_provider(rotating.clone())).await.unwrap();
        let id: i64 = cmd("CLIENT ID").query(&client).await.unwrap();
        let mut callers = JoinSet::new();
        for number in 0..16 {
            let client = client.clone();
            callers.spawn(async move {
                for round in 0..200 {
                    let text = format!("{number}-{round}");
                    assert_eq!(cmd("ECHO").arg(&text).query::<String>(&client).await.unwrap(), text);
                }
            });
        }
        for password in ["wrong", "worse", "right", "wrong again", "right"] {
            rotating.set(Credentials::password(password));
            for _ in 0..20 {
                assert_eq!(cmd("ECHO").arg(password).query::<String>(&client).await.unwrap(), password);
            }
        }
        while let Some(ended) = callers.join_next().await {
            ended.unwrap();
        }
        assert_eq!(cmd("CLIENT ID").query::<i64>(&client).await.unwrap(), id, "the connection is the same");
    }
}

/// Credentials that change again while the last change is being fetched.
struct Restless(AtomicUsize);

impl CredentialsProvider for Restless {
    fn credentials(&self) -> CredentialsFuture<'_, Result<Credentials, CredentialsError>> {
        let user = ["first", "second", "third"][self.0.fetch_add(1, Ordering::Relaxed).min(2)];
        Box::pin(async move { Ok(Credentials::user(user, "secret")) })
    }

    fn changed<'a>(&'a self, known: &'a Credentials) -> CredentialsFuture<'a, ()> {
        match known.user_name() {
            Some("third") => Box::pin(std::future::pending()),
            _ => Box::pin(std::future::ready(())),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_of_credentials_right_after_another_is_not_missed() {
    let server = Server::start(ServerKind::Redis70, &[]).unwrap();
    let mut admin = server.connect().unwrap();
    for user in ["first", "second", "third"] {
        admin.words(&format!("ACL SETUSER {user} on >secret ~* +@all")).unwrap();
    }
    let client = Client::open(options(server.address()).credentials_provider(Restless(AtomicUsize::new(0))));
    let client = client.await.unwrap();
    let deadline = Instant::now() + PATIENCE;
    while cmd("ACL WHOAMI").query::<String>(&client).await.unwrap() != "third" {
        assert!(Instant::now() < deadline, "the last change was missed");
    }
}

/// SE 18: what failed is what the error says: not authentication, not "check your configuration".
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_name_what_failed() {
    let server = Server::start(ServerKind::Redis70, &[]).unwrap();
    let nobody = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port().unwrap()));
    let quick = |address| options(address).connect_timeout(Duration::from_millis(400));
    let (error, _) = refused(quick(nobody)).await;
    let text = error.to_string();
    assert!(text.contains(&nobody.to_string()) && text.contains("refused"), "{text}");
    assert_eq!(error.sent(), Sent::No);

    // What the server says in place of an answer, and what is waited for when it says nothing.
    for (rule, what) in
        [("busy@dial", "max number of clients"), ("hang@dial", "HELLO"), ("close@dial", "HELLO")]
    {
        let proxy = FaultProxy::start(server.address(), 1, &[rule]).await.unwrap();
        let (error, _) = refused(quick(proxy.address())).await;
        assert!(error.to_string().contains(what), "{rule}: {error}");
    }

    let tls = TlsOptions::new().danger_accept_any_certificate(true);
    let (error, _) = refused(quick(server.address()).tls(tls.clone())).await;
    let text = error.to_string();
    assert!(text.contains("TLS") && !text.to_lowercase().contains("auth"), "{text}");

    for (rule, what) in [
        ("close@dial", ["TLS", "closed"]),
        ("refuse@dial", ["127.0.0.1", "reset"]),
        ("hang@dial", ["TLS", "within"]),
    ] {
        let proxy = FaultProxy::start(server.address(), 1, &[rule]).await.unwrap();
        let (error, _) = refused(quick(proxy.address()).tls(tls.clone())).await;
        let text = error.to_string();
        assert!(what.iter().all(|word| text.contains(word)), "{rule}: {text}");
        assert!(!text.to_lowercase().contains("auth"), "{rule}: {text}");
    }
}

/// A server with TLS on a second port, and options that trust it.
fn with_tls() -> (Server, SocketAddr, TlsOptions) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let (cert, key) = (directory.path().join("server.crt"), directory.path().join("server.key"));
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let port = free_port().unwrap();
    let flags = [
        "--tls-port",
        &port.to_string(),
        "--tls-cert-file",
        cert.to_str().unwrap(),
        "--tls-key-file",
        key.to_str().unwrap(),
        "--tls-ca-cert-file",
        cert.to_str().unwrap(),
        "--tls-auth-clients",
        "no",
    ];
    let server = Server::start(ServerKind::Redis70, &flags).unwrap();
    let tls = TlsOptions::new().ca_pem(made.cert.pem()).server_name("localhost");
    (server, SocketAddr::from((Ipv4Addr::LOCALHOST, port)), tls)
}

/// Rust 22: TLS reconnects like anything else, and what may have run is known there too. This build has two providers of
/// cryptography, and none is the process's default.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_reconnects_and_needs_no_default_provider() {
    assert!(tokio_rustls::rustls::crypto::CryptoProvider::get_default().is_none());
    let (server, address, tls) = with_tls();
    let proxy = FaultProxy::start(address, 1, &[]).await.unwrap();
    let client = Client::open(options(proxy.address()).tls(tls)).await.unwrap();
    client.set("key", "value").await.unwrap();
    for how in [Close::Fin, Close::Reset, Close::Fin] {
        proxy.cut_all(how);
        assert_eq!(client.get::<String>("key").await.unwrap(), "value");
    }
    let large = Bytes::from(vec![b'x'; 5_000_000]);
    client.set("large", &large).await.unwrap();
    assert!(client.get::<Bytes>("large").await.unwrap() == large);
    proxy.lose_replies(1);
    let error = cmd("INCR").arg("count").query::<i64>(&client).await.unwrap_err();
    assert_eq!(error.sent(), Sent::Maybe);
    assert_eq!(client.get::<i64>("count").await.unwrap(), 1);
    assert!(tokio_rustls::rustls::crypto::CryptoProvider::get_default().is_none());
    drop(server);
}

/// Rust 22: a certificate that does not fit is an error that says why, at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_that_does_not_fit_is_named() {
    let (_server, address, tls) = with_tls();
    for (tls, what) in [
        (TlsOptions::new().ca_pem(own_authority()).server_name("localhost"), "certificate"),
        (tls.server_name("other.example"), "other.example"),
    ] {
        let (error, _) = refused(options(address).tls(tls).connect_timeout(Duration::from_millis(500))).await;
        assert!(error.to_string().contains(what), "{error}");
    }
}

fn own_authority() -> String {
    rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap().cert.pem()
}

/// Rust 17: transactions of many tasks on one client are units; nobody's commands get into another's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transactions_of_many_tasks_do_not_mix() {
    for kind in [ServerKind::Redis70, ServerKind::Valkey91, ServerKind::Towline] {
        let server = Server::start(kind, &[]).unwrap();
        let client = open(server.address()).await;
        let mut callers = JoinSet::new();
        for number in 0..16_i64 {
            let client = client.clone();
            callers.spawn(async move {
                for round in 0..50 {
                    let own = number * 1000 + round;
                    let unit = pipe().cmd("SET").arg("shared").arg(own).ignore().cmd("INCR").arg("shared");
                    let unit = unit.cmd("GET").arg("shared").atomic();
                    match unit.transact::<(i64, i64)>(&client).await.unwrap() {
                        Transacted::Committed(values) => assert_eq!(values, (own + 1, own + 1)),
                        other => panic!("{other:?}"),
                    }
                    // Between transactions, and outside of them.
                    assert_eq!(cmd("ECHO").arg(own).query::<i64>(&client).await.unwrap(), own);
                }
            });
        }
        while let Some(ended) = callers.join_next().await {
            ended.unwrap();
        }
    }
}

/// Rust 7 A, Rust 16: pushes that nobody asked for, before, between and behind replies, are nobody's reply.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pushes_that_nobody_asked_for_are_dropped() {
    let peer = OddPeer::start(None, |command, out| {
        out.extend_from_slice(b">2\r\n+invalidate\r\n*1\r\n$3\r\nkey\r\n");
        if !greeting(command, out) {
            // Before a reply there may be an attribute too.
            out.extend_from_slice(b"|1\r\n+ttl\r\n:5\r\n");
            bulk(&command[1], out);
        }
        out.extend_from_slice(b">3\r\n$9\r\nsubscribe\r\n$1\r\nb\r\n:2\r\n>1\r\n+unheard-of\r\n");
    })
    .unwrap();
    let client = open(peer.address()).await;
    let mut callers = JoinSet::new();
    for number in 0..8 {
        let client = client.clone();
        callers.spawn(async move {
            for round in 0..100 {
                let text = format!("{number}-{round}");
                assert_eq!(cmd("ECHO").arg(&text).query::<String>(&client).await.unwrap(), text);
            }
        });
    }
    while let Some(ended) = callers.join_next().await {
        ended.unwrap();
    }
    assert_eq!(peer.accepted(), 1);
    assert!(client.snapshot().counters.pushes_unknown >= 8 * 100 * 3);
}

/// Rust 23: every method takes `&self`, values are any bytes in and out, and a byte string is a value.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_bytes_go_in_and_come_out_of_a_shared_reference() {
    let server = Server::start(ServerKind::Redis70, &[]).unwrap();
    let client = &open(server.address()).await;
    let odd: Vec<u8> = (0..=255).chain(*b"\r\n$-1\r\n").collect();
    client.set("key", b"v").await.unwrap();
    assert_eq!(client.get::<Bytes>("key").await.unwrap(), "v");
    client.set(&odd, Bytes::from(odd.clone())).await.unwrap();
    assert_eq!(client.get::<Vec<u8>>(&odd).await.unwrap(), odd);
    assert_eq!(client.get::<Option<String>>("missing").await.unwrap(), None);
    let (first, second) = tokio::join!(client.get::<String>("key"), client.get::<Option<i64>>("missing"));
    assert_eq!((first.unwrap().as_str(), second.unwrap()), ("v", None));
    let error = client.get::<i64>("key").await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Shape(_)) && error.sent() == Sent::Answered, "{error}");
}
