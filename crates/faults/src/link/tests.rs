//! What passes a link, byte for byte, in virtual time.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use towline_sansio::Instant;

use super::*;
use crate::plan::{Dialed, Plan};
use crate::rule::Direction::{self, ClientToServer as C2S, ServerToClient as S2C};

/// The link of the first connection under these rules.
fn link(rules: &[&str]) -> Link {
    let rules = rules.iter().map(|rule| rule.parse().unwrap()).collect();
    let mut plan = Plan::new(Instant::ZERO, 1, rules).unwrap();
    match plan.dial(Instant::ZERO).outcome {
        Dialed::Open(link) => *link,
        Dialed::Faulty(fault) => panic!("{fault:?}"),
    }
}

fn ms(count: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(count)
}

/// What a link does at one instant, as text: `c2s bytes`, `end c2s`, `close both fin`, `! cut`.
fn actions(link: &mut Link, now: Instant) -> Vec<String> {
    let text = |action| match action {
        Action::Forward { direction, bytes } => {
            format!("{} {}", direction.name(), String::from_utf8_lossy(&bytes))
        }
        Action::Finish { direction } => format!("end {}", direction.name()),
        Action::Close { side, how } => format!("close {} {how:?}", side.name()).to_lowercase(),
        Action::Fault(fired) => format!("! {} {}", fired.fault.name(), fired.offset),
    };
    std::iter::from_fn(|| link.poll(now)).map(text).collect()
}

#[test]
fn a_clear_link_passes_everything_and_both_ends() {
    let mut link = Link::clear(1);
    assert_eq!(link.push(ms(0), C2S, b"abc"), 3);
    link.push(ms(0), S2C, b"xyz");
    link.finish(ms(0), C2S, Close::Fin);
    assert_eq!(actions(&mut link, ms(0)), ["c2s abc", "end c2s", "s2c xyz"]);
    assert!(!link.is_over());
    link.finish(ms(1), S2C, Close::Fin);
    assert_eq!(actions(&mut link, ms(1)), ["end s2c"]);
    assert!(link.is_over());
    assert_eq!(link.poll_timeout(), None);
}

#[test]
fn a_cut_lets_exactly_its_bytes_pass() {
    for at in 0..=5 {
        let mut link = link(&[&format!("cut@s2c:{at}")]);
        link.push(ms(0), S2C, b"ab");
        link.push(ms(0), S2C, b"cdefg");
        let done = actions(&mut link, ms(0)).join(" ");
        let passed: String = done.split(' ').filter(|word| "abcdefg".contains(word)).collect();
        assert_eq!(passed, "abcdefg"[..at]);
        assert!(done.ends_with(&format!("! cut {at} close both fin")), "{done}");
        assert!(link.is_over() && link.room(C2S) == 0 && link.push(ms(0), C2S, b"x") == 0);
    }
}

#[test]
fn one_side_alone_is_closed_and_the_other_goes_nowhere() {
    let mut link = link(&["reset@c2s:2,side=client"]);
    link.push(ms(0), C2S, b"abcd");
    assert_eq!(actions(&mut link, ms(0)), ["c2s ab", "! reset 2", "close client reset"]);
    assert_eq!(link.push(ms(1), S2C, b"reply"), 5);
    assert!(actions(&mut link, ms(1)).is_empty());
    assert!(!link.is_over());
    link.finish(ms(2), S2C, Close::Fin);
    assert!(actions(&mut link, ms(2)).is_empty());
    assert!(link.is_over());
}

#[test]
fn a_stall_holds_one_direction_and_pushes_back() {
    let mut link = link(&["stall@c2s:2/10ms"]);
    assert_eq!(link.push(ms(0), C2S, &[b'a'; BUFFER_BYTES_MAX]), BUFFER_BYTES_MAX);
    assert_eq!(actions(&mut link, ms(0)), ["c2s aa", "! stall 2"]);
    assert_eq!(link.push(ms(0), C2S, b"bbbb"), 2, "the buffer is full");
    assert_eq!(link.room(C2S), 0);
    link.push(ms(1), S2C, b"x");
    assert_eq!(actions(&mut link, ms(1)), ["s2c x"]);
    assert_eq!(link.poll_timeout(), Some(ms(10)));
    assert!(actions(&mut link, ms(9)).is_empty());
    assert_eq!(actions(&mut link, ms(10)).len(), 2);
    assert_eq!(link.passed(C2S), BUFFER_BYTES_MAX as u64 + 2);
}

#[test]
fn a_stall_for_ever_ends_only_with_the_connection() {
    let mut link = link(&["stall@s2c:0", "cut@c2s:after:5ms"]);
    link.push(ms(0), S2C, b"x");
    link.finish(ms(0), S2C, Close::Fin);
    assert_eq!(actions(&mut link, ms(0)), ["! stall 0"]);
    assert_eq!(link.poll_timeout(), Some(ms(5)));
    assert_eq!(actions(&mut link, ms(5)), ["! cut 0", "close both fin"]);
}

#[test]
fn of_two_faults_at_one_place_the_second_waits_for_the_stall() {
    let mut link = link(&["stall@c2s:1/3ms", "reset@c2s:1"]);
    link.push(ms(0), C2S, b"ab");
    assert_eq!(actions(&mut link, ms(0)), ["c2s a", "! stall 1"]);
    assert_eq!(link.poll_timeout(), Some(ms(3)));
    assert_eq!(actions(&mut link, ms(3)), ["! reset 1", "close both reset"]);
}

#[test]
fn a_split_delivers_in_pieces_with_pauses() {
    let mut link = link(&["split@c2s:1/1+3,gap=2ms"]);
    link.push(ms(0), C2S, b"abcdefg");
    assert_eq!(actions(&mut link, ms(0)), ["c2s a", "! split 1", "c2s b"]);
    assert_eq!(link.poll_timeout(), Some(ms(2)));
    assert_eq!(actions(&mut link, ms(2)), ["c2s cde"]);
    assert_eq!(actions(&mut link, ms(4)), ["c2s f"]);
    link.finish(ms(4), C2S, Close::Fin);
    assert_eq!(actions(&mut link, ms(6)), ["c2s g", "end c2s"]);
}

#[test]
fn a_delay_shifts_every_byte_without_slowing_the_flow() {
    let mut link = link(&["delay@s2c:0/10ms"]);
    actions(&mut link, ms(0));
    link.push(ms(1), S2C, b"a");
    link.push(ms(2), S2C, b"b");
    assert!(actions(&mut link, ms(10)).is_empty());
    assert_eq!(link.poll_timeout(), Some(ms(11)));
    assert_eq!(actions(&mut link, ms(11)), ["s2c a"]);
    assert_eq!(actions(&mut link, ms(12)), ["s2c b"]);
}

#[test]
fn a_half_open_link_is_silent_until_its_time_is_over() {
    let mut link = link(&["halfopen@c2s:3", "reset@after:50ms"]);
    link.push(ms(0), C2S, b"abcdef");
    assert_eq!(actions(&mut link, ms(0)), ["c2s abc", "! halfopen 3"]);
    assert!(link.is_silent());
    assert_eq!((link.room(C2S), link.room(S2C)), (0, 0));
    assert_eq!(link.push(ms(1), S2C, b"x"), 0);
    link.finish(ms(1), C2S, Close::Reset);
    assert!(actions(&mut link, ms(1)).is_empty(), "the server does not learn of it");
    assert_eq!(link.poll_timeout(), Some(ms(50)));
    let last = actions(&mut link, ms(50));
    assert_eq!(last.last().unwrap(), "close both reset");
}

#[test]
fn swallowed_bytes_count_and_do_not_arrive() {
    let mut link = link(&["swallow@c2s:2", "cut@c2s:5"]);
    link.push(ms(0), C2S, b"abcdef");
    assert_eq!(actions(&mut link, ms(0)), ["c2s ab", "! swallow 2", "! cut 5", "close both fin"]);
}

#[test]
fn garbage_is_inserted_at_its_place() {
    let mut link = link(&["garbage@s2c:2/2121", "garbage@s2c:3/rand:4"]);
    link.push(ms(0), S2C, b"abcd");
    let done = actions(&mut link, ms(0));
    assert_eq!(done[..5], ["s2c ab", "! garbage 2", "s2c !!", "s2c c", "! garbage 3"]);
    assert_eq!(done.last().unwrap(), "s2c d");
    assert_eq!(link.passed(S2C), 4);
}

#[test]
fn a_reset_of_the_sender_is_passed_on_behind_its_bytes() {
    let mut link = link(&["delay@c2s:0/5ms"]);
    actions(&mut link, ms(0));
    link.push(ms(0), C2S, b"a");
    link.finish(ms(0), C2S, Close::Reset);
    assert!(actions(&mut link, ms(4)).is_empty());
    assert_eq!(actions(&mut link, ms(5)), ["c2s a", "close server reset"]);
    assert!(link.is_over());
}

#[test]
fn closing_from_outside_drops_what_waits() {
    let mut link = link(&["stall@c2s:0"]);
    link.push(ms(0), C2S, b"a");
    actions(&mut link, ms(0));
    link.close(Close::Reset);
    link.close(Close::Fin);
    assert_eq!(actions(&mut link, ms(0)), ["close both reset"]);
    assert!(link.is_over());
}

#[test]
fn both_directions_suffer_and_each_has_its_own_place() {
    let mut link = link(&["delay@both:1/10ms"]);
    link.push(ms(0), C2S, b"ab");
    link.push(ms(0), S2C, b"xy");
    assert_eq!(actions(&mut link, ms(0)), ["c2s a", "! delay 1", "s2c x", "! delay 1"]);
    assert_eq!(actions(&mut link, ms(10)), ["c2s b", "s2c y"]);
}

#[test]
fn jitter_varies_a_delay_around_its_time_and_keeps_order() {
    let mut link = link(&["delay@s2c:0/10ms,jitter=4ms"]);
    actions(&mut link, ms(0));
    let mut times = Vec::new();
    for round in 0..200_u64 {
        link.push(ms(100 * round), S2C, b"x");
        let at = link.poll_timeout().unwrap();
        assert_eq!(actions(&mut link, at), ["s2c x"]);
        times.push(at.since(ms(100 * round)));
    }
    let (least, most) = (times.iter().min().unwrap(), times.iter().max().unwrap());
    assert!((6000..7000).contains(&least.as_micros()), "{least:?}");
    assert!((13_000..14_001).contains(&most.as_micros()), "{most:?}");
    // What comes behind something late is not earlier.
    for text in ["a", "b", "c", "d", "e", "f", "g"] {
        link.push(ms(50_000), S2C, text.as_bytes());
    }
    let mut order = Vec::new();
    while let Some(at) = link.poll_timeout() {
        order.extend(actions(&mut link, at));
    }
    assert_eq!(order.join(" "), "s2c a s2c b s2c c s2c d s2c e s2c f s2c g");
}

#[test]
fn jitter_beyond_the_delay_is_no_delay_at_least() {
    let mut link = link(&["delay@s2c:0/1ms,jitter=50ms"]);
    actions(&mut link, ms(0));
    for round in 0..50_u64 {
        link.push(ms(100 * round), S2C, b"x");
        assert!(link.poll_timeout().unwrap() >= ms(100 * round));
        actions(&mut link, ms(100 * round + 51));
    }
}

#[test]
fn a_rate_lets_so_many_bytes_a_second_pass() {
    let mut link = link(&["rate@c2s:0/100k"]);
    let all = vec![b'x'; 200_000];
    let (mut now, mut sent) = (ms(0), 0);
    while link.passed(C2S) < 200_000 {
        sent += link.push(now, C2S, &all[sent..]);
        actions(&mut link, now);
        // A driver whose timers are late by up to two milliseconds.
        let at = link.poll_timeout().unwrap_or(now);
        now = at + Duration::from_millis(2);
    }
    let took = now.since(ms(0)).as_millis();
    assert!((1950..2060).contains(&took), "{took} ms for two seconds' worth");
}

#[test]
fn a_slow_rate_trickles_and_an_idle_line_saves_nothing_up() {
    let mut link = link(&["rate@c2s:0/200"]);
    actions(&mut link, ms(0));
    // Idle for ten seconds: no more than what ten milliseconds may save passes at once.
    link.push(ms(10_000), C2S, b"abcdefgh");
    assert_eq!(actions(&mut link, ms(10_000)), ["c2s ab", "c2s cd"]);
    assert_eq!(link.poll_timeout(), Some(ms(10_010)));
    assert_eq!(actions(&mut link, ms(10_010)), ["c2s ef"]);
}

/// Drives a link to its end: what came out in one direction, and how it ended.
fn drain(link: &mut Link, pieces: &[Vec<u8>], direction: Direction) -> (Vec<u8>, bool) {
    let (mut now, mut out, mut is_closed) = (Instant::ZERO, Vec::new(), false);
    let mut waiting: VecDeque<u8> = pieces.concat().into();
    let mut sizes = pieces.iter().map(Vec::len);
    loop {
        let size = sizes.next().unwrap_or(usize::MAX).min(waiting.len());
        let bytes: Vec<u8> = waiting.iter().copied().take(size).collect();
        let taken = link.push(now, direction, &bytes);
        waiting.drain(..taken);
        if waiting.is_empty() {
            link.finish(now, direction, Close::Fin);
        }
        while let Some(action) = link.poll(now) {
            match action {
                Action::Forward { bytes, .. } => out.extend_from_slice(&bytes),
                Action::Close { .. } => is_closed = true,
                Action::Finish { .. } => return (out, is_closed),
                Action::Fault(_) => {}
            }
        }
        if is_closed {
            return (out, is_closed);
        }
        now = link.poll_timeout().unwrap_or(now).max(now);
    }
}

proptest! {
    #[test]
    fn slow_faults_lose_and_change_nothing(
        pieces in vec(vec(any::<u8>(), 0..50), 0..10),
        rules in vec((0..5_usize, 0..100_u64, 1..20_u64), 0..5),
    ) {
        let rules: Vec<String> = rules.into_iter().map(|(kind, at, argument)| match kind {
            0 => format!("stall@c2s:{at}/{argument}ms"),
            1 => format!("split@c2s:{at}/{argument}+1,gap={argument}us"),
            2 => format!("rate@both:{at}/{argument}k"),
            3 => format!("delay@c2s:{at}/{argument}ms,jitter={at}ms"),
            _ => format!("delay@c2s:rand:{at}..{}/{argument}ms", at + argument),
        }).collect();
        let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
        let (out, is_closed) = drain(&mut link(&rules), &pieces, C2S);
        prop_assert_eq!(out, pieces.concat());
        prop_assert!(!is_closed);
    }

    #[test]
    fn a_cut_behind_slow_faults_is_exact(
        pieces in vec(vec(any::<u8>(), 0..50), 0..10),
        at in 0..200_usize,
        slow in 0..200_u64,
    ) {
        let whole = pieces.concat();
        let rules = [format!("stall@s2c:{slow}/1ms"), format!("cut@s2c:{at}"), format!("split@s2c:{slow}/3")];
        let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
        let (out, is_closed) = drain(&mut link(&rules), &pieces, S2C);
        prop_assert_eq!(&out[..], &whole[..at.min(whole.len())]);
        prop_assert!(is_closed == (at <= whole.len()));
    }
}
