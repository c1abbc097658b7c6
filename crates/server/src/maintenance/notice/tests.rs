//! Tests of notices and their frames.

use super::*;

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address of a test")
}

#[test]
fn a_scope_is_an_address_or_a_port_on_all_addresses() {
    let on = |scope: &str, local: &str| Scope::Local(address(scope)).includes(Some(address(local)));
    assert!(on("127.0.0.1:1", "127.0.0.1:1"));
    assert!(!on("127.0.0.1:1", "127.0.0.1:2") && !on("127.0.0.1:1", "127.0.0.2:1"));
    assert!(on("0.0.0.0:1", "127.0.0.2:1") && !on("0.0.0.0:1", "127.0.0.2:2") && !on("0.0.0.0:1", "[::1]:1"));
    assert!(on("[::]:1", "[::1]:1"));
    assert!(Scope::All.includes(None) && !Scope::Local(address("0.0.0.0:1")).includes(None));
    assert_eq!(
        (Scope::All.to_string(), Scope::Local(address("[::1]:1")).to_string()),
        ("all".into(), "[::1]:1".into())
    );
}

#[test]
fn each_connection_is_told_the_form_that_it_asked_for_or_the_other_one() {
    use EndpointType::{ExternalFqdn, ExternalIp, InternalFqdn, InternalIp};
    let of = |ip: Option<&str>, fqdn: Option<&str>| Successor {
        ip: ip.map(str::to_owned),
        fqdn: fqdn.map(str::to_owned),
        port: 7,
    };
    let named = |successor: &Successor, wanted| successor.named(wanted).unwrap_or_else(|| "null".into());
    let both = of(Some("10.0.0.1"), Some("db.test"));
    for ip in [InternalIp, ExternalIp] {
        assert_eq!(named(&both, Some(ip)), "10.0.0.1:7");
        assert_eq!(named(&of(None, Some("db.test")), Some(ip)), "db.test:7");
    }
    for fqdn in [InternalFqdn, ExternalFqdn] {
        assert_eq!(named(&both, Some(fqdn)), "db.test:7");
        assert_eq!(named(&of(Some("10.0.0.1"), None), Some(fqdn)), "10.0.0.1:7");
    }
    assert_eq!(named(&both, None), "db.test:7");
    assert_eq!(named(&of(Some("10.0.0.1"), None), None), "10.0.0.1:7");
    assert_eq!(named(&both, Some(EndpointType::None)), "null");
    assert_eq!(named(&of(None, None), None), "null");
    assert_eq!(named(&of(Some("::1"), None), Some(InternalIp)), "[::1]:7");
    assert_eq!(Successor::new("[::1]", 7), of(Some("::1"), None));
    assert_eq!(Successor::new("::1", 7), of(Some("::1"), None));
    assert_eq!(Successor::new("db.test", 7), of(None, Some("db.test")));
}

#[test]
fn endpoint_types_have_names() {
    assert_eq!(EndpointType::parse(b"External-IP"), Some(EndpointType::ExternalIp));
    assert_eq!(EndpointType::parse(b"auto"), None);
    for (name, endpoint_type) in EndpointType::NAMES {
        assert_eq!(EndpointType::parse(name.as_bytes()), Some(endpoint_type));
    }
}

#[test]
fn seconds_are_rounded_up_and_a_window_has_at_least_one() {
    let time = |notice: &Notice, ms| {
        let frame = notice.frame(1, Duration::from_millis(ms), None);
        String::from_utf8_lossy(&frame).split("\r\n").nth(4).map(str::to_owned).unwrap_or_default()
    };
    let moving = Notice::Moving { window: Duration::ZERO, successor: None };
    let migrating = Notice::Migrating { starts_in: Duration::ZERO, shards: Vec::new() };
    for (ms, of_moving, of_migrating) in
        [(0, ":1", ":0"), (1, ":1", ":1"), (1000, ":1", ":1"), (1001, ":2", ":2"), (15_000, ":15", ":15")]
    {
        assert_eq!(time(&moving, ms), of_moving);
        assert_eq!(time(&migrating, ms), of_migrating);
    }
}

#[test]
fn no_time_is_too_long() {
    let now = Instant::now();
    let notice = Notice::Moving { window: Duration::MAX, successor: None };
    assert_eq!(notice.due(now), now + AHEAD_MAX);
}

#[test]
fn shards_are_a_json_array_whatever_their_names() {
    assert_eq!(json(&[]), "[]");
    assert_eq!(json(&["2".into(), "4".into()]), r#"["2", "4"]"#);
    assert_eq!(json(&["a\"b\\c\n".into()]), r#"["a\"b\\c\u000a"]"#);
}

#[test]
fn slots_are_taken_apart() {
    let of = |list: &str| slots_of(list).collect::<Vec<_>>();
    assert_eq!(of("1, 3-5,9"), ["1", "3", "4", "5", "9"]);
    assert_eq!(of("5-3,16383,16384-16385,x"), ["16383", "16384-16385", "x"]);
    assert_eq!(of("0-16383").len(), 16384);
    assert!(of("").is_empty());
}

#[test]
fn work_is_over_when_all_of_it_is_done() {
    let migrating = |shards: &[&str]| {
        let shards = shards.iter().map(|&shard| shard.to_owned()).collect();
        Notice::Migrating { starts_in: Duration::ZERO, shards }.opens().expect("it opens")
    };
    let migrated = |shards: &[&str]| {
        Notice::Migrated { shards: shards.iter().map(|&shard| shard.to_owned()).collect() }
            .closes()
            .expect("it closes")
    };
    let mut pieces = migrating(&["1", "2"]);
    assert!(!pieces.finish(&migrated(&["1", "3"])));
    assert!(pieces.finish(&migrated(&["2"])));
    assert!(migrating(&["1"]).finish(&migrated(&[])), "nothing named is everything");
    assert!(migrating(&[]).finish(&migrated(&["1"])));
    let failed_over = Notice::FailedOver { shards: Vec::new() }.closes().expect("it closes");
    assert!(!migrating(&["1"]).finish(&failed_over));
    let mut slots = Notice::Smigrating { slots: "1-3".into() }.opens().expect("it opens");
    let moved = |slots: &str| {
        let (source, destination) = ("a:1".to_owned(), "b:1".to_owned());
        Notice::Smigrated { moves: vec![SlotMove { source, destination, slots: slots.into() }] }.closes()
    };
    assert!(!slots.finish(&moved("2-5").expect("it closes")));
    assert!(slots.finish(&moved("1").expect("it closes")));
}
