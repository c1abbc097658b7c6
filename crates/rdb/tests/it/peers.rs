//! Recorded payloads: what servers dumped decodes to what they answered, and what we encode is, byte for
//! byte, what they restored when it was recorded.

use towline_rdb::{Limits, Object, decode_dump};

use crate::canonical::digest;
use crate::samples;

const PEERS: &str = include_str!("../fixtures/peers.txt");
const ENCODED: &str = include_str!("../fixtures/encoded.txt");

/// A line of `peers.txt`.
pub(crate) struct Recording {
    pub(crate) name: String,
    pub(crate) digest: &'static str,
    pub(crate) payload: Vec<u8>,
}

pub(crate) fn recordings() -> Vec<Recording> {
    PEERS
        .lines()
        .map(|line| {
            let [server, name, digest, payload] = line.split(' ').collect::<Vec<_>>()[..] else {
                panic!("a line of four words: {line}");
            };
            Recording { name: format!("{server} {name}"), digest, payload: unhex(payload) }
        })
        .collect()
}

pub(crate) fn unhex(hex: &str) -> Vec<u8> {
    hex.as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(str::from_utf8(pair).expect("ASCII"), 16).expect("hex"))
        .collect()
}

#[test]
fn payloads_of_every_server_decode_to_what_it_answered() {
    let recordings = recordings();
    for recording in &recordings {
        let object = decode_dump(&recording.payload, Limits::default());
        let object = object.unwrap_or_else(|error| panic!("{}: {error}", recording.name));
        assert_eq!(digest(&object), recording.digest, "{}: {object:?}", recording.name);
    }
    for server in ["redis-7.0", "redis-8.2", "valkey-9.1"] {
        assert!(
            recordings.iter().filter(|recording| recording.name.starts_with(server)).count() > 60,
            "{server}"
        );
    }
}

#[test]
fn recordings_hold_every_type_that_servers_write() {
    let mut types: Vec<u8> = recordings().iter().map(|recording| recording.payload[0]).collect();
    types.sort_unstable();
    types.dedup();
    assert_eq!(types, [0, 2, 3, 4, 5, 9, 10, 11, 12, 13, 14, 16, 17, 18, 20, 22, 23, 24, 25]);
}

#[test]
fn encoded_samples_are_those_that_servers_restored() {
    let lines = samples::lines();
    for (line, recorded) in lines.iter().zip(ENCODED.lines()) {
        assert_eq!(line, recorded, "run fixtures/generate.py restore on the new samples, then record them");
    }
    assert_eq!(lines.len(), ENCODED.lines().count());
}

#[test]
fn encoded_samples_decode_to_themselves() {
    let objects = samples::objects();
    for line in ENCODED.lines() {
        let [name, _, expected, payload] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("a line of four words: {line}");
        };
        let object = decode_dump(&unhex(payload), Limits::default()).unwrap();
        assert_eq!(digest(&object), expected, "{name}");
        let original: &Object = &objects.iter().find(|(n, _)| *n == name.trim_end_matches("-lzf")).unwrap().1;
        assert_eq!(&object, original, "{name}");
    }
}
