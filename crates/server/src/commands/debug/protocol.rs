//! `DEBUG PROTOCOL`: one sample of each protocol type, as client libraries' tests expect them.

use crate::command::{CommandError, CommandResult};
use towline_resp::writer::Writer;

const UNKNOWN: CommandError = CommandError::Text(
    "ERR Wrong protocol type name. Please use one of the following: \
     string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false",
);

/// No circle is meant: it is the sample that clients' tests expect.
#[expect(clippy::approx_constant, reason = "exactly these digits are expected")]
const DOUBLE: f64 = 3.141;

/// Writes the sample of a type.
pub(super) fn write(out: &mut Writer, kind: &[u8]) -> CommandResult {
    match kind.to_ascii_lowercase().as_slice() {
        b"string" => out.bulk(b"Hello World"),
        b"integer" => out.int(12_345),
        b"double" => out.double(DOUBLE),
        b"bignum" => out.big_number("1234567999999999999999999999999999999"),
        b"null" => out.null(),
        b"array" => {
            out.array(3);
            (0..3).for_each(|number| out.int(number));
        }
        b"set" => {
            out.set(3);
            (0..3).for_each(|number| out.int(number));
        }
        b"map" => {
            out.map(3);
            for number in 0..3 {
                out.int(number);
                out.bool(number == 1);
            }
        }
        b"attrib" => {
            if out.attribute(1) {
                out.bulk(b"key-popularity");
                out.array(2);
                out.bulk(b"key:123");
                out.int(90);
            }
            out.bulk(b"Some real reply following the attribute");
        }
        b"push" => {
            if !out.is_resp3() {
                return Err(CommandError::Text("ERR RESP2 is not supported by this command"));
            }
            out.bulk(b"Some real reply following the push reply");
            out.push(2);
            out.bulk(b"server-cpu-usage");
            out.int(42);
        }
        b"verbatim" => out.verbatim(b"txt", "This is a verbatim\nstring"),
        b"true" => out.bool(true),
        b"false" => out.bool(false),
        _ => return Err(UNKNOWN),
    }
    Ok(())
}
