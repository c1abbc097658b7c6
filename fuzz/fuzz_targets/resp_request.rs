//! The command parser: any split of any stream gives the same commands and the same error, and commands survive being
//! encoded and parsed again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use towline_resp::frame::encode_command;
use towline_resp::request::RequestLimits;

#[path = "../../crates/resp/tests/it/driver.rs"]
mod driver;

use driver::Driver;

fuzz_target!(|data: &[u8]| {
    let [split, flags, stream @ ..] = data else { return };
    let limits = if flags & 1 == 0 { RequestLimits::default() } else { RequestLimits::unauthenticated() };
    // A big bulk is worth testing only if the input need not spell it out.
    let stream = if flags & 2 == 0 { stream.to_vec() } else { with_big_bulks(stream) };
    let whole = Driver::run(&stream, limits);
    let pieces = [usize::from(split & 15) + 1, usize::from(split >> 4) * 37 + 1];
    let split = Driver::run_split(&stream, &pieces, limits);
    assert_eq!(split.commands, whole.commands);
    assert_eq!(split.error, whole.error);

    let mut again = Vec::new();
    for args in &whole.commands {
        encode_command(args, &mut again);
    }
    let again = Driver::run(&again, RequestLimits::default());
    assert_eq!(again.error, None);
    assert_eq!(again.commands, whole.commands);
});

/// Replaces each byte 0xfe by a bulk that is handed out while it arrives.
fn with_big_bulks(stream: &[u8]) -> Vec<u8> {
    const LEN: usize = towline_resp::request::BIG_BULK_BYTES + 3;
    const BULKS_MAX: usize = 3;
    let mut out = Vec::new();
    let mut bulks = 0;
    for &byte in stream {
        if byte == 0xfe && bulks < BULKS_MAX {
            bulks += 1;
            out.extend_from_slice(format!("${LEN}\r\n").as_bytes());
            out.resize(out.len() + LEN, b'x');
            out.extend_from_slice(b"\r\n");
        } else {
            out.push(byte);
        }
    }
    out
}
