//! Cases that need the inside of a connection.

use super::*;
use crate::options::ConnectOptions;
use std::future::poll_fn;
use std::sync::Arc;
use tokio::io::AsyncWriteExt;
use towline_client_proto::handoff::Target as Whither;

#[tokio::test]
async fn a_large_body_gets_a_buffer_that_never_grows() {
    const BODY: usize = 1 << 20;
    // So little room that the last bytes come in many reads.
    let (near, mut far) = tokio::io::duplex(1000);
    let writer = tokio::spawn(async move {
        far.write_all(format!("${BODY}\r\n").as_bytes()).await.unwrap();
        far.write_all(&vec![b'x'; BODY]).await.unwrap();
        far.write_all(b"\r\n").await.unwrap();
    });
    let options = "redis://a:1".parse::<ConnectOptions>().unwrap();
    let mut connection = Connection {
        generation: Generation::default(),
        course: Course::new(Whither::Configured, &options, &Arc::from("a:1"), 0),
        stream: Stream::custom(near),
        buffer: BytesMut::new(),
        decoder: Decoder::default(),
        frames: Vec::new(),
        is_exact: false,
        has_yielded: false,
        needs_flush: false,
        right: None,
    };
    let mut largest = 0;
    while connection.frames.is_empty() {
        poll_fn(|cx| connection.poll_read(cx)).await.unwrap();
        largest = largest.max(connection.buffer.capacity());
        assert_eq!(connection.decode(), None);
    }
    writer.await.unwrap();
    assert!(matches!(&connection.frames[..], [Frame::Bulk(body)] if body.len() == BODY));
    assert!(largest <= BODY + READ_BYTES, "{largest}");
}
