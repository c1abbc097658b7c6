use super::*;
use bytes::BytesMut;
use std::net::IpAddr;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::net::{TcpListener, UnixListener};

const NO_LIMIT: Duration = Duration::MAX;

fn plain() -> Connector {
    Connector::new(TcpOptions::new(), None, None).unwrap()
}

/// Gives its stream once, then never answers.
struct Once(std::sync::Mutex<Option<DuplexStream>>);

impl Transport for Once {
    fn connect<'a>(&'a self, _target: &'a Target) -> Dialing<'a> {
        let stream = self.0.lock().unwrap().take();
        Box::pin(async {
            match stream {
                Some(stream) => Ok(Box::new(stream) as _),
                None => std::future::pending().await,
            }
        })
    }
}

async fn greets(mut stream: Stream, mut peer: impl AsyncStream) {
    stream.write_all(b"ping").await.unwrap();
    stream.flush().await.unwrap();
    let mut seen = [0; 4];
    peer.read_exact(&mut seen).await.unwrap();
    peer.write_all(b"pong").await.unwrap();
    stream.read_exact(&mut seen).await.unwrap();
    assert_eq!(&seen, b"pong");
}

#[test]
fn targets_show_as_users_write_them() {
    assert_eq!(Target::tcp("db", 6379).to_string(), "db:6379");
    assert_eq!(Target::tcp("[::1]", 6379).to_string(), "[::1]:6379");
    assert_eq!(Target::tcp("::1", 6379), Target::tcp("[::1]", 6379));
    assert_eq!(Target::unix("/tmp/s").to_string(), "/tmp/s");
}

#[tokio::test]
async fn each_kind_of_stream_carries_bytes() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let target = Target::tcp("127.0.0.1", listener.local_addr().unwrap().port());
    let stream = plain().connect(&target, NO_LIMIT).await.unwrap();
    assert_eq!(stream.peer_addr(), listener.local_addr().ok());
    assert!(!stream.needs_flush() && stream.is_write_vectored());
    let peer = listener.accept().await.unwrap().0;
    assert_eq!(stream.local_addr(), peer.peer_addr().ok());
    greets(stream, peer).await;

    let named = Target::tcp("localhost", listener.local_addr().unwrap().port());
    plain().connect(&named, NO_LIMIT).await.unwrap();

    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let listener = UnixListener::bind(&path).unwrap();
    let stream = plain().connect(&Target::unix(&path), NO_LIMIT).await.unwrap();
    assert_eq!(stream.peer_addr(), None);
    greets(stream, listener.accept().await.unwrap().0).await;

    let (near, far) = tokio::io::duplex(64);
    let transport = Arc::new(Once(std::sync::Mutex::new(Some(near))));
    let connector = Connector::new(TcpOptions::new(), None, Some(transport)).unwrap();
    greets(connector.connect(&target, NO_LIMIT).await.unwrap(), far).await;
}

#[tokio::test]
async fn sockets_are_written_by_others_than_the_owner_and_read_at_once() {
    let (near, far) = UnixStream::pair().unwrap();
    let (near, mut far) = (Stream::from(near), Stream::from(far));
    let mut buffer = BytesMut::with_capacity(64);
    assert_eq!(near.try_read_buf(&mut buffer).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    let side = Arc::clone(near.write_side().unwrap());
    std::future::poll_fn(|cx| side.poll_ready(cx)).await.unwrap();
    assert_eq!(side.try_write(b"one").unwrap(), 3);
    assert_eq!(side.try_write_vectored(&[IoSlice::new(b"tw"), IoSlice::new(b"o")]).unwrap(), 3);
    assert_eq!(far.read_buf(&mut buffer).await.unwrap(), 6);
    assert_eq!(&buffer[..], b"onetwo");

    // The end is said by the owner, whoever else holds the writing side.
    let mut near = near;
    near.shutdown().await.unwrap();
    assert_eq!(far.read_buf(&mut buffer).await.unwrap(), 0);
    assert_eq!(side.try_write(b"x").unwrap_err().kind(), io::ErrorKind::BrokenPipe);

    let custom = Stream::custom(tokio::io::duplex(64).0);
    assert!(custom.write_side().is_none() && custom.needs_flush());
    assert_eq!(custom.try_read_buf(&mut buffer).unwrap_err().kind(), io::ErrorKind::WouldBlock);
}

#[tokio::test]
async fn a_full_socket_waits_until_the_peer_reads() {
    let (near, far) = UnixStream::pair().unwrap();
    let (mut near, mut far) = (Stream::from(near), Stream::from(far));
    let bytes = vec![b'x'; 4 << 20];
    let written = async {
        near.write_all(&bytes).await.unwrap();
        near.shutdown().await.unwrap();
    };
    let mut seen = Vec::new();
    let (_, read) = tokio::join!(written, far.read_to_end(&mut seen));
    assert_eq!(read.unwrap(), bytes.len());
}

#[tokio::test]
async fn failures_name_the_target_and_the_reason() {
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let error = plain().connect(&Target::tcp("127.0.0.1", closed.port()), NO_LIMIT).await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains(&closed.to_string()) && text.contains("refused"), "{text}");

    let error = plain().connect(&Target::unix("/nowhere/s"), NO_LIMIT).await.unwrap_err().to_string();
    assert!(error.contains("/nowhere/s") && error.contains("No such file"), "{error}");

    let tcp = TcpOptions::new().bind(Some(IpAddr::from([127, 0, 0, 1])));
    let bound = Connector::new(tcp, None, None).unwrap();
    let error = bound.connect(&Target::tcp("::1", 1), NO_LIMIT).await.unwrap_err();
    assert!(matches!(error, ConnectError::NoAddressToBind { .. }), "{error}");

    let error = plain().connect(&Target::tcp("no such host", 1), NO_LIMIT).await.unwrap_err();
    assert!(matches!(error, ConnectError::Resolve { .. }), "{error}");

    let refused = |port| (SocketAddr::from(([127, 0, 0, 1], port)), io::ErrorKind::ConnectionRefused.into());
    let failures = (1..=6).map(refused).collect();
    let text = ConnectError::Connect { target: Target::tcp("db", 1), failures }.to_string();
    assert!(text.contains("127.0.0.1:4") && text.ends_with("and 2 more"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_transport_that_does_not_answer_is_given_up_in_time() {
    let connector =
        Connector::new(TcpOptions::new(), None, Some(Arc::new(Once(std::sync::Mutex::default())))).unwrap();
    for timeout in [Duration::ZERO, Duration::from_secs(5)] {
        let before = Instant::now();
        let error = connector.connect(&Target::tcp("db", 1), timeout).await.unwrap_err();
        assert!(matches!(error, ConnectError::Timeout { stage: DialStage::Connect, .. }), "{error}");
        assert!(before.elapsed() <= timeout + Duration::from_millis(1));
    }
}

#[test]
fn a_build_without_tls_says_so() {
    let made =
        Connector::new(TcpOptions::new(), Some(TlsOptions::new().danger_accept_any_certificate(true)), None);
    assert_eq!(
        made.err(),
        (!cfg!(any(feature = "tls", feature = "native-tls"))).then_some(TlsConfigError::NotBuilt)
    );
}
