//! Rules of the frame and of bodies, one refused payload each.

use towline_rdb::{
    Compression, DumpError, DumpWriter, HashField, HashTtlForm, Limits, Object, ObjectError, RdbType, crc64,
    decode_dump, encode_dump,
};

/// A payload with a right footer around `body`.
pub(crate) fn frame(type_byte: u8, body: &[u8], version: u16) -> Vec<u8> {
    let mut payload = [&[type_byte], body, &version.to_le_bytes()].concat();
    payload.extend(crc64::checksum(&payload).to_le_bytes());
    payload
}

fn decode(type_byte: u8, body: &[u8]) -> Result<Object, DumpError> {
    decode_dump(&frame(type_byte, body, 12), Limits::default())
}

fn object_error(type_byte: u8, body: &[u8]) -> ObjectError {
    match decode(type_byte, body) {
        Err(DumpError::Object(error)) => error,
        other => panic!("type {type_byte} gave {other:?}"),
    }
}

#[test]
fn versions_of_both_families_are_accepted_and_no_others() {
    for version in 0..=u16::MAX {
        let result = decode_dump(&frame(0, b"\x01a", version), Limits::default());
        match version {
            1..=12 | 80 => assert_eq!(result, Ok(Object::String(b"a".to_vec()))),
            _ => assert_eq!(result, Err(DumpError::Version(version))),
        }
    }
}

#[test]
fn short_and_damaged_payloads_are_refused() {
    let payload = frame(0, b"\x05hello", 9);
    for cut in 0..11 {
        assert_eq!(decode_dump(&payload[..cut], Limits::default()), Err(DumpError::TooShort));
    }
    for index in 0..payload.len() {
        let mut bad = payload.clone();
        bad[index] ^= 1;
        let error = decode_dump(&bad, Limits::default()).unwrap_err();
        assert!(matches!(error, DumpError::Checksum | DumpError::Version(_)), "byte {index}: {error:?}");
    }
}

#[test]
fn streams_modules_and_unassigned_types_are_named() {
    for (byte, rdb_type) in [
        (6, RdbType::ModulePreGa),
        (7, RdbType::Module2),
        (15, RdbType::StreamListpacks),
        (19, RdbType::StreamListpacks2),
        (21, RdbType::StreamListpacks3),
    ] {
        assert_eq!(object_error(byte, b"\x01a"), ObjectError::UnsupportedType(rdb_type));
    }
    assert_eq!(
        ObjectError::UnsupportedType(RdbType::StreamListpacks3).to_string(),
        "RDB type 21 (StreamListpacks3) is not supported"
    );
    for byte in [8, 26, 255] {
        assert_eq!(object_error(byte, b"\x01a"), ObjectError::UnknownType(byte));
    }
}

#[test]
fn empty_collections_are_refused() {
    for byte in [1, 2, 3, 4, 5, 14, 18] {
        assert_eq!(object_error(byte, b"\0"), ObjectError::Empty, "type {byte}");
    }
    assert_eq!(object_error(24, b"\0\0\0\0\0\0\0\0\0"), ObjectError::Empty);
    let (ziplist, listpack) = (b"\x0b\x0b\0\0\0\x0a\0\0\0\0\0\xff", b"\x07\x07\0\0\0\0\0\xff");
    for byte in [10, 12, 13] {
        assert_eq!(object_error(byte, ziplist), ObjectError::Empty, "type {byte}");
    }
    for byte in [16, 17, 20] {
        assert_eq!(object_error(byte, listpack), ObjectError::Empty, "type {byte}");
    }
    assert_eq!(object_error(18, &[b"\x01\x02", &listpack[..]].concat()), ObjectError::Empty);
    assert_eq!(object_error(9, b"\x02\0\xff"), ObjectError::Empty);
    assert_eq!(object_error(11, b"\x08\x02\0\0\0\0\0\0\0"), ObjectError::Empty);
}

#[test]
fn duplicates_are_refused() {
    assert_eq!(object_error(2, b"\x02\x01a\x01a"), ObjectError::Duplicate);
    // The same member as text and as an integer.
    assert_eq!(object_error(2, b"\x02\x015\xc0\x05"), ObjectError::Duplicate);
    assert_eq!(object_error(3, b"\x02\x01a\x011\x01a\x012"), ObjectError::Duplicate);
    assert_eq!(object_error(4, b"\x02\x01a\x01b\x01a\x01c"), ObjectError::Duplicate);
    assert_eq!(object_error(20, b"\x0d\x0d\0\0\0\x02\0\x81a\x02\x81a\x02\xff"), ObjectError::Duplicate);
    assert_eq!(decode(1, b"\x02\x01a\x01a"), Ok(Object::List(vec![b"a".to_vec(); 2])));
}

#[test]
fn scores_must_be_numbers() {
    let binary = |score: f64| [b"\x01\x01a", &score.to_le_bytes()[..]].concat();
    assert_eq!(object_error(5, &binary(f64::NAN)), ObjectError::InvalidScore);
    assert_eq!(decode(5, &binary(-0.0)), Ok(Object::Zset(vec![(b"a".to_vec(), -0.0)])));
    for text in [&b"\xfd"[..], b"\x00", b"\x03nan", b"\x02 1", b"\x021 ", b"\x03abc"] {
        assert_eq!(object_error(3, &[b"\x01\x01a", text].concat()), ObjectError::InvalidScore);
    }
    let listpack = b"\x0f\x0f\0\0\0\x02\0\x81a\x02\x83nan\x04\xff";
    assert_eq!(object_error(17, listpack), ObjectError::InvalidScore);
}

#[test]
fn bytes_after_the_value_are_refused() {
    assert_eq!(object_error(0, b"\x01ab"), ObjectError::TrailingBytes(1));
    assert_eq!(object_error(2, b"\x01\x01a\x01b"), ObjectError::TrailingBytes(2));
}

#[test]
fn claimed_counts_beyond_the_payload_are_refused_at_once() {
    for byte in [1, 2, 3, 4, 5, 14, 18] {
        let body = b"\x81\x7f\xff\xff\xff\xff\xff\xff\xff\x01a";
        assert_eq!(object_error(byte, body), ObjectError::Truncated, "type {byte}");
    }
    assert_eq!(object_error(0, b"\x80\x10\0\0\0a"), ObjectError::Truncated);
    assert!(matches!(object_error(0, b"\xc3\x02\x80\x10\0\0\0\0a"), ObjectError::Malformed { .. }));
    assert!(matches!(object_error(0, b"\x80\xff\xff\xff\xffa"), ObjectError::TooLarge { .. }));
}

#[test]
fn odd_entries_and_bad_expiry_are_refused() {
    let odd = b"\x0a\x0a\0\0\0\x01\0\x81a\x02\xff";
    for byte in [16, 17, 23] {
        assert!(matches!(object_error(byte, odd), ObjectError::Malformed { .. }), "type {byte}");
    }
    let at = |ms: u64| [b"\x01\x81", &ms.to_be_bytes()[..], b"\x01a\x01b"].concat();
    assert!(decode(22, &at(1 << 47)).is_ok());
    assert!(matches!(object_error(22, &at(1 << 48)), ObjectError::Malformed { .. }));
    let overflow = [&u64::MAX.to_le_bytes()[..], b"\x01\x02\x01a\x01b"].concat();
    assert!(matches!(object_error(24, &overflow), ObjectError::Malformed { .. }));
    let negative = [b"\x01\x01a\x01b", &(-2_i64).to_le_bytes()[..]].concat();
    assert!(decode_dump(&frame(22, &negative, 80), Limits::default()).is_err());
}

#[test]
fn quicklists_skip_empty_nodes_and_refuse_unknown_containers() {
    let empty = b"\x02\x07\x07\0\0\0\0\0\xff";
    let body = [b"\x02", &empty[..], b"\x01\x01a"].concat();
    assert_eq!(decode(18, &body), Ok(Object::List(vec![b"a".to_vec()])));
    assert!(matches!(object_error(18, b"\x01\x03\x01a"), ObjectError::Malformed { .. }));
    assert!(matches!(object_error(18, b"\x01\x01\x00"), ObjectError::Malformed { .. }));
}

#[test]
fn expiry_beyond_48_bits_is_kept_for_valkey_and_clamped_for_redis() {
    let hash = |expires_at_ms: u64| {
        let field =
            |name: &[u8], expires_at_ms| HashField { name: name.to_vec(), value: vec![], expires_at_ms };
        Object::Hash(vec![field(b"a", Some(expires_at_ms)), field(b"b", None)])
    };
    let through =
        |form, object| decode_dump(&encode_dump(&object, form, Compression::Off), Limits::default());
    let (late, last) = (1 << 60, (1 << 48) - 1);
    assert_eq!(through(HashTtlForm::Valkey, hash(late)), Ok(hash(late)));
    assert_eq!(through(HashTtlForm::Redis, hash(late)), Ok(hash(last)));
    assert_eq!(through(HashTtlForm::Redis, hash(0)), Ok(hash(0)));
}

#[test]
#[should_panic(expected = "no more elements than announced")]
fn more_elements_than_announced_are_a_bug() {
    let mut writer = DumpWriter::set(1);
    writer.element(b"a");
    writer.element(b"b");
}

#[test]
fn chunks_in_order_are_the_payload() {
    let write = |chunked: bool| {
        let (mut writer, mut payload) = (DumpWriter::zset(50), Vec::new());
        for index in 0..50 {
            writer.scored(format!("member {index}").as_bytes(), f64::from(index));
            if chunked && writer.buffered_bytes() > 100 {
                payload.extend(writer.take_chunk());
            }
        }
        payload.extend(writer.finish());
        payload
    };
    assert_eq!(write(true), write(false));
    assert!(decode_dump(&write(true), Limits::default()).is_ok());
}
