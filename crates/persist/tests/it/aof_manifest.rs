//! The manifest's text.

use proptest::prelude::*;
use towline_persist::aof::{Manifest, ManifestErrorKind, ManifestFile};

use crate::fixtures::FIXTURES;

#[test]
fn manifests_of_every_server_are_read_and_written_as_they_were() {
    for fixture in &FIXTURES {
        let manifest = Manifest::parse(fixture.manifest).unwrap();
        assert_eq!(
            manifest.base,
            Some(ManifestFile::new("appendonly.aof.2.base.rdb", 2)),
            "{}",
            fixture.name
        );
        assert_eq!(manifest.increments[0].name, "appendonly.aof.2.incr.aof");
        assert_eq!(manifest.increments[0].start_offset.is_some(), fixture.name == "redis-8.2");
        assert_eq!(manifest.to_text().as_bytes(), fixture.manifest);
    }
}

#[test]
fn broken_lines_are_refused_with_their_number() {
    use ManifestErrorKind as K;
    let first = "# a comment\nfile a.1.base.rdb seq 1 type b\nfile a.1.incr.aof seq 1 type i\n";
    let value = |word, value: &str| K::Value { word, value: value.to_owned() };
    for (line, kind) in [
        ("\n", K::Form),
        ("file a.2.incr.aof seq 2\n", K::Form),
        ("file a.2.incr.aof seq\n", K::Form),
        ("seq 2 type i\n", K::Form),
        ("file \"a.2.incr.aof seq 2 type i\n", K::Form),
        ("file a.2.incr.aof seq 2 type i", K::LineEnd),
        ("file a.2.incr.aof seq two type i\n", value("seq", "two")),
        ("file a.2.incr.aof seq 0 type i\n", value("seq", "0")),
        ("file a.2.incr.aof seq -2 type i\n", value("seq", "-2")),
        ("file a.2.incr.aof seq 2 type x\n", value("type", "x")),
        ("file a.2.incr.aof seq 2 type incr\n", value("type", "incr")),
        ("file ../a.2.incr.aof seq 2 type i\n", K::Path("../a.2.incr.aof".into())),
        ("file .. seq 2 type i\n", K::Path("..".into())),
        ("file a.2.incr.aof seq 2 type i color red\n", K::Word("color".into())),
        ("file a.2.incr.aof seq 2 seq 3 type i\n", K::Word("seq".into())),
        ("hello world\n", K::Word("hello".into())),
        ("file b.1.base.rdb seq 2 type b\n", K::SecondBase),
        ("file b.1.incr.aof seq 1 type i\n", K::Order { sequence: 1, before: 1 }),
        ("file a.1.incr.aof seq 2 type i\n", K::Twice("a.1.incr.aof".into())),
    ] {
        let error = Manifest::parse(format!("{first}{line}").as_bytes()).unwrap_err();
        assert_eq!((error.line, error.kind), (4, kind), "{line:?}");
    }
    let long = format!("{first}# {}\n", "x".repeat(1030));
    assert_eq!(Manifest::parse(long.as_bytes()).unwrap_err().kind, K::LineEnd);
    assert_eq!(Manifest::parse(b"").unwrap_err().kind, K::Empty);
    assert_eq!(Manifest::parse(Manifest::default().to_text().as_bytes()), Ok(Manifest::default()));
}

proptest! {
    #[test]
    fn any_manifest_survives_its_text(
        names in prop::collection::hash_set("[^/\\\\\0]{1,20}", 1..8),
        offset in any::<Option<i64>>(),
    ) {
        let names: Vec<String> = names.into_iter().filter(|name| name != "." && name != "..").collect();
        let mut files = (1..).zip(names).map(|(sequence, name)| ManifestFile {
            end_offset: offset,
            ..ManifestFile::new(name, sequence)
        });
        let base = files.next();
        let manifest = Manifest { base, history: files.next().into_iter().collect(), increments: files.collect() };
        prop_assert_eq!(Manifest::parse(manifest.to_text().as_bytes()), Ok(manifest));
    }

    #[test]
    fn any_text_is_handled(text in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Manifest::parse(&text);
    }
}
