//! The habits that the module's documentation names.

use super::*;

const CONFIG: FabricConfig = FabricConfig::USUAL;

struct Bench {
    fabric: Fabric,
    now: Instant,
    cards: [CardId; 2],
    memory: RemoteKey,
}

impl Bench {
    fn new(config: FabricConfig) -> Self {
        let mut fabric = Fabric::new(config, Prng::new(1));
        let cards = [fabric.add_card(), fabric.add_card()];
        let memory = fabric.register(cards[1], vec![0; 1 << 20], Access::ReadWrite);
        Self { fabric, now: Instant::ZERO, cards, memory }
    }

    /// A queue pair on each card, connected to each other, ready to send.
    fn pair(&mut self, psns: [u32; 2]) -> [Qpn; 2] {
        let [a, b] = [0, 1].map(|end| self.fabric.create(self.cards[end], 0, Psn::new(psns[end])));
        for (end, own, remote) in [(0, a, b), (1, b, a)] {
            self.fabric.receive_from(self.cards[end], own.qpn, &remote).unwrap();
            self.fabric.start_sending(self.cards[end], own.qpn).unwrap();
        }
        [a.qpn, b.qpn]
    }

    fn write(&mut self, qpn: Qpn, id: u64, byte: u8, length: usize) {
        let to = RemoteAddress { key: self.memory, offset: 0 };
        let work = Work { id, operation: Operation::Write { data: vec![byte; length], to } };
        self.fabric.post(self.now, self.cards[0], qpn, work).unwrap();
    }

    /// Lets everything happen; the ids with their statuses and when each ended.
    fn run(&mut self) -> Vec<(u64, Status, Duration)> {
        let mut ends = Vec::new();
        loop {
            while let Some((_, completion)) = self.fabric.poll() {
                ends.push((completion.id, completion.status, self.now.since(Instant::ZERO)));
            }
            let Some(at) = self.fabric.next_timeout() else { return ends };
            self.now = at;
            self.fabric.handle_timeout(at);
        }
    }

    fn byte(&self) -> u8 {
        self.fabric.memory(self.cards[1], self.memory).unwrap()[0]
    }
}

#[test]
fn a_write_is_there_when_it_completes_and_a_read_brings_it_back() {
    let mut bench = Bench::new(CONFIG);
    let [a, _] = bench.pair([5, Psn::MODULUS - 1]);
    bench.write(a, 1, 7, 65_536);
    let [(1, Status::Done, at)] = bench.run()[..] else { panic!() };
    assert_eq!(bench.byte(), 7);
    // 64 KiB at 25 GB/s, there and back.
    assert!((52..54).contains(&at.as_micros()), "{at:?}");
    let from = RemoteAddress { key: bench.memory, offset: 10 };
    let work = Work { id: 2, operation: Operation::Read { length: 3, from } };
    bench.fabric.post(bench.now, bench.cards[0], a, work).unwrap();
    while bench.fabric.poll().is_none() {
        let at = bench.fabric.next_timeout().unwrap();
        bench.fabric.handle_timeout(at);
    }
}

#[test]
fn what_nobody_answers_fails_after_eight_timers_and_takes_the_queue_with_it() {
    let mut bench = Bench::new(CONFIG);
    let [a, b] = bench.pair([1, 2]);
    bench.fabric.destroy(bench.cards[1], b).unwrap();
    for id in 1..=3 {
        bench.write(a, id, 7, 10);
    }
    let ends = bench.run();
    assert_eq!(
        ends.iter().map(|end| end.1).collect::<Vec<_>>(),
        [Status::RetryExceeded, Status::Flushed, Status::Flushed]
    );
    assert_eq!(ends[0].2, CONFIG.window());
    assert_eq!(CONFIG.window().as_millis(), 536);
    assert_eq!(bench.fabric.state(bench.cards[0], a), Ok(QueuePairState::Error));
    let work = Work {
        id: 4,
        operation: Operation::Read { length: 0, from: RemoteAddress { key: bench.memory, offset: 0 } },
    };
    let refused = bench.fabric.post(bench.now, bench.cards[0], a, work);
    assert_eq!(refused, Err(FabricError::WrongState { state: QueuePairState::Error }));
}

#[test]
fn losses_are_repaired_in_order_and_nothing_is_written_twice() {
    let mut bench = Bench::new(FabricConfig { losses_per_million: 200_000, ..CONFIG });
    let [a, _] = bench.pair([1, 2]);
    for id in 1..=5 {
        bench.write(a, id, u8::try_from(id).unwrap(), 9_000);
    }
    let ends = bench.run();
    assert_eq!(
        ends.iter().map(|end| (end.0, end.1)).collect::<Vec<_>>(),
        [1, 2, 3, 4, 5].map(|id| (id, Status::Done))
    );
    assert_eq!(bench.byte(), 5);
    assert_eq!(bench.fabric.counters().applied, 5);
}

/// The chase of ghosts: the target is connected to a queue pair that its initiator has thrown away.
fn ghost(psns: [u32; 2]) -> (Bench, Vec<(u64, Status, Duration)>) {
    let mut bench = Bench::new(CONFIG);
    let first = bench.fabric.create(bench.cards[0], 0, Psn::new(psns[0]));
    let target = bench.fabric.create(bench.cards[1], 0, Psn::new(0));
    bench.fabric.receive_from(bench.cards[1], target.qpn, &first).unwrap();
    bench.fabric.destroy(bench.cards[0], first.qpn).unwrap();
    let second = bench.fabric.create(bench.cards[0], 0, Psn::new(psns[1]));
    bench.fabric.receive_from(bench.cards[0], second.qpn, &target).unwrap();
    bench.fabric.start_sending(bench.cards[0], second.qpn).unwrap();
    bench.write(second.qpn, 1, 7, 10);
    let ends = bench.run();
    (bench, ends)
}

#[test]
fn with_equal_packet_numbers_a_ghost_takes_the_data_and_the_requester_never_hears_of_it() {
    let (bench, ends) = ghost([0, 0]);
    assert_eq!(bench.byte(), 7, "the memory changed");
    assert_eq!(
        ends,
        [(1, Status::RetryExceeded, CONFIG.window())],
        "and the requester was told that it failed"
    );
    assert_eq!(bench.fabric.counters().ghost_acks, 8);
}

#[test]
fn with_random_packet_numbers_a_ghost_takes_nothing() {
    let (bench, ends) = ghost([17, 4711]);
    assert_eq!((bench.byte(), ends[0].1), (0, Status::RetryExceeded));
    assert_eq!(bench.fabric.counters().ghost_acks, 0);
}

#[test]
fn a_target_that_is_ready_to_receive_acknowledges_and_one_that_is_new_does_not() {
    let mut bench = Bench::new(CONFIG);
    let (a, b) = (
        bench.fabric.create(bench.cards[0], 0, Psn::new(1)),
        bench.fabric.create(bench.cards[1], 0, Psn::new(2)),
    );
    bench.fabric.receive_from(bench.cards[0], a.qpn, &b).unwrap();
    bench.fabric.start_sending(bench.cards[0], a.qpn).unwrap();
    bench.write(a.qpn, 1, 7, 10);
    bench.now = Instant::ZERO + Duration::from_millis(100);
    bench.fabric.handle_timeout(bench.now);
    assert_eq!(bench.byte(), 0);
    bench.fabric.receive_from(bench.cards[1], b.qpn, &a).unwrap();
    assert_eq!(bench.run(), [(1, Status::Done, 2 * CONFIG.ack_timeout + 2 * CONFIG.delay)]);
}

#[test]
fn memory_is_guarded_by_its_bounds_its_access_and_its_key() {
    for (offset, length, access) in
        [(1 << 20, 1, Access::ReadWrite), (u64::MAX, 2, Access::ReadWrite), (0, 1, Access::Read)]
    {
        let mut bench = Bench::new(CONFIG);
        bench.memory = bench.fabric.register(bench.cards[1], vec![0; 1 << 20], access);
        let [a, _] = bench.pair([1, 2]);
        let to = RemoteAddress { key: bench.memory, offset };
        let work = Work { id: 1, operation: Operation::Write { data: vec![7; length], to } };
        bench.fabric.post(bench.now, bench.cards[0], a, work).unwrap();
        assert_eq!(bench.run()[0].1, Status::RemoteAccess);
    }
    let mut bench = Bench::new(CONFIG);
    let [a, _] = bench.pair([1, 2]);
    bench.fabric.deregister(bench.cards[1], bench.memory).unwrap();
    bench.write(a, 1, 7, 10);
    assert_eq!(bench.run()[0].1, Status::RemoteAccess);
}

#[test]
fn a_cut_in_one_direction_lets_the_write_through_and_its_answer_vanish() {
    let mut bench = Bench::new(CONFIG);
    let [a, _] = bench.pair([1, 2]);
    bench.fabric.set_cut(bench.cards[1], bench.cards[0], true);
    bench.write(a, 1, 7, 10);
    assert_eq!(bench.run()[0].1, Status::RetryExceeded);
    assert_eq!((bench.byte(), bench.fabric.counters().applied), (7, 1));
}
