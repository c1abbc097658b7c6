//! Mutations of valid payloads, with the checksum put right so that they reach the decoder: an error or
//! a value, never a panic, and never more memory than the limits allow.

use proptest::prelude::*;
use proptest::sample::Index;
use towline_rdb::{
    Compression, HashField, HashTtlForm, Limits, Object, crc64, decode_dump, encode_dump, encode_string,
};

use crate::peers::recordings;

/// Small enough that a decompression bomb would show.
const LIMITS: Limits = Limits { string_bytes_max: 1 << 20, inflated_bytes_max: 2 << 20 };

#[derive(Debug, Clone)]
enum Mutation {
    Set(Index, u8),
    Flip(Index, u8),
    Insert(Index, Vec<u8>),
    Remove(Index, usize),
    Duplicate(Index, usize),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let at = any::<Index>;
    // The bytes at which encodings change their meaning are likelier than others.
    let byte =
        prop_oneof![any::<u8>(), prop::sample::select(&b"\x00\x01\x7f\x80\x81\xc0\xc3\xf0\xf4\xfe\xff"[..])];
    prop_oneof![
        (at(), byte.clone()).prop_map(|(at, byte)| Mutation::Set(at, byte)),
        (at(), 0..8_u8).prop_map(|(at, bit)| Mutation::Flip(at, bit)),
        (at(), prop::collection::vec(byte, 1..9)).prop_map(|(at, bytes)| Mutation::Insert(at, bytes)),
        (at(), 1..20_usize).prop_map(|(at, count)| Mutation::Remove(at, count)),
        (at(), 1..20_usize).prop_map(|(at, count)| Mutation::Duplicate(at, count)),
    ]
}

fn apply(value: &mut Vec<u8>, mutation: &Mutation) {
    if value.is_empty() {
        return;
    }
    match mutation {
        Mutation::Set(at, byte) => *at.get_mut(value) = *byte,
        Mutation::Flip(at, bit) => *at.get_mut(value) ^= 1 << bit,
        Mutation::Insert(at, bytes) => {
            let at = at.index(value.len());
            value.splice(at..at, bytes.iter().copied());
        }
        Mutation::Remove(at, count) => {
            let at = at.index(value.len());
            value.drain(at..(at + count).min(value.len()));
        }
        Mutation::Duplicate(at, count) => {
            let at = at.index(value.len());
            let copy = value[at..(at + count).min(value.len())].to_vec();
            value.splice(at..at, copy);
        }
    }
}

/// The bytes of all strings of a value.
fn size(object: &Object) -> usize {
    match object {
        Object::String(value) => value.len(),
        Object::List(elements) | Object::Set(elements) => elements.iter().map(Vec::len).sum(),
        Object::Zset(members) => members.iter().map(|(member, _)| member.len()).sum(),
        Object::Hash(fields) => fields.iter().map(|field| field.name.len() + field.value.len()).sum(),
    }
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..80),
        any::<i32>().prop_map(|value| value.to_string().into_bytes()),
        (any::<u8>(), 0..30_000_usize).prop_map(|(byte, count)| vec![byte; count]),
    ]
}

fn object() -> impl Strategy<Value = Object> {
    let names = || prop::collection::btree_set(bytes(), 1..12);
    let score = any::<f64>().prop_filter("a score is a number", |score| !score.is_nan());
    prop_oneof![
        bytes().prop_map(Object::String),
        prop::collection::vec(bytes(), 1..12).prop_map(Object::List),
        names().prop_map(|members| Object::Set(members.into_iter().collect())),
        prop::collection::btree_map(bytes(), score, 1..12)
            .prop_map(|members| Object::Zset(members.into_iter().collect())),
        prop::collection::btree_map(bytes(), (bytes(), prop::option::of(0..1_u64 << 46)), 1..12).prop_map(
            |fields| {
                let fields = fields.into_iter();
                Object::Hash(
                    fields
                        .map(|(name, (value, expires_at_ms))| HashField { name, value, expires_at_ms })
                        .collect(),
                )
            }
        ),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn what_is_encoded_decodes_to_itself(
        object in object(),
        form in prop::sample::select(&[HashTtlForm::Redis, HashTtlForm::Valkey][..]),
        compression in prop::sample::select(&[Compression::Off, Compression::Lzf][..]),
    ) {
        let payload = encode_dump(&object, form, compression);
        prop_assert_eq!(decode_dump(&payload, Limits::default()), Ok(object));
    }

    #[test]
    fn mutated_payloads_are_values_or_errors(
        pick in any::<Index>(),
        mutations in prop::collection::vec(mutation(), 1..6),
    ) {
        thread_local! {
            static RECORDED: Vec<Vec<u8>> = recordings().into_iter().map(|recording| recording.payload).collect();
        }
        let mut payload = RECORDED.with(|recorded| pick.get(recorded).clone());
        let footer = payload.split_off(payload.len() - 10);
        mutations.iter().for_each(|mutation| apply(&mut payload, mutation));
        payload.extend(&footer[..2]);
        payload.extend(crc64::checksum(&payload).to_le_bytes());
        if let Ok(object) = decode_dump(&payload, LIMITS) {
            // Integers take up to ten times their packed size as text, everything else its own.
            let most = LIMITS.inflated_bytes_max as usize * 10 + payload.len() * 10;
            prop_assert!(size(&object) <= most);
            // Valkey's form holds every expiry exactly.
            let again = encode_dump(&object, HashTtlForm::Valkey, Compression::Off);
            prop_assert_eq!(decode_dump(&again, Limits::default()), Ok(object));
        }
    }

    #[test]
    fn any_body_of_any_type_is_handled(
        type_byte in 0..27_u8,
        body in prop::collection::vec(any::<u8>(), 0..120),
        version in prop::sample::select(&[9_u16, 12, 80][..]),
    ) {
        let _ = decode_dump(&crate::rules::frame(type_byte, &body, version), LIMITS);
    }
}

#[test]
fn every_recorded_payload_is_refused_at_every_cut() {
    for recording in recordings().iter().filter(|recording| recording.payload.len() < 400) {
        let (value, footer) = recording.payload.split_at(recording.payload.len() - 10);
        for cut in 1..value.len() {
            let mut payload = [&value[..cut], &footer[..2]].concat();
            payload.extend(crc64::checksum(&payload).to_le_bytes());
            assert!(decode_dump(&payload, LIMITS).is_err(), "{} cut at {cut}", recording.name);
        }
    }
}

#[test]
fn a_decompression_bomb_meets_its_limit() {
    // Ten strings of 1 MB, each within the limit for one, together far above that for all.
    let bomb = encode_dump(&Object::List(vec![vec![0; 1_000_000]; 10]), HashTtlForm::Redis, Compression::Lzf);
    assert!(bomb.len() < 120_000);
    assert!(decode_dump(&bomb, LIMITS).is_err());
    assert!(decode_dump(&bomb, Limits::default()).is_ok());
    assert!(decode_dump(&encode_string(&vec![0; 2 << 20]), LIMITS).is_err());
}
