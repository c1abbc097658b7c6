//! TLS as clients meet it.

use crate::running::{Running, config};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use towline_server::{Server, StartError};

type TlsConn = StreamOwned<ClientConnection, TcpStream>;

/// Longer than anything here takes, so that a failure is not a hang.
const PATIENCE: Duration = Duration::from_secs(30);

/// An authority, a server's identity by it, and a client's, as files.
struct Pki {
    dir: tempfile::TempDir,
    authority: Issuer<'static, KeyPair>,
}

impl Pki {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        std::fs::write(dir.path().join("ca.crt"), params.self_signed(&key).unwrap().pem()).unwrap();
        let pki = Self { dir, authority: Issuer::new(params, key) };
        pki.issue("server");
        pki.issue("client");
        pki
    }

    /// Writes NAME.crt and NAME.key, valid for localhost.
    fn issue(&self, name: &str) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let cert = params.signed_by(&key, &self.authority).unwrap();
        std::fs::write(self.path(&format!("{name}.crt")), cert.pem()).unwrap();
        std::fs::write(self.path(&format!("{name}.key")), key.serialize_pem()).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn flag(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// A server that speaks TLS only.
    fn serve(&self, auth_clients: &str) -> (Running, u16) {
        self.serve_with(auth_clients, &[])
    }

    fn serve_with(&self, auth_clients: &str, more: &[&str]) -> (Running, u16) {
        let (cert, key, ca) = (self.flag("server.crt"), self.flag("server.key"), self.flag("ca.crt"));
        let mut flags =
            vec!["--port", "0", "--tls-port", "{port}", "--tls-cert-file", &cert, "--tls-key-file", &key];
        flags.extend(["--tls-ca-cert-file", &ca, "--tls-auth-clients", auth_clients]);
        flags.extend(more);
        Running::start(&flags)
    }

    /// A client that trusts the authority, with an identity signed by `identity`'s.
    fn client(&self, identity: Option<&Self>) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(self.path("ca.crt")).unwrap()).unwrap();
        let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        Arc::new(match identity {
            None => builder.with_no_client_auth(),
            Some(pki) => {
                let cert = CertificateDer::from_pem_file(pki.path("client.crt")).unwrap();
                let key = PrivateKeyDer::from_pem_file(pki.path("client.key")).unwrap();
                builder.with_client_auth_cert(vec![cert], key).unwrap()
            }
        })
    }
}

fn tcp(port: u16) -> TcpStream {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

fn connect(port: u16, client: &Arc<ClientConfig>) -> TlsConn {
    let session = ClientConnection::new(Arc::clone(client), "localhost".try_into().unwrap()).unwrap();
    StreamOwned::new(session, tcp(port))
}

/// Sends a line and reads as much as is expected back.
fn ask(conn: &mut TlsConn, line: &str, expected: &str) -> std::io::Result<()> {
    conn.write_all(line.as_bytes())?;
    conn.write_all(b"\r\n")?;
    let mut reply = vec![0; expected.len()];
    conn.read_exact(&mut reply)?;
    assert_eq!(String::from_utf8_lossy(&reply), expected);
    Ok(())
}

fn ping(port: u16, client: &Arc<ClientConfig>) -> std::io::Result<()> {
    ask(&mut connect(port, client), "PING", "+PONG\r\n")
}

/// The certificate that the server shows.
fn shown(conn: &TlsConn) -> Vec<u8> {
    conn.conn.peer_certificates().unwrap()[0].to_vec()
}

#[test]
fn commands_and_replies_of_any_size_go_through() {
    let pki = Pki::new();
    let (_running, port) = pki.serve("no");
    let mut conn = connect(port, &pki.client(None));
    ask(&mut conn, "SET key value", "+OK\r\n").unwrap();
    let len = 3 << 20;
    let mut command = format!("*3\r\n$3\r\nSET\r\n$3\r\nbig\r\n${len}\r\n").into_bytes();
    command.extend((0..len).map(|i| (i % 251) as u8));
    conn.write_all(&command).unwrap();
    ask(&mut conn, "", "+OK\r\n").unwrap();
    // Several replies, none of which is read before all are asked for: the socket fills.
    for _ in 0..8 {
        conn.write_all(b"GET big\r\n").unwrap();
    }
    for _ in 0..8 {
        let mut reply = vec![0; format!("${len}\r\n").len() + len + 2];
        conn.read_exact(&mut reply).unwrap();
        assert_eq!(reply[reply.len() - 2 - len..reply.len() - 2], command[command.len() - len..]);
    }
    ask(&mut conn, "GET key", "$5\r\nvalue\r\n").unwrap();
    // A goodbye arrives whole: the last reply, then the end that TLS knows.
    conn.write_all(b"QUIT\r\n").unwrap();
    let mut rest = String::new();
    conn.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "+OK\r\n");
}

#[test]
fn who_must_show_a_certificate_must_show_a_valid_one() {
    let (pki, stranger) = (Pki::new(), Pki::new());
    for (auth_clients, without, with, with_strange) in
        [("yes", false, true, false), ("optional", true, true, false), ("no", true, true, true)]
    {
        let (_running, port) = pki.serve(auth_clients);
        for (identity, is_served) in [(None, without), (Some(&pki), with), (Some(&stranger), with_strange)] {
            let served = ping(port, &pki.client(identity));
            assert_eq!(served.is_ok(), is_served, "{auth_clients}: {served:?}");
        }
        // A client that trusts others ends it from its side, and the server is none the worse.
        ping(port, &stranger.client(None)).unwrap_err();
        ping(port, &pki.client(Some(&pki))).unwrap();
    }
}

#[test]
fn plain_bytes_are_no_handshake() {
    let pki = Pki::new();
    let (_running, port) = pki.serve("no");
    let mut plain = tcp(port);
    plain.write_all(b"*1\r\n$4\r\nPING\r\n").unwrap();
    let mut answer = Vec::new();
    // An alert, or nothing; never a reply.
    let _ = plain.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"+") && answer.len() < 32, "{answer:?}");
    ping(port, &pki.client(None)).unwrap();
}

#[test]
fn handshakes_that_stall_hold_up_nobody_else() {
    let pki = Pki::new();
    let (_running, port) = pki.serve("no");
    let started = Instant::now();
    let silent: Vec<_> = (0..100).map(|_| tcp(port)).collect();
    let half: Vec<_> = (0..100)
        .map(|_| {
            let mut stream = tcp(port);
            // The head of a record that says that more is to come.
            stream.write_all(&[22, 3, 1, 2, 0, 1, 0]).unwrap();
            stream
        })
        .collect();
    let client = pki.client(None);
    for _ in 0..10 {
        ping(port, &client).unwrap();
    }
    let took = started.elapsed();
    assert!(took < Duration::from_secs(8), "others waited for the stalled ones' deadline: {took:?}");
    // They count as clients, and can be killed as such.
    let mut conn = connect(port, &client);
    ask(&mut conn, "CLIENT KILL TYPE normal SKIPME yes", ":200\r\n").unwrap();
    for mut stream in silent.into_iter().chain(half) {
        assert!(matches!(stream.read(&mut [0; 64]), Ok(0) | Err(_)));
    }
}

#[test]
fn a_handshake_ends_at_its_deadline() {
    let pki = Pki::new();
    let (_running, port) = pki.serve_with("no", &["--tls-handshake-timeout-ms", "50"]);
    let started = Instant::now();
    let mut silent = tcp(port);
    assert_eq!(silent.read(&mut [0; 64]).unwrap(), 0);
    let took = started.elapsed();
    assert!((Duration::from_millis(50)..Duration::from_secs(10)).contains(&took), "{took:?}");
    let mut conn = connect(port, &pki.client(None));
    ask(&mut conn, "CLIENT KILL TYPE normal SKIPME yes", ":0\r\n").unwrap();
}

#[test]
fn clients_in_handshakes_count_for_maxclients() {
    let pki = Pki::new();
    let (_running, port) = pki.serve_with("no", &["--maxclients", "2"]);
    let client = pki.client(None);
    let mut first = connect(port, &client);
    ask(&mut first, "PING", "+PONG\r\n").unwrap();
    let silent = tcp(port);
    ping(port, &client).unwrap_err();
    // The place is free once the server has noticed.
    drop(silent);
    let started = Instant::now();
    while ping(port, &client).is_err() {
        assert!(started.elapsed() < PATIENCE);
        std::thread::yield_now();
    }
}

#[test]
fn new_certificates_are_taken_by_config_set_and_by_reload() {
    let pki = Pki::new();
    let (running, port) = pki.serve("no");
    let client = pki.client(None);
    let mut old = connect(port, &client);
    ask(&mut old, "PING", "+PONG\r\n").unwrap();
    let first = shown(&old);

    // The same names, new content.
    pki.issue("server");
    let (cert, key) = (pki.flag("server.crt"), pki.flag("server.key"));
    ask(&mut old, &format!("CONFIG SET tls-cert-file {cert} tls-key-file {key}"), "+OK\r\n").unwrap();
    let mut conn = connect(port, &client);
    ask(&mut conn, "PING", "+PONG\r\n").unwrap();
    let second = shown(&conn);
    assert_ne!(first, second);
    ask(&mut old, "PING", "+PONG\r\n").unwrap();

    // What does not go together changes nothing.
    let expected = "-ERR CONFIG SET failed (possibly related to argument 'tls-key-file') - ";
    ask(&mut old, &format!("CONFIG SET tls-key-file {}", pki.flag("client.key")), expected).unwrap();
    std::fs::write(pki.path("server.key"), "no key").unwrap();
    let text = running.server().reloader().reload().unwrap_err().to_string();
    assert!(text.contains(&key) && text.contains("no private key"), "{text}");
    let mut conn = connect(port, &client);
    ask(&mut conn, "CONFIG GET tls-key-file", "*2\r\n$12\r\ntls-key-file\r\n").unwrap();
    assert_eq!(shown(&conn), second);

    pki.issue("server");
    running.server().reloader().reload().unwrap();
    let mut conn = connect(port, &client);
    ask(&mut conn, "PING", "+PONG\r\n").unwrap();
    assert_ne!(shown(&conn), second);
}

#[test]
fn clients_may_be_asked_for_certificates_from_now_on() {
    let pki = Pki::new();
    let (_running, port) = pki.serve("no");
    let mut admin = connect(port, &pki.client(None));
    ask(&mut admin, "CONFIG SET tls-auth-clients yes", "+OK\r\n").unwrap();
    ping(port, &pki.client(None)).unwrap_err();
    ping(port, &pki.client(Some(&pki))).unwrap();
}

#[test]
fn a_server_does_not_start_with_files_that_it_cannot_use() {
    let pki = Pki::new();
    let (cert, key) = (pki.flag("server.crt"), pki.flag("client.key"));
    let flags = ["--port", "0", "--tls-port", "1", "--tls-auth-clients", "no"];
    let flags = [&flags[..], &["--tls-cert-file", &cert, "--tls-key-file", &key]].concat();
    let error = Server::start(config(&flags, 1)).unwrap_err();
    assert!(matches!(error, StartError::Tls(_)), "{error}");
    assert!(error.to_string().contains("do not go together"), "{error}");
}
