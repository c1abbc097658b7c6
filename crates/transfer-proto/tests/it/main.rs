//! Two processes and a driver of a hundred lines: bytes that arrive are the right bytes at the right place, whatever breaks.
#![allow(clippy::unwrap_used, reason = "a test's own helpers fail by panicking")]

mod driver;

use std::collections::BTreeSet;
use std::time::Duration;

use driver::{A, B, World};
use towline_sansio::{Instant, Prng};
use towline_transfer_proto::{BatchId, Class, Event, Opcode, Outcome, Repeat, Request, SubmitError, TaskId};

const MS: Duration = Duration::from_millis(1);
const SLOTS: u64 = 32;
const SLOT: u64 = 200 * 1024;

/// What is known of a place in the target's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    /// A write there did not complete: any mixture.
    Unknown,
    /// So many bytes of this value, in this life of the target.
    Is { byte: u8, length: u64, life: u32 },
}

struct Job {
    slot: u64,
    batch: BatchId,
    opcode: Opcode,
    byte: u8,
    length: u64,
    life: u32,
    outcome: Option<Outcome>,
}

struct Ledger {
    world: World,
    prng: Prng,
    contents: Vec<Content>,
    jobs: Vec<Job>,
    completed: u64,
    failed: u64,
    /// Numbers of batches that completed, as their notifications say them.
    notified: BTreeSet<u64>,
    next: u64,
}

impl Ledger {
    fn new(seed: u64) -> Self {
        let world = World::new(seed, (SLOTS * SLOT) as usize);
        let life = world.life(B);
        Self {
            world,
            prng: Prng::new(seed),
            contents: vec![Content::Is { byte: 0, length: SLOT, life }; SLOTS as usize],
            jobs: Vec::new(),
            completed: 0,
            failed: 0,
            notified: BTreeSet::new(),
            next: 1,
        }
    }

    /// The target still has what it is known to have.
    fn check(&self, slot: u64) {
        let Content::Is { byte, length, life } = self.contents[slot as usize] else { return };
        if life == self.world.life(B) && self.world.is_up(B) {
            let start = (slot * SLOT) as usize;
            let bytes = &self.world.memory(B)[start..start + length as usize];
            assert!(bytes.iter().all(|found| *found == byte), "slot {slot} changed behind our back");
        }
    }

    fn submit(&mut self) {
        let slot = self.prng.below(SLOTS);
        if self.jobs.iter().any(|job| job.slot == slot) {
            return;
        }
        self.check(slot);
        let (byte, length) = (self.prng.next_u64() as u8, self.prng.below(SLOT) + 1);
        let opcode = if self.prng.below(3) == 0 { Opcode::Read } else { Opcode::Write };
        let deadline = match self.prng.below(10) {
            0 => self.world.now + MS * self.prng.below(2_000) as u32,
            _ => Instant::FAR,
        };
        let range = (slot * SLOT) as usize..(slot * SLOT + length) as usize;
        self.world.local(A)[range].fill(byte);
        let request = Request {
            opcode,
            peer: driver::node(B),
            local: slot * SLOT,
            remote: slot * SLOT,
            length,
            class: Class::ALL[self.prng.below(3) as usize],
            deadline,
            repeat: if self.prng.below(10) == 0 { Repeat::Never } else { Repeat::Allowed },
        };
        match self.world.submit(A, &[request], self.next.to_be_bytes().to_vec()) {
            Ok(batch) => {
                let life = self.world.life(B);
                self.jobs.push(Job { slot, batch, opcode, byte, length, life, outcome: None });
                self.next += 1;
            }
            Err(error) => assert!(matches!(error, SubmitError::Full { .. }), "{error}"),
        }
        if self.prng.below(20) == 0 {
            let job = self.jobs.last().map(|job| job.batch);
            job.inspect(|batch| self.world.cancel(A, TaskId { batch: *batch, index: 0 }));
        }
    }

    fn settle(&mut self) {
        for event in std::mem::take(&mut self.world.events) {
            match event {
                Event::Ended { task, outcome, .. } => {
                    let job = self.jobs.iter_mut().find(|job| job.batch == task.batch).unwrap();
                    assert_eq!(job.outcome.replace(outcome), None, "a task ends once");
                }
                Event::BatchDone { batch, is_complete } => self.done(batch, is_complete),
                _ => {}
            }
        }
        let mut last = 0;
        for (life, payload) in std::mem::take(&mut self.world.notified) {
            let number = u64::from_be_bytes(payload.try_into().unwrap());
            // Within one life of the receiver: each once, in the order of their completion.
            assert!(self.notified.insert(u64::from(life) << 40 | number), "notification {number} came twice");
            last = number.max(last);
        }
    }

    fn done(&mut self, batch: BatchId, is_complete: bool) {
        let position = self.jobs.iter().position(|job| job.batch == batch).unwrap();
        let job = self.jobs.swap_remove(position);
        self.world.free(A, batch);
        assert_eq!(is_complete, job.outcome == Some(Outcome::Completed));
        self.completed += u64::from(is_complete);
        self.failed += u64::from(!is_complete);
        let life = self.world.life(B);
        let range = (job.slot * SLOT) as usize..(job.slot * SLOT + job.length) as usize;
        match (job.opcode, is_complete) {
            // A target that restarted meanwhile has lost what it had.
            (Opcode::Write, true) if job.life == life => {
                let content = Content::Is { byte: job.byte, length: job.length, life };
                self.contents[job.slot as usize] = content;
                self.check(job.slot);
            }
            (Opcode::Read, true) if job.life == life && self.world.is_up(B) => {
                let there = self.world.memory(B)[range.clone()].to_vec();
                assert!(self.world.local(A)[range] == there, "a read brought something else");
            }
            (Opcode::Write, _) => self.contents[job.slot as usize] = Content::Unknown,
            (Opcode::Read, _) => {}
        }
    }
}

fn history(seed: u64, steps: u32) -> Ledger {
    let mut ledger = Ledger::new(seed);
    for _ in 0..steps {
        for _ in 0..ledger.prng.below(4) {
            ledger.submit();
        }
        match ledger.prng.below(200) {
            0 => ledger.world.crash(B),
            1 => ledger.world.fail_a_link(A),
            2 => ledger.world.fail_a_link(B),
            3 => ledger.world.cut(true),
            _ => {}
        }
        if ledger.prng.below(20) == 0 {
            ledger.world.start(B);
            ledger.world.cut(false);
        }
        let time = MS * ledger.prng.below(30) as u32;
        ledger.world.run(time);
        ledger.settle();
    }
    ledger.world.start(B);
    ledger.world.cut(false);
    // Everything ends: completed, or with a reason.
    for _ in 0..100 {
        ledger.world.run(200 * MS);
        ledger.settle();
    }
    assert!(ledger.jobs.is_empty(), "seed {seed}: {} jobs are left", ledger.jobs.len());
    (0..SLOTS).for_each(|slot| ledger.check(slot));
    ledger
}

#[test]
fn no_byte_is_torn_or_misplaced_over_losses_cuts_crashes_and_cancels() {
    let (mut completed, mut failed, mut notified) = (0, 0, 0);
    for seed in 0..6 {
        let ledger = history(seed, 1_500);
        completed += ledger.completed;
        failed += ledger.failed;
        notified += ledger.notified.len();
    }
    println!("{completed} completed, {failed} ended otherwise, {notified} notifications");
    assert!(completed > 5_000 && failed > 50, "{completed} completed, {failed} ended otherwise");
    assert!(notified > 5_000);
}
