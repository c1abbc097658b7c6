//! Every message survives the wire; nothing else does.

use super::*;
use proptest::prelude::*;

fn queue_pair() -> impl Strategy<Value = QueuePair> {
    (any::<u16>(), 0..Psn::MODULUS, any::<u32>(), any::<u16>(), any::<[u8; 16]>()).prop_map(
        |(rail, qpn, psn, lid, gid)| QueuePair { rail, qpn: Qpn(qpn), psn: Psn::new(psn), lid, gid },
    )
}

fn process() -> impl Strategy<Value = Process> {
    (any::<u128>(), any::<u64>())
        .prop_map(|(node, life)| Process { node: NodeId(node), incarnation: Incarnation(life) })
}

fn hello() -> impl Strategy<Value = Message> {
    let numbers =
        (any::<u128>(), any::<Option<u64>>(), any::<u16>(), any::<u64>(), any::<u64>(), any::<u64>());
    (process(), numbers, any::<Option<u64>>(), any::<bool>(), prop::collection::vec(queue_pair(), 0..20))
        .prop_map(|(from, (to, life, lane, attempt, nonce, patience), ticket, is_insisting, queue_pairs)| {
            Message::Hello(Hello {
                from,
                to: NodeId(to),
                to_incarnation: life.map(Incarnation),
                lane: Lane(lane),
                attempt: Attempt(attempt),
                nonce,
                patience: Duration::from_nanos(patience),
                ticket,
                is_insisting,
                queue_pairs,
            })
        })
}

fn welcome() -> impl Strategy<Value = Message> {
    (process(), process(), any::<[u64; 4]>(), prop::collection::vec(queue_pair(), 0..20)).prop_map(
        |(from, to, [attempt, echo, nonce, abandoned], queue_pairs)| {
            let (attempt, abandoned) = (Attempt(attempt), Attempt(abandoned));
            Message::Welcome(Welcome { from, to, attempt, echo, nonce, abandoned, queue_pairs })
        },
    )
}

fn message() -> impl Strategy<Value = Message> {
    let attempt = || any::<u64>().prop_map(Attempt);
    prop_oneof![
        hello(),
        welcome(),
        (attempt(), any::<u64>(), any::<Option<u64>>()).prop_map(|(attempt, nanos, ticket)| Message::Busy {
            attempt,
            retry_after: Duration::from_nanos(nanos),
            ticket
        }),
        attempt().prop_map(|attempt| Message::UseMine { attempt }),
        (attempt(), prop::sample::select(REASONS.to_vec()))
            .prop_map(|(attempt, reason)| Message::Reject { attempt, reason }),
        (attempt(), any::<u64>()).prop_map(|(attempt, nonce)| Message::Confirm { attempt, nonce }),
        process().prop_map(|from| Message::Bye { from }),
    ]
}

proptest! {
    #[test]
    fn every_message_comes_back_from_its_bytes_and_from_no_prefix_of_them(message in message()) {
        let mut bytes = Vec::new();
        let tag = encode(&message, &mut bytes);
        prop_assert_eq!(tag.end, bytes.len());
        bytes[tag.clone()].fill(7);
        let frame = Frame::parse(&bytes).unwrap().unwrap();
        prop_assert_eq!(&frame.message, &message);
        prop_assert_eq!(frame.length, bytes.len());
        prop_assert_eq!(frame.tag, &[7; TAG_LEN]);
        prop_assert_eq!(frame.signed, &bytes[..tag.start]);
        for cut in 0..bytes.len() {
            prop_assert_eq!(Frame::parse(&bytes[..cut]), Ok(None));
        }
    }

    #[test]
    fn garbage_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200), message in message(), at in any::<usize>(), byte in any::<u8>()) {
        let _ = Frame::parse(&bytes);
        let mut bytes = Vec::new();
        encode(&message, &mut bytes);
        let at = at % bytes.len();
        bytes[at] = byte;
        // One message has one form: what parses as it was has the bytes that it had.
        if let Ok(Some(frame)) = Frame::parse(&bytes) {
            let mut again = Vec::new();
            let tag = encode(&frame.message, &mut again);
            prop_assert_eq!(&again[..tag.start], frame.signed);
        }
    }
}

#[test]
fn the_largest_hello_fits_and_one_more_queue_pair_is_refused() {
    let queue_pair = QueuePair { rail: 1, qpn: Qpn(2), psn: Psn::new(3), lid: 4, gid: [5; 16] };
    let mut out = Vec::new();
    write_queue_pairs(&[queue_pair; QUEUE_PAIRS_MAX], &mut out);
    assert!(out.len() + 200 < BODY_MAX);
    assert!(Reader { bytes: &out }.queue_pairs().is_some());
    out.clear();
    write_queue_pairs(&[queue_pair; QUEUE_PAIRS_MAX + 1], &mut out);
    assert_eq!(Reader { bytes: &out }.queue_pairs(), None);
}

#[test]
fn a_giant_length_another_version_and_another_protocol_are_refused_from_the_first_bytes() {
    let mut bytes = Vec::new();
    encode(&Message::UseMine { attempt: Attempt(1) }, &mut bytes);
    let mut giant = bytes[..HEADER_LEN].to_vec();
    giant[8..].copy_from_slice(&u32::MAX.to_be_bytes());
    assert_eq!(Frame::parse(&giant), Err(WireError::TooLong { length: u32::MAX }));
    bytes[4] = 2;
    assert_eq!(Frame::parse(&bytes), Err(WireError::Version { version: 2 }));
    assert_eq!(Frame::parse(b"G"), Err(WireError::NotHandshake));
    assert_eq!(Frame::parse(b"*1\r\n$4\r\nPING\r\n"), Err(WireError::NotHandshake));
    assert_eq!(Frame::parse(b"TWLX\x01\x09\0\0\0\0\0\0"), Err(WireError::Kind { kind: 9 }));
    assert_eq!(Frame::parse(b""), Ok(None));
}
