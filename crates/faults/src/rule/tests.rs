//! Rules survive their text form, and mistakes are named.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::*;

fn time() -> impl Strategy<Value = Duration> {
    prop_oneof![0..5_u64, 0..10_000_000_u64, (0..100_000_u64).prop_map(|seconds| seconds * 1_000_000)]
        .prop_map(Duration::from_micros)
}

fn side() -> impl Strategy<Value = Side> {
    prop_oneof![Just(Side::Both), Just(Side::Client), Just(Side::Server)]
}

fn scope() -> impl Strategy<Value = Scope> {
    let nth = (1..100_u64, option::of(0..100_u64));
    (nth, option::of(1..u64::MAX), 1..=100_u8, time(), option::of(1..1_000_000_u64)).prop_map(
        |((nth_first, more), count, chance_percent, from, length)| Scope {
            nth_first,
            nth_last: more.map(|more| nth_first + more),
            count,
            chance_percent,
            from,
            until: length.map(|length| from + Duration::from_micros(length)),
        },
    )
}

fn fault() -> impl Strategy<Value = StreamFault> {
    let sizes = vec((1..u32::MAX).prop_map(|size| NonZeroU32::new(size).unwrap()), 1..=SPLIT_SIZES_MAX);
    prop_oneof![
        side().prop_map(|side| StreamFault::Cut { side }),
        side().prop_map(|side| StreamFault::Reset { side }),
        option::of(time()).prop_map(StreamFault::Stall),
        (sizes, time()).prop_map(|(sizes, gap)| StreamFault::Split { sizes, gap }),
        (time(), time()).prop_map(|(time, jitter)| StreamFault::Delay { time, jitter }),
        (1..u64::MAX).prop_map(|rate| StreamFault::Rate(NonZeroU64::new(rate).unwrap())),
        (1..9_u64).prop_map(|rate| StreamFault::Rate(NonZeroU64::new(rate * 500_000).unwrap())),
        Just(StreamFault::HalfOpen),
        Just(StreamFault::Swallow),
        vec(any::<u8>(), 1..100).prop_map(|bytes| StreamFault::Garbage(Garbage::Exact(bytes.into()))),
        (1..=GARBAGE_BYTES_MAX as u32).prop_map(|length| StreamFault::Garbage(Garbage::Random(length))),
    ]
}

fn trigger() -> impl Strategy<Value = Trigger> {
    prop_oneof![
        any::<u64>().prop_map(Trigger::Offset),
        (0..1000_u64, 0..1000_u64).prop_map(|(first, more)| Trigger::Random { first, last: first + more }),
        any::<u64>().prop_map(Trigger::Mean),
        time().prop_map(Trigger::After),
    ]
}

fn rule() -> impl Strategy<Value = Rule> {
    let way = prop_oneof![
        Just(Way::Drawn),
        Just(Way::Both),
        Just(Way::One(Direction::ClientToServer)),
        Just(Way::One(Direction::ServerToClient))
    ];
    let stream = (fault(), way, trigger(), scope())
        .prop_map(|(fault, way, trigger, scope)| Rule::Stream(StreamRule { fault, way, trigger, scope }));
    let dial = (0..4_usize, scope())
        .prop_map(|(index, scope)| Rule::Dial(DialRule { fault: DialFault::ALL[index], scope }));
    let answers = vec((time(), vec(any::<IpAddr>(), 0..3)), 1..4);
    let dns = ("[a-z][a-z.-]{0,20}", answers).prop_map(|(name, mut answers)| {
        answers.sort_by_key(|(since, _)| *since);
        answers.dedup_by_key(|(since, _)| *since);
        Rule::Dns(DnsRule { name, answers })
    });
    prop_oneof![4 => stream, 1 => dial, 1 => dns]
}

proptest! {
    #[test]
    fn every_rule_survives_its_text(rule in rule()) {
        let text = rule.to_string();
        prop_assert_eq!(text.parse::<Rule>(), Ok(rule), "{}", text);
    }

    #[test]
    fn no_text_panics(text in "\\PC{0,60}", words in vec("[a-z]{1,6}|@|:|/|,|=|\\.\\.|[0-9]{1,30}|[+|%]", 0..12)) {
        let _ = text.parse::<Rule>();
        let text: String = words.concat();
        if let Ok(rule) = text.parse::<Rule>() {
            prop_assert_eq!(rule.to_string().parse::<Rule>(), Ok(rule));
        }
    }
}

#[test]
fn mistakes_are_named() {
    let cases = [
        ("cut", "no `@`"),
        ("", "no `@`"),
        ("cutt@c2s:1", "unknown fault `cutt`"),
        ("cut@c2s", "bad place `c2s`"),
        ("cut@c2s:", "bad place"),
        ("cut@c2s:-1", "bad place"),
        ("cut@c2s:+1", "bad place"),
        ("cut@up:1", "bad place"),
        ("cut@c2s:rand:5", "bad place"),
        ("cut@c2s:rand:5..4", "empty range `5..4`"),
        ("cut@c2s:rand:x..4", "bad number `x`"),
        ("cut@after:5", "bad time `5`"),
        ("cut@after:5h", "bad time `5h`"),
        ("stall@0/99999999999999999999s", "bad time"),
        ("stall@0/18446744073709551615s", "bad time"),
        ("cut@c2s:1/2", "`cut` takes no argument"),
        ("split@c2s:1", "`split` needs an argument"),
        ("split@c2s:1/0", "bad sizes"),
        ("split@c2s:1/1+", "bad sizes"),
        ("delay@c2s:1", "`delay` needs an argument"),
        ("garbage@c2s:1/abc", "bad garbage"),
        ("garbage@c2s:1/zz", "bad garbage"),
        ("garbage@c2s:1/rand:0", "bad garbage"),
        ("garbage@c2s:1/rand:65537", "bad garbage"),
        ("refuse@c2s:1", "write refuse@dial"),
        ("busy@dial/1s", "`busy` takes no argument"),
        ("cut@dial", "bad place `dial`"),
        ("cut@1,nth=0", "bad number `0`"),
        ("cut@1,nth=5..4", "empty range"),
        ("cut@1,count=0", "bad number `0`"),
        ("cut@1,count=1,count=2", "option `count` is given twice"),
        ("cut@1,chance=0%", "bad chance"),
        ("cut@1,chance=50", "bad chance"),
        ("cut@1,during=1s", "bad time"),
        ("cut@1,during=2s..1s", "empty range"),
        ("cut@1,side=left", "bad side `left`"),
        ("cut@c2s:mean:x", "bad number `x`"),
        ("rate@c2s:0", "`rate` needs an argument"),
        ("rate@c2s:0/0", "bad rate `0`"),
        ("rate@c2s:0/5K", "bad rate `5K`"),
        ("rate@c2s:0/99999999999999999999k", "bad rate"),
        ("stall@1,jitter=1s", "option `jitter` means nothing to `stall`"),
        ("stall@1,side=client", "option `side` means nothing to `stall`"),
        ("refuse@dial,gap=1s", "option `gap` means nothing to `refuse`"),
        ("cut@1,often", "unknown option `often`"),
        ("cut@1,", "unknown option ``"),
        ("dns@a", "`dns` needs an argument"),
        ("dns@/0s=none", "bad place"),
        ("dns@a/0s", "bad answer"),
        ("dns@a/0s=x", "bad answer"),
        ("dns@a/1s=none+1s=none", "bad answer"),
    ];
    for (text, expected) in cases {
        let error = text.parse::<Rule>().unwrap_err().to_string();
        assert!(error.starts_with(&format!("rule `{text}`: ")), "{error}");
        assert!(error.contains(expected), "{text}: {error}");
        assert!(!error.contains('\n'));
    }
}

#[test]
fn times_are_written_in_their_largest_exact_unit() {
    let text = |text: &str| text.parse::<Rule>().unwrap().to_string();
    assert_eq!(text("stall@0/2m"), "stall@0/120s");
    assert_eq!(text("stall@0/1500000us"), "stall@0/1500ms");
    assert_eq!(text("delay@s2c:after:0ms/1us"), "delay@s2c:after:0s/1us");
}
