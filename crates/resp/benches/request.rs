//! Nanoseconds per command for the hot paths of the codec: `cargo bench -p towline-resp`.
//!
//! A plain program rather than a harness: it needs no dependency and prints the best of several rounds, which
//! on a shared machine is the steadiest figure.

#![expect(clippy::disallowed_methods, reason = "a benchmark measures the clock")]
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::hint::black_box;
use std::time::Instant;

use bytes::BytesMut;
use towline_resp::Proto;
use towline_resp::frame::{Decoder, Frame, encode_command};
use towline_resp::request::{Progress, RequestLimits, RequestParser};
use towline_resp::writer::Writer;

const ROUNDS: usize = 30;
const BATCHES_PER_ROUND: usize = 2_000;
const PIPELINE: usize = 100;

/// Runs `batch` many times and prints the best round's time per command.
fn measure(name: &str, mut batch: impl FnMut()) {
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for _ in 0..BATCHES_PER_ROUND {
            batch();
        }
        best = best.min(start.elapsed().as_nanos() as f64 / (BATCHES_PER_ROUND * PIPELINE) as f64);
    }
    println!("{name:<32} {best:>8.1} ns/op");
}

fn measure_parse(name: &str, command: impl Fn(usize) -> Vec<Vec<u8>>) {
    let mut stream = Vec::new();
    for index in 0..PIPELINE {
        encode_command(&command(index), &mut stream);
    }
    let (mut parser, limits, mut args) = (RequestParser::new(), RequestLimits::default(), Vec::new());
    measure(name, || {
        args.clear();
        let mut rest = black_box(&stream[..]);
        while let Ok(Progress::Complete { consumed }) = parser.parse(rest, &limits, &mut args) {
            rest = &rest[consumed..];
        }
        black_box(&args);
        assert!(rest.is_empty());
    });
}

fn measure_replies() {
    let mut writer = Writer::new(Proto::Resp2);
    let value = [b'v'; 100];
    measure("write bulk 100 B", || {
        writer.clear();
        for _ in 0..PIPELINE {
            writer.bulk(black_box(&value));
        }
        black_box(writer.buf());
    });
    measure("write int", || {
        writer.clear();
        for index in 0..PIPELINE as i64 {
            writer.int(black_box(index * 1001));
        }
        black_box(writer.buf());
    });
    measure("write double", || {
        writer.clear();
        for index in 0..PIPELINE {
            writer.double(black_box(index as f64 / 7.0));
        }
        black_box(writer.buf());
    });
    let reply = Frame::Bulk(bytes::Bytes::from_static(&[b'v'; 100])).encode(Proto::Resp2).repeat(PIPELINE);
    let (mut decoder, mut buf) = (Decoder::default(), BytesMut::new());
    measure("decode bulk 100 B", || {
        buf.extend_from_slice(black_box(&reply));
        for _ in 0..PIPELINE {
            black_box(decoder.decode(&mut buf).expect("invariant: the stream is well formed"));
        }
    });
}

fn main() {
    let key = |index: usize| format!("key:{index:012}").into_bytes();
    measure_parse("parse GET 16 B key", |index| vec![b"GET".to_vec(), key(index)]);
    measure_parse("parse SET 16 B key, 100 B", |index| vec![b"SET".to_vec(), key(index), vec![b'v'; 100]]);
    measure_parse("parse SET 16 B key, 4 KiB", |index| vec![b"SET".to_vec(), key(index), vec![b'v'; 4096]]);
    measure_parse("parse MSET 10 keys", |index| {
        let mut args = vec![b"MSET".to_vec()];
        args.extend((0..20).map(|offset| key(index + offset)));
        args
    });
    measure_replies();
}
