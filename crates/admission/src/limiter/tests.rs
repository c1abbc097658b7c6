use super::*;
use proptest::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;

#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Wakes {
    fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

fn limiter(per_process: u32, per_target: u32, waiters_max: u32) -> DialLimiter<u8> {
    let config = LimiterConfig { per_process, per_target, waiters_max, ..LimiterConfig::CLIENT };
    DialLimiter::new(config).unwrap()
}

fn poll(acquire: &mut Acquire<u8>, wakes: &Arc<Wakes>) -> Poll<Result<DialPermit<u8>, WaitersFull>> {
    let waker = Waker::from(Arc::clone(wakes));
    Pin::new(acquire).poll(&mut Context::from_waker(&waker))
}

#[test]
fn limits_that_would_block_for_ever_are_refused() {
    for (config, limit) in [
        (LimiterConfig { per_process: 0, ..LimiterConfig::CLIENT }, "per_process"),
        (LimiterConfig { per_target: 0, ..LimiterConfig::CLIENT }, "per_target"),
        (LimiterConfig { waiters_max: 0, ..LimiterConfig::CLIENT }, "waiters_max"),
    ] {
        let error = DialLimiter::<u8>::new(config).err();
        assert_eq!(error, Some(LimiterConfigError::NotPositive { limit }));
    }
}

#[test]
fn a_dropped_permit_wakes_exactly_the_next_in_line() {
    let limiter = limiter(1, 1, 10);
    let permit = limiter.try_acquire(0).unwrap();
    let wakes: [Arc<Wakes>; 3] = Default::default();
    let mut waiters: Vec<Acquire<u8>> = (0..3).map(|_| limiter.acquire(0)).collect();
    for (waiter, wakes) in waiters.iter_mut().zip(&wakes) {
        assert!(poll(waiter, wakes).is_pending());
    }
    drop(permit);
    assert_eq!(wakes.each_ref().map(|wakes| wakes.count()), [1, 0, 0]);
    assert!(limiter.try_acquire(0).is_none(), "the place is given already");
    let Poll::Ready(Ok(permit)) = poll(&mut waiters[0], &wakes[0]) else { panic!("woken without a permit") };
    drop(permit);
    assert_eq!(wakes.each_ref().map(|wakes| wakes.count()), [1, 1, 0]);
}

#[test]
fn a_granted_permit_that_nobody_takes_goes_on() {
    let limiter = limiter(1, 1, 10);
    let permit = limiter.try_acquire(0).unwrap();
    let wakes: Arc<Wakes> = Arc::default();
    let (mut first, mut second) = (limiter.acquire(0), limiter.acquire(0));
    assert!(poll(&mut first, &wakes).is_pending());
    assert!(poll(&mut second, &wakes).is_pending());
    drop(permit);
    drop(first);
    assert_eq!(wakes.count(), 2);
    assert!(poll(&mut second, &wakes).is_ready());
}

#[test]
fn a_future_that_was_never_polled_stands_in_no_line() {
    let limiter = limiter(1, 1, 10);
    let unpolled = limiter.acquire(0);
    assert_eq!(limiter.snapshot().in_use, 0);
    drop(unpolled);
    assert!(limiter.try_acquire(0).is_some());
}

#[test]
fn a_panic_in_an_attempt_gives_its_permit_back() {
    let limiter = limiter(1, 1, 10);
    let permit = limiter.try_acquire(0).unwrap();
    let attempt = std::panic::AssertUnwindSafe(move || {
        let _permit = permit;
        panic!("the handshake has a bug");
    });
    assert!(std::panic::catch_unwind(attempt).is_err());
    assert_eq!(limiter.snapshot().in_use, 0);
}

#[test]
fn the_bound_on_waiters_is_a_typed_outcome() {
    let limiter = limiter(1, 1, 1);
    let _permit = limiter.try_acquire(0).unwrap();
    let wakes: Arc<Wakes> = Arc::default();
    let (mut first, mut second) = (limiter.acquire(0), limiter.acquire(0));
    assert!(poll(&mut first, &wakes).is_pending());
    let Poll::Ready(Err(full)) = poll(&mut second, &wakes) else { panic!("two wait where one may") };
    assert_eq!(full, WaitersFull { waiting: 1 });
    assert!(poll(&mut second, &wakes).is_pending(), "polled after the end: no panic, no place");
    drop(second);
    assert_eq!(limiter.snapshot().waiting, 1);
}

#[test]
fn polling_again_replaces_the_waker() {
    let limiter = limiter(1, 1, 10);
    let permit = limiter.try_acquire(0).unwrap();
    let (old, new): (Arc<Wakes>, Arc<Wakes>) = Default::default();
    let mut waiter = limiter.acquire(0);
    assert!(poll(&mut waiter, &old).is_pending());
    assert!(poll(&mut waiter, &new).is_pending());
    drop(permit);
    assert_eq!((old.count(), new.count()), (0, 1));
}

#[test]
fn many_threads_never_exceed_the_limit_and_leave_nothing_behind() {
    const THREADS: u8 = 8;
    let limiter = limiter(3, 2, 1000);
    let in_flight = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (limiter, in_flight) = (&limiter, &in_flight);
            scope.spawn(move || {
                for round in 0..500u16 {
                    let mut acquire = limiter.acquire(thread % 2);
                    if round % 5 == 0 {
                        let wakes: Arc<Wakes> = Arc::default();
                        drop(poll(&mut acquire, &wakes));
                        continue;
                    }
                    let permit = block_on(acquire).unwrap();
                    assert!(in_flight.fetch_add(1, Ordering::SeqCst) < 3);
                    std::thread::yield_now();
                    in_flight.fetch_sub(1, Ordering::SeqCst);
                    drop(permit);
                }
            });
        }
    });
    let empty = LimiterSnapshot { in_use: 0, waiting: 0, targets: Vec::new() };
    assert_eq!(limiter.snapshot(), empty);
    assert!(limiter.lock().wakers.is_empty());
}

/// Parks the thread until the future is woken; a lost wake-up hangs the test instead of passing it.
fn block_on(mut acquire: Acquire<u8>) -> Result<DialPermit<u8>, WaitersFull> {
    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    loop {
        if let Poll::Ready(done) = Pin::new(&mut acquire).poll(&mut Context::from_waker(&waker)) {
            return done;
        }
        std::thread::park();
    }
}

proptest! {
    #[test]
    fn dropping_futures_and_permits_in_any_order_leaks_nothing(
        steps in prop::collection::vec((0u8..4, any::<usize>(), 0u8..3), 1..200),
    ) {
        let limiter = limiter(3, 2, 8);
        let wakes: Arc<Wakes> = Arc::default();
        let (mut waiters, mut permits): (Vec<Acquire<u8>>, Vec<DialPermit<u8>>) = Default::default();
        for (step, pick, target) in steps {
            match step {
                0 => waiters.push(limiter.acquire(target)),
                1 if !waiters.is_empty() => {
                    let at = pick % waiters.len();
                    if let Poll::Ready(done) = poll(&mut waiters[at], &wakes) {
                        permits.extend(done.ok());
                        drop(waiters.swap_remove(at));
                    }
                }
                2 if !waiters.is_empty() => drop(waiters.swap_remove(pick % waiters.len())),
                3 if !permits.is_empty() => drop(permits.swap_remove(pick % permits.len())),
                _ => {}
            }
            let snapshot = limiter.snapshot();
            prop_assert!(snapshot.in_use <= 3 && snapshot.waiting <= 8);
            prop_assert!(snapshot.targets.iter().all(|target| target.in_use <= 2));
        }
        // Whoever still waits can be served: end the permits, poll, and everybody gets through.
        while !waiters.is_empty() || !permits.is_empty() {
            let before = (waiters.len(), permits.len());
            permits.clear();
            let (ready, rest): (Vec<_>, Vec<_>) = waiters.into_iter().map(|mut waiter| {
                let done = poll(&mut waiter, &wakes);
                (waiter, done)
            }).partition(|(_, done)| done.is_ready());
            permits.extend(ready.into_iter().filter_map(|(_, done)| match done {
                Poll::Ready(Ok(permit)) => Some(permit),
                _ => None,
            }));
            waiters = rest.into_iter().map(|(waiter, _)| waiter).collect();
            prop_assert!((waiters.len(), permits.len()) < before, "somebody waits for ever");
        }
        let snapshot = limiter.snapshot();
        prop_assert_eq!((snapshot.in_use, snapshot.waiting), (0, 0));
        prop_assert!(limiter.lock().wakers.is_empty());
    }
}
