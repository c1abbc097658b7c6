//! A canonical form of values and its digest, the same as in `fixtures/generate.py`.

use towline_rdb::{Object, crc64};

/// The CRC-64/REDIS of the canonical form, in hex.
pub(crate) fn digest(object: &Object) -> String {
    format!("{:016x}", crc64::checksum(&canonical(object)))
}

fn canonical(object: &Object) -> Vec<u8> {
    let mut out = Vec::new();
    match object {
        Object::String(value) => {
            out.push(b's');
            out.extend(value);
        }
        Object::List(elements) => {
            out.push(b'l');
            elements.iter().for_each(|element| lengthed(&mut out, element));
        }
        Object::Set(members) => {
            out.push(b'e');
            let mut members = members.clone();
            members.sort();
            members.iter().for_each(|member| lengthed(&mut out, member));
        }
        Object::Zset(members) => {
            out.push(b'z');
            let mut members = members.clone();
            members.sort_by(|a, b| a.0.cmp(&b.0));
            for (member, score) in members {
                lengthed(&mut out, &member);
                out.extend(score.to_le_bytes());
            }
        }
        Object::Hash(fields) => {
            out.push(b'h');
            let mut fields = fields.clone();
            fields.sort_by(|a, b| a.name.cmp(&b.name));
            for field in fields {
                lengthed(&mut out, &field.name);
                lengthed(&mut out, &field.value);
                out.extend(field.expires_at_ms.unwrap_or(0).to_le_bytes());
            }
        }
    }
    out
}

fn lengthed(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend((bytes.len() as u32).to_le_bytes());
    out.extend(bytes);
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
