//! Values and their payloads as this crate writes them; shared with `examples/encoded_samples.rs`.

use towline_rdb::{Compression, HashField, HashTtlForm, Object, encode_dump};

use crate::canonical::{digest, hex};

/// The year 2100: no server drops such a field while the check runs.
const EXPIRY_MS: u64 = 4_102_444_800_000;

/// The lines of `fixtures/encoded.txt`: name, who can read it, digest, payload.
pub(crate) fn lines() -> Vec<String> {
    use Compression::{Lzf, Off};
    use HashTtlForm::{Redis, Valkey};
    let mut lines = Vec::new();
    for (name, object) in objects() {
        let expires =
            matches!(&object, Object::Hash(fields) if fields.iter().any(|f| f.expires_at_ms.is_some()));
        let forms: &[_] = if expires { &[("redis", Redis), ("valkey", Valkey)] } else { &[("any", Redis)] };
        for (reader, form) in forms {
            let payloads = [Off, Lzf].map(|compression| encode_dump(&object, *form, compression));
            let is_compressed = payloads[0] != payloads[1];
            lines.push(format!("{name} {reader} {} {}", digest(&object), hex(&payloads[0])));
            if is_compressed {
                lines.push(format!("{name}-lzf {reader} {} {}", digest(&object), hex(&payloads[1])));
            }
        }
    }
    lines
}

/// A named value of each shape that the encoder treats differently.
pub(crate) fn objects() -> Vec<(String, Object)> {
    let strings = strings();
    let mut objects: Vec<_> = strings
        .iter()
        .enumerate()
        .map(|(index, string)| (format!("string-{index}"), Object::String(string.clone())))
        .collect();
    let scores = [
        0.0,
        -0.0,
        0.1,
        -1.5,
        1e300,
        5e-324,
        f64::MAX,
        f64::INFINITY,
        f64::NEG_INFINITY,
        9_007_199_254_740_993.0,
    ];
    let zset =
        scores.iter().enumerate().map(|(index, score)| (format!("m{index}").into_bytes(), *score)).collect();
    let field = |index: usize, expires_at_ms| HashField {
        name: format!("f{index}").into_bytes(),
        value: strings[index].clone(),
        expires_at_ms,
    };
    let later = |index: usize| EXPIRY_MS + [0, 1, 62, 63, 20_000, 5_000_000_000][index % 6];
    let hashes: [(&str, Vec<HashField>); 3] = [
        ("hash", (0..strings.len()).map(|index| field(index, None)).collect()),
        (
            "hash-some-expire",
            (0..12).map(|index| field(index, (index % 2 == 1).then(|| later(index)))).collect(),
        ),
        ("hash-all-expire", (0..6).rev().map(|index| field(index, Some(later(index)))).collect()),
    ];
    objects.extend([
        ("list".to_owned(), Object::List([strings.clone(), strings.clone()].concat())),
        ("list-of-one".to_owned(), Object::List(vec![Vec::new()])),
        ("set".to_owned(), Object::Set(strings)),
        (
            "set-of-integers".to_owned(),
            Object::Set((-40..40).map(|i: i64| (i * i * i * 999).to_string().into_bytes()).collect()),
        ),
        ("zset".to_owned(), Object::Zset(zset)),
    ]);
    objects.extend(hashes.map(|(name, fields)| (name.to_owned(), Object::Hash(fields))));
    objects
}

/// Distinct strings around every boundary of the string forms.
fn strings() -> Vec<Vec<u8>> {
    let texts = [
        "",
        "a",
        "0",
        "-1",
        "127",
        "128",
        "-128",
        "-129",
        "32767",
        "32768",
        "2147483647",
        "2147483648",
        "-2147483648",
        "007",
        "-0",
        "+1",
        "1.5",
    ];
    let mut strings: Vec<Vec<u8>> = texts.iter().map(|text| text.as_bytes().to_vec()).collect();
    strings.push((0..=255).collect());
    strings.extend([20, 21, 63, 64].map(|length| vec![b'a'; length]));
    strings.push((0..40).flat_map(|i| format!("{i} squared is {}, ", i * i).into_bytes()).collect());
    strings
}
