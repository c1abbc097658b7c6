use bytes::Bytes;
use proptest::prelude::*;

use super::*;

fn bulk(text: &str) -> Frame {
    Frame::Bulk(Bytes::copy_from_slice(text.as_bytes()))
}

fn words(text: &str) -> Frame {
    Frame::Array(text.split_ascii_whitespace().map(bulk).collect())
}

/// The same as a map, as sentinels answer over RESP3.
fn map(text: &str) -> Frame {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    Frame::Map(words.chunks_exact(2).map(|pair| (bulk(pair[0]), bulk(pair[1]))).collect())
}

fn address(text: &str) -> Address {
    Address::parse(text.as_bytes()).unwrap()
}

/// `id primary epoch`, with `-` for what is not told.
fn told(text: &str) -> SentinelView {
    let words: Vec<&str> = text.split(' ').collect();
    let known = |at: usize| Some(words[at]).filter(|word| *word != "-");
    SentinelView {
        id: known(0).map(Into::into),
        primary: known(1).map(address),
        epoch: known(2).map(|epoch| epoch.parse().unwrap()),
        ..SentinelView::default()
    }
}

fn agreed(answers: &[&str]) -> String {
    let answers: Vec<_> = answers.iter().map(|answer| told(answer)).collect();
    match agree_on_primary(&answers) {
        None => "none".into(),
        Some((view, epoch)) => {
            assert_eq!(view.topology.slots.covered(), 1);
            let owner = view.topology.slots.owner(ONLY_SLOT).unwrap();
            let node = &view.topology.nodes[owner];
            assert_eq!(node.role, Role::Primary);
            let epoch = epoch.map_or_else(|| "-".into(), |epoch| epoch.to_string());
            format!("{} {epoch}", node.address.as_ref().unwrap())
        }
    }
}

#[test]
fn the_newest_epoch_decides_then_the_majority_then_the_order() {
    for (answers, expected) in [
        (&["s1 a:1 1", "s2 a:1 1", "s3 a:1 1"][..], "a:1 1"),
        // One has seen the failover first.
        (&["s1 a:1 1", "s2 a:1 1", "s3 b:1 2"], "b:1 2"),
        (&["s1 b:1 2", "s2 a:1 1", "s3 a:1 3"], "a:1 3"),
        // The same epoch: most of them.
        (&["s1 a:1 1", "s2 b:1 1", "s3 b:1 1"], "b:1 1"),
        (&["s1 b:1 1", "s2 a:1 1"], "b:1 1"),
        // One does not tell: most of them, then the epoch.
        (&["s1 a:1 -", "s2 a:1 1", "s3 b:1 2"], "a:1 1"),
        (&["s1 a:1 -", "s2 b:1 2"], "b:1 2"),
        (&["s1 a:1 -", "s2 b:1 -", "s3 b:1 -"], "b:1 -"),
        // One knows none of that name.
        (&["s1 - -", "s2 - -", "s3 b:1 2"], "b:1 2"),
        (&["s1 - -"], "none"),
        (&[], "none"),
        // One voice, however often it is heard.
        (&["s1 a:1 1", "s1 a:1 1", "s2 b:1 1", "s3 b:1 1"], "b:1 1"),
        (&["s1 a:1 1", "s1 a:1 1", "s2 b:1 1"], "a:1 1"),
        (&["- a:1 1", "- a:1 1", "- b:1 1"], "a:1 1"),
    ] {
        assert_eq!(agreed(answers), expected, "{answers:?}");
    }
}

#[test]
fn replies_are_read_in_both_protocols() {
    for fields in [words, map] {
        let mut view = SentinelView::default();
        view.take_primary(&words("10.0.0.1 6379")).unwrap();
        view.take_details(&fields("name cache ip 10.0.0.1 port 6379 flags master config-epoch 7 quorum 2"));
        view.take_replicas(&Frame::Array(vec![
            fields("ip 10.0.0.2 port 6379 flags slave master-link-status ok replica-announced 1"),
            fields("ip replica-3.example port 6380 flags s_down,slave,disconnected master-link-status err"),
            fields("ip 10.0.0.4 port 6379 flags slave master-link-status err"),
            fields("ip 10.0.0.5 port 6379 flags slave replica-announced 0"),
            fields("ip ? port 6379 flags slave"),
            fields("ip 10.0.0.6 port 0"),
            bulk("nonsense"),
        ]));
        view.take_sentinels(&Frame::Array(vec![
            fields("ip 10.0.1.2 port 26379 flags sentinel"),
            fields("ip 10.0.1.3 port x"),
        ]));
        assert_eq!((view.primary.clone(), view.epoch), (Some(address("10.0.0.1:6379")), Some(7)));
        let replicas: Vec<_> = view
            .replicas
            .iter()
            .map(|replica| format!("{} {:?}", replica.address.as_ref().unwrap(), replica.health))
            .collect();
        assert_eq!(
            replicas,
            ["10.0.0.2:6379 Online", "replica-3.example:6380 Failed", "10.0.0.4:6379 Loading"]
        );
        assert_eq!(view.sentinels, [address("10.0.1.2:26379")]);
        let (view, _) = agree_on_primary(&[view.clone(), view]).unwrap();
        assert_eq!(view.topology.nodes.len(), 4, "each of them once");
        assert_eq!(view.topology.replicas_of(0).count(), 1);
    }
}

#[test]
fn a_primary_is_named_or_not_or_the_reply_is_none() {
    let read = |frame: &Frame| {
        let mut view = SentinelView::default();
        view.take_primary(frame).map(|()| view.primary.map(|primary| primary.to_string()))
    };
    assert_eq!(read(&words("redis-1.example 6379")), Ok(Some("redis-1.example:6379".into())));
    assert_eq!(read(&Frame::Null), Ok(None));
    assert_eq!(read(&Frame::NullArray), Ok(None));
    for hostile in [
        words("10.0.0.1"),
        words("10.0.0.1 0"),
        words("10.0.0.1 65536"),
        words("? 6379"),
        words("0.0.0.0 6379"),
        words("a b c"),
        Frame::Integer(1),
        bulk("10.0.0.1:6379"),
        Frame::Array(vec![Frame::Null, Frame::Null]),
    ] {
        assert_eq!(read(&hostile), Err(ViewError::Shape), "{hostile:?}");
    }
}

#[test]
fn a_primary_that_lists_itself_as_its_replica_is_the_primary() {
    let mut view = told("s1 a:1 1");
    view.take_replicas(&Frame::Array(vec![
        words("ip a port 1 flags slave"),
        words("ip b port 1 flags slave"),
    ]));
    let (view, _) = agree_on_primary(&[view]).unwrap();
    let roles: Vec<_> = view.topology.nodes.iter().map(|node| (node.role, node.primary)).collect();
    assert_eq!(roles, [(Role::Primary, None), (Role::Replica, Some(0))]);
}

#[test]
fn messages_are_about_one_primary() {
    for (channel, payload, expected) in [
        ("+switch-master", "cache 10.0.0.1 6379 10.0.0.2 6379", Some("cache")),
        ("+switch-master", "cache 10.0.0.1 6379", None),
        ("+promoted-slave", "slave 10.0.0.2:6379 10.0.0.2 6379 @ cache 10.0.0.1 6379", Some("cache")),
        ("+slave", "slave 10.0.0.2:6379 10.0.0.2 6379 @ cache 10.0.0.1 6379", Some("cache")),
        ("+sdown", "master cache 10.0.0.1 6379", Some("cache")),
        ("+sdown", "sentinel abc 10.0.0.1 26379 @ cache 10.0.0.1 6379", Some("cache")),
        ("+reset-master", "master cache 10.0.0.1 6379", Some("cache")),
        ("+sdown", "slave 10.0.0.2:6379 10.0.0.2 6379 @", None),
        ("+sdown", "", None),
        ("+tilt", "#tilt mode entered", None),
        ("news", "master cache 10.0.0.1 6379", None),
    ] {
        let name = primary_of_event(channel.as_bytes(), payload.as_bytes());
        assert_eq!(name, expected, "{channel} {payload}");
    }
    assert_eq!(primary_of_event(b"+sdown", b"\xff\xfe"), None);
}

fn role(text: &str) -> RoleReply {
    let reply = match text.split_ascii_whitespace().collect::<Vec<_>>()[..] {
        ["master", offset, ref replicas @ ..] => {
            let replica = |text: &&str| words(&format!("{} 10", text.replace(':', " ")));
            let replicas = Frame::Array(replicas.iter().map(replica).collect());
            Frame::Array(vec![bulk("master"), Frame::Integer(offset.parse().unwrap()), replicas])
        }
        _ => words(text),
    };
    RoleReply::parse(&reply).unwrap()
}

#[test]
fn roles_are_read() {
    let replicas = vec![address("10.0.0.2:6379")];
    assert_eq!(role("master 10 10.0.0.2:6379"), RoleReply::Primary { offset: 10, replicas });
    let primary = Some(address("10.0.0.1:6379"));
    assert_eq!(role("slave 10.0.0.1 6379 connected 10"), RoleReply::Replica { primary, is_linked: true });
    assert_eq!(role("slave ? 0 connect -1"), RoleReply::Replica { primary: None, is_linked: false });
    assert_eq!(role("sentinel cache"), RoleReply::Sentinel);
    for hostile in [Frame::Null, Frame::Array(vec![]), words("master"), words("slave"), words("king 1 2 3")] {
        assert_eq!(RoleReply::parse(&hostile), Err(ViewError::Shape), "{hostile:?}");
    }
}

#[test]
fn without_sentinels_the_primary_that_is_followed_is_the_one() {
    let view = |answers: &[(&str, &str)]| {
        let answers: Vec<_> = answers.iter().map(|(at, text)| (address(at), role(text))).collect();
        let view = view_of_roles(&answers)?;
        let owner = view.topology.slots.owner(ONLY_SLOT)?;
        let replicas = view.topology.replicas_of(owner).count();
        Some(format!("{} {replicas}", view.topology.nodes[owner].address.as_ref()?))
    };
    let replica = "slave a 1 connected 10";
    assert_eq!(view(&[("b:1", replica), ("a:1", "master 10 b:1")]).as_deref(), Some("a:1 1"));
    assert_eq!(view(&[("a:1", "master 10 b:1 c:1")]).as_deref(), Some("a:1 2"), "it tells of the others");
    // One came back and was not told yet that it follows.
    assert_eq!(view(&[("a:1", "master 99"), ("b:1", "master 10 c:1")]).as_deref(), Some("b:1 1"));
    assert_eq!(view(&[("a:1", "master 9"), ("b:1", "master 10")]).as_deref(), Some("b:1 0"));
    assert_eq!(view(&[("b:1", replica)]), None);
    assert_eq!(view(&[]), None);
}

fn any_frame() -> impl Strategy<Value = Frame> {
    let word = prop_oneof![
        "(ip|port|flags|config-epoch|master|slave|sentinel|s_down|[0-9]{0,6}|[a-z.:?]{0,9})"
            .prop_map(|text| bulk(&text)),
        any::<i64>().prop_map(Frame::Integer),
        Just(Frame::Null),
    ];
    word.prop_recursive(3, 40, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Frame::Array),
            prop::collection::vec((inner.clone(), inner), 0..5).prop_map(Frame::Map),
        ]
    })
}

proptest! {
    #[test]
    fn no_reply_panics_and_what_is_agreed_was_said(frames in prop::collection::vec(any_frame(), 1..5)) {
        let answers: Vec<SentinelView> = frames
            .iter()
            .map(|frame| {
                let mut view = SentinelView::default();
                let _ = view.take_primary(frame);
                view.take_details(frame);
                view.take_replicas(frame);
                view.take_sentinels(frame);
                let _ = RoleReply::parse(frame);
                view
            })
            .collect();
        let _ = agree_on_primary(&answers);
    }

    #[test]
    fn the_primary_is_one_that_was_named_with_the_highest_epoch(
        told in prop::collection::vec((0_u8..4, 0_u64..4), 1..7),
    ) {
        let answers: Vec<SentinelView> = told
            .iter()
            .map(|(host, epoch)| SentinelView {
                primary: Address::new(&format!("node-{host}"), 1),
                epoch: Some(*epoch),
                ..SentinelView::default()
            })
            .collect();
        let (view, epoch) = agree_on_primary(&answers).unwrap();
        let primary = view.topology.nodes[0].address.clone();
        prop_assert_eq!(epoch, answers.iter().map(|answer| answer.epoch).max().unwrap());
        prop_assert!(answers.iter().any(|answer| answer.primary == primary && answer.epoch == epoch));
    }

    #[test]
    fn no_message_panics(channel in "(\\+switch-master|\\+sdown|[a-z+-]{0,8})", payload in "[a-z0-9:@. ]{0,60}") {
        let _ = primary_of_event(channel.as_bytes(), payload.as_bytes());
    }
}
