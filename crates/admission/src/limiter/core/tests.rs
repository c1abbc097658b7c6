//! Model against machine: the model is a plain list of requests in the order of their arrival.

use super::*;
use proptest::prelude::*;

const GAP: Duration = Duration::from_millis(1);

fn config(per_process: u32, per_target: u32, waiters_max: u32) -> LimiterConfig {
    LimiterConfig { per_process, per_target, waiters_max, target_gap: GAP }
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Request(u8),
    TryRequest(u8),
    Release(usize),
    Cancel(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0u8..4).prop_map(Step::Request),
        1 => (0u8..4).prop_map(Step::TryRequest),
        3 => any::<usize>().prop_map(Step::Release),
        2 => any::<usize>().prop_map(Step::Cancel),
    ];
    prop::collection::vec(step, 1..300)
}

/// The specification, at the price of a scan for each question.
struct Model {
    config: LimiterConfig,
    /// In the order of arrival.
    requests: Vec<(RequestId, u8, bool)>,
}

impl Model {
    fn in_use(&self, target: Option<u8>) -> u32 {
        let held =
            self.requests.iter().filter(|(_, at, granted)| *granted && target.is_none_or(|t| t == *at));
        count(held.count())
    }

    fn waiting(&self) -> u32 {
        count(self.requests.len()) - self.in_use(None)
    }

    fn has_room(&self, target: u8) -> bool {
        self.in_use(None) < self.config.per_process && self.in_use(Some(target)) < self.config.per_target
    }

    /// Grants from the front of the list until nobody can go.
    fn settle(&mut self) -> Vec<RequestId> {
        let mut granted = Vec::new();
        while let Some(at) =
            self.requests.iter().position(|(_, target, held)| !held && self.has_room(*target))
        {
            self.requests[at].2 = true;
            granted.push(self.requests[at].0);
        }
        granted
    }
}

fn check(core: &LimiterCore<u8>, model: &Model) -> Result<(), TestCaseError> {
    let snapshot = core.snapshot();
    prop_assert_eq!((snapshot.in_use, snapshot.waiting), (model.in_use(None), model.waiting()));
    prop_assert!(snapshot.in_use <= model.config.per_process);
    prop_assert!(snapshot.waiting <= model.config.waiters_max);
    for target in &snapshot.targets {
        prop_assert!(target.in_use <= model.config.per_target);
        prop_assert_eq!(target.in_use, model.in_use(Some(target.target)));
        prop_assert!(target.in_use + target.waiting > 0, "an idle target is kept");
    }
    for (id, _, granted) in &model.requests {
        prop_assert_eq!(core.is_granted(*id), *granted);
    }
    Ok(())
}

proptest! {
    #[test]
    fn the_machine_grants_what_the_model_grants(
        steps in steps(),
        per_process in 1u32..6,
        per_target in 1u32..4,
        waiters_max in 1u32..20,
    ) {
        let config = config(per_process, per_target, waiters_max);
        let mut core = LimiterCore::new(config).unwrap();
        let mut model = Model { config, requests: Vec::new() };
        for step in steps {
            match step {
                Step::Request(target) => match core.request(target) {
                    Ok(requested) => {
                        let granted = matches!(requested, Requested::Granted(_));
                        prop_assert_eq!(granted, model.has_room(target));
                        model.requests.push((requested.id(), target, granted));
                    }
                    Err(full) => {
                        prop_assert!(!model.has_room(target));
                        prop_assert_eq!(full.waiting, waiters_max);
                        prop_assert_eq!(model.waiting(), waiters_max);
                    }
                },
                Step::TryRequest(target) => {
                    let id = core.try_request(target);
                    prop_assert_eq!(id.is_some(), model.has_room(target));
                    model.requests.extend(id.map(|id| (id, target, true)));
                }
                Step::Release(pick) | Step::Cancel(pick) if !model.requests.is_empty() => {
                    let at = pick % model.requests.len();
                    let (id, _, granted) = model.requests[at];
                    if matches!(step, Step::Release(_)) && !granted {
                        prop_assert_eq!(core.release(id), Err(UnknownRequest { id }));
                        continue;
                    }
                    let next = if granted { core.release(id) } else { core.cancel(id) };
                    model.requests.remove(at);
                    let expected = model.settle();
                    prop_assert!(expected.len() <= 1);
                    prop_assert_eq!(next, Ok(expected.first().copied()));
                    prop_assert_eq!(core.cancel(id), Err(UnknownRequest { id }), "a second end is refused");
                }
                Step::Release(_) | Step::Cancel(_) => {}
            }
            check(&core, &model)?;
        }
        // No leak under any order: end everything, and the limiter is as new.
        while let Some((id, ..)) = model.requests.pop() {
            core.cancel(id).unwrap();
            model.settle();
        }
        prop_assert!(core.requests.is_empty() && core.targets.is_empty() && core.ready.is_empty());
        prop_assert_eq!(core.in_use, 0);
    }

    #[test]
    fn dials_of_one_target_keep_their_gap(arrivals in prop::collection::vec((0u64..3_000_000, 0u8..3), 1..100)) {
        let mut core = LimiterCore::new(config(1, 1, 1)).unwrap();
        let mut now = Instant::ZERO;
        let mut last: BTreeMap<u8, Instant> = BTreeMap::new();
        for (pause, target) in arrivals {
            now = now + Duration::from_nanos(pause);
            let id = core.try_request(target).unwrap();
            let start = core.start(id, now).unwrap();
            let expected = last.get(&target).map_or(now, |last| now.max(*last + GAP));
            prop_assert_eq!(start, expected);
            last.insert(target, start);
            core.release(id).unwrap();
        }
    }
}

#[test]
fn a_waiter_for_a_full_target_does_not_hold_up_others() {
    let mut core = LimiterCore::new(config(2, 1, 10)).unwrap();
    let a = core.request('a').unwrap().id();
    let a_waits = core.request('a').unwrap().id();
    assert!(matches!(core.request('b'), Ok(Requested::Granted(_))));
    let b_waits = core.request('b').unwrap().id();
    let c_waits = core.request('c').unwrap().id();
    assert_eq!(core.release(a), Ok(Some(a_waits)), "the longest waiter of those that could go");
    assert_eq!(core.release(a_waits), Ok(Some(c_waits)), "b is full, c is not");
    assert!(!core.is_granted(b_waits));
}

#[test]
fn the_memory_of_past_dials_is_swept() {
    let mut core = LimiterCore::new(config(1, 1, 1)).unwrap();
    for target in 0..5000u64 {
        let id = core.try_request(target).unwrap();
        core.start(id, Instant::ZERO + GAP * u32::try_from(target).unwrap()).unwrap();
        core.release(id).unwrap();
    }
    assert!(core.next_start.len() <= LimiterCore::<u64>::SWEEP_AT);
}

#[test]
fn only_a_granted_request_may_start() {
    let mut core = LimiterCore::new(config(1, 1, 1)).unwrap();
    let granted = core.request('a').unwrap().id();
    let waiting = core.request('a').unwrap().id();
    assert_eq!(core.start(granted, Instant::ZERO), Ok(Instant::ZERO));
    assert_eq!(core.start(waiting, Instant::ZERO), Err(UnknownRequest { id: waiting }));
}
