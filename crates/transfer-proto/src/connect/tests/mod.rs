//! One process, and a test that plays its peer word by word. Fleets are in `storm/tests`.

mod initiator;
mod target;

use std::time::Duration;

use towline_sansio::{Instant, Prng};

use super::*;
use crate::identity::{Lane, Psn, Qpn, QueuePair};
use crate::wire::{Hello, Welcome};

const MS: Duration = Duration::from_millis(1);
const ME: NodeId = NodeId(50);
/// Sorts before this process: its HELLO gives way.
const LOW: NodeId = NodeId(10);
/// Sorts behind it.
const HIGH: NodeId = NodeId(90);
const NONCE: u64 = 77;

fn process(node: NodeId, life: u64) -> Process {
    Process { node, incarnation: Incarnation(life) }
}

fn queue_pair(number: u32) -> QueuePair {
    QueuePair { rail: 0, qpn: Qpn(number), psn: Psn::new(number), lid: 0, gid: [0; 16] }
}

fn key(node: NodeId) -> LinkKey {
    LinkKey { node, lane: Lane(0) }
}

/// The process under test.
struct Solo {
    process: Connections,
    now: Instant,
}

impl Solo {
    fn new() -> Self {
        Self::with(ConnectConfig::ENGINE, Guards::ALL)
    }

    fn without(switch: fn(&mut Guards)) -> Self {
        let mut guards = Guards::ALL;
        switch(&mut guards);
        Self::with(ConnectConfig::ENGINE, guards)
    }

    fn with(config: ConnectConfig, guards: Guards) -> Self {
        let process = Connections::new(process(ME, 1), config, Prng::new(1)).unwrap().with_guards(guards);
        Self { process, now: Instant::ZERO + Duration::from_secs(100) }
    }

    fn outputs(&mut self) -> Vec<Output> {
        std::iter::from_fn(|| self.process.poll()).collect()
    }

    fn wait(&mut self, time: Duration) -> Vec<Output> {
        let until = self.now + time;
        let mut outputs = self.outputs();
        while let Some(at) = self.process.next_timeout().filter(|at| *at <= until) {
            self.now = self.now.max(at);
            self.process.handle_timeout(self.now);
            outputs.extend(self.outputs());
        }
        self.now = until;
        outputs
    }

    fn hello(&self, node: NodeId, life: u64, attempt: u64) -> Hello {
        Hello {
            from: process(node, life),
            to: ME,
            to_incarnation: None,
            lane: Lane(0),
            attempt: Attempt(attempt),
            nonce: NONCE,
            patience: Duration::from_secs(2),
            ticket: None,
            is_insisting: false,
            queue_pairs: vec![queue_pair(1)],
        }
    }

    /// A new connection on which this is said.
    fn hear(&mut self, hello: Hello) -> ConnId {
        let conn = self.process.accepted(self.now).unwrap();
        self.process.received(self.now, conn, Message::Hello(hello));
        conn
    }

    /// The driver has made the queue pairs that were asked for; what follows.
    fn make(&mut self, outputs: &[Output]) -> Vec<Output> {
        for output in outputs {
            if let Output::Serve { link, psns, .. } | Output::Offer { link, psns, .. } = output {
                let made = (5..).zip(psns).map(|(number, psn)| QueuePair { psn: *psn, ..queue_pair(number) });
                self.process.made(self.now, *link, Ok(made.collect()));
            }
        }
        self.outputs()
    }

    fn activate(&mut self, outputs: &[Output]) -> Vec<Output> {
        for output in outputs {
            if let Output::Activate { link, .. } = output {
                self.process.activated(self.now, *link, Ok(()));
            }
        }
        self.outputs()
    }

    /// A peer's handshake up to the WELCOME.
    fn serve(&mut self, hello: Hello) -> (ConnId, Welcome) {
        let conn = self.hear(hello);
        let outputs = self.outputs();
        let outputs = self.make(&outputs);
        (conn, welcome(&outputs).expect("it is served"))
    }

    /// A peer's handshake to its end.
    fn link(&mut self, hello: Hello) -> LinkId {
        let (conn, welcome) = self.serve(hello);
        let confirm = Message::Confirm { attempt: welcome.attempt, nonce: welcome.nonce };
        self.process.received(self.now, conn, confirm);
        let outputs = self.outputs();
        let outputs = self.activate(&outputs);
        ready(&outputs).expect("it is confirmed")
    }

    /// Our own handshake up to the HELLO.
    fn ask(&mut self, node: NodeId) -> (ConnId, Hello) {
        self.process.want(self.now, key(node), 1).unwrap();
        self.go_on_asking()
    }

    fn go_on_asking(&mut self) -> (ConnId, Hello) {
        let outputs = self.outputs();
        let conn = dialed(&outputs).expect("it dials");
        self.process.dialed(self.now, conn);
        let outputs = self.outputs();
        let outputs = self.make(&outputs);
        (conn, hello(&outputs).expect("it asks"))
    }

    fn answer(&mut self, hello: &Hello, node: NodeId, life: u64) -> Welcome {
        Welcome {
            from: process(node, life),
            to: hello.from,
            attempt: hello.attempt,
            echo: hello.nonce,
            nonce: NONCE,
            abandoned: Attempt(0),
            queue_pairs: vec![queue_pair(1)],
        }
    }
}

fn dialed(outputs: &[Output]) -> Option<ConnId> {
    outputs.iter().find_map(|output| match output {
        Output::Dial { conn, .. } => Some(*conn),
        _ => None,
    })
}

fn messages(outputs: &[Output]) -> impl Iterator<Item = &Message> {
    outputs.iter().filter_map(|output| match output {
        Output::Send { message, .. } => Some(message),
        _ => None,
    })
}

fn hello(outputs: &[Output]) -> Option<Hello> {
    messages(outputs).find_map(|message| match message {
        Message::Hello(hello) => Some(hello.clone()),
        _ => None,
    })
}

fn welcome(outputs: &[Output]) -> Option<Welcome> {
    messages(outputs).find_map(|message| match message {
        Message::Welcome(welcome) => Some(welcome.clone()),
        _ => None,
    })
}

fn ready(outputs: &[Output]) -> Option<LinkId> {
    outputs.iter().find_map(|output| match output {
        Output::Ready { link, .. } => Some(*link),
        _ => None,
    })
}

fn rejected(outputs: &[Output]) -> Option<crate::wire::RejectReason> {
    messages(outputs).find_map(|message| match message {
        Message::Reject { reason, .. } => Some(*reason),
        _ => None,
    })
}

fn down(outputs: &[Output]) -> Option<DownCause> {
    outputs.iter().find_map(|output| match output {
        Output::Down { cause, .. } => Some(*cause),
        _ => None,
    })
}

#[test]
fn numbers_that_would_wait_for_ever_are_refused() {
    let base = ConnectConfig::ENGINE;
    let zero = Duration::ZERO;
    for config in [
        ConnectConfig { dial_timeout: zero, ..base },
        ConnectConfig { reply_timeout: zero, ..base },
        ConnectConfig { confirm_timeout: zero, ..base },
        ConnectConfig { yield_timeout: zero, ..base },
        ConnectConfig { appointment_max: zero, ..base },
        ConnectConfig { connections_max: 0, ..base },
        ConnectConfig { peers_max: 0, ..base },
        ConnectConfig { lanes_max: 0, ..base },
        ConnectConfig {
            limiter: towline_admission::LimiterConfig { per_process: 0, ..base.limiter },
            ..base
        },
        ConnectConfig { limiter: towline_admission::LimiterConfig { per_target: 0, ..base.limiter }, ..base },
        ConnectConfig { queue: towline_admission::QueueConfig { workers: 0, ..base.queue }, ..base },
        ConnectConfig { breaker: towline_admission::BreakerConfig { failures: 0, ..base.breaker }, ..base },
    ] {
        assert!(Connections::new(process(ME, 1), config, Prng::new(1)).is_err(), "{config:?}");
    }
}

#[test]
fn whatever_happens_to_an_attempt_its_permit_comes_back() {
    // Every way out, at every step, drawn at random; without the rule the permits are gone after sixteen.
    for (guards, is_sound) in [(Guards::ALL, true), (Guards { permits: false, ..Guards::ALL }, false)] {
        let mut leaks = 0;
        for seed in 0..200 {
            leaks += u32::from(leaks_a_permit(seed, guards));
        }
        assert_eq!(leaks == 0, is_sound, "{leaks} of 200 histories leak");
    }
}

fn leaks_a_permit(seed: u64, guards: Guards) -> bool {
    let mut prng = Prng::new(seed);
    let mut solo = Solo::with(ConnectConfig::ENGINE, guards);
    let mut conns: Vec<ConnId> = Vec::new();
    let mut links: Vec<LinkId> = Vec::new();
    for _ in 0..100 {
        let node = NodeId(u128::from(prng.below(6)));
        match prng.below(12) {
            0..3 => drop(solo.process.want(solo.now, key(node), 1)),
            3 => solo.process.unwant(solo.now, key(node)),
            4 if !conns.is_empty() => {
                let conn = conns.swap_remove(prng.below(conns.len() as u64) as usize);
                solo.process.closed(solo.now, conn);
            }
            5 if !links.is_empty() => {
                let link = links.swap_remove(prng.below(links.len() as u64) as usize);
                solo.process.failed(solo.now, link);
            }
            6 => {
                let hello = solo.hello(node, 1, prng.below(20));
                solo.hear(hello);
            }
            _ => {}
        }
        let spent = MS * prng.below(400) as u32;
        let outputs = solo.wait(spent);
        for output in outputs {
            match output {
                Output::Dial { conn, .. } => {
                    conns.push(conn);
                    if prng.below(3) > 0 {
                        solo.process.dialed(solo.now, conn);
                    }
                }
                Output::Offer { link, .. } | Output::Serve { link, .. } => {
                    links.push(link);
                    let made = if prng.below(4) > 0 { Ok(vec![queue_pair(1)]) } else { Err(NoQueuePairs) };
                    solo.process.made(solo.now, link, made);
                }
                Output::Send { conn, message: Message::Hello(hello) } => {
                    let message = match prng.below(5) {
                        0 => Message::Busy { attempt: hello.attempt, retry_after: MS, ticket: Some(1) },
                        1 => Message::UseMine { attempt: hello.attempt },
                        2 => Message::Reject {
                            attempt: hello.attempt,
                            reason: crate::wire::RejectReason::Leaving,
                        },
                        3 => Message::Welcome(solo.answer(&hello, hello.to, 1)),
                        _ => continue,
                    };
                    solo.process.received(solo.now, conn, message);
                }
                Output::Activate { link, .. } => {
                    let result = if prng.below(4) > 0 { Ok(()) } else { Err(NoQueuePairs) };
                    solo.process.activated(solo.now, link, result);
                }
                _ => {}
            }
        }
    }
    for node in 0..6 {
        solo.process.unwant(solo.now, key(NodeId(node)));
    }
    let snapshot = solo.process.snapshot();
    snapshot.permits > 0 || snapshot.permit_waiters > 0
}
