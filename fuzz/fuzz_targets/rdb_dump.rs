//! DUMP payloads from a stranger: any bytes are a value or an error, within the limits, and what was
//! decoded can be encoded and decoded again to the same value.
//!
//! The input is type byte, body and a byte that selects the version; the checksum is put right here, since
//! the fuzzer would not find one by itself. `crates/rdb/tests/fixtures/peers.txt` has seeds.
#![no_main]

use libfuzzer_sys::fuzz_target;
use towline_rdb::{Compression, HashTtlForm, Limits, crc64, decode_dump, encode_dump};

/// Small, so that an allocation beyond the limits meets libFuzzer's own.
const LIMITS: Limits = Limits { string_bytes_max: 1 << 20, inflated_bytes_max: 4 << 20 };
const VERSIONS: [u16; 4] = [6, 9, 12, 80];

fuzz_target!(|input: &[u8]| {
    // The raw bytes as well: the frame itself must stand them.
    let _ = decode_dump(input, LIMITS);
    let Some((&selector, value)) = input.split_last() else { return };
    let version = VERSIONS[usize::from(selector) % VERSIONS.len()];
    let mut payload = [value, &version.to_le_bytes()].concat();
    payload.extend(crc64::checksum(&payload).to_le_bytes());
    let Ok(object) = decode_dump(&payload, LIMITS) else { return };
    for compression in [Compression::Off, Compression::Lzf] {
        let again = encode_dump(&object, HashTtlForm::Valkey, compression);
        assert_eq!(decode_dump(&again, Limits::default()).as_ref(), Ok(&object));
    }
});
