//! Jobs for several threads, in bounded memory.
//!
//! Owns: the queue, the order within lanes, and the first error. Does **not** own threads, nor what a job is.
//!
//! The thread that reads makes jobs; when so many wait that the bound is reached, it does one itself instead of waiting for
//! the others. So a single thread is enough, and with several none is idle while another is behind. Jobs of one lane are done
//! one after the other in the order of their coming; jobs without a lane in any order.

use super::LoadError;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Jobs that are done in their order.
pub(super) type Lane = u64;

#[derive(Debug)]
struct Task<J> {
    lane: Option<Lane>,
    bytes: usize,
    job: J,
}

#[derive(Debug)]
struct State<J> {
    queue: VecDeque<Task<J>>,
    queued_bytes: usize,
    /// Lanes of which a job is being done. Few: one for each thread at most.
    busy: Vec<Lane>,
    running: usize,
    is_closed: bool,
    failed: Option<LoadError>,
}

/// See the module's description.
#[derive(Debug)]
pub(super) struct Pool<J> {
    state: Mutex<State<J>>,
    changed: Condvar,
    bytes_max: usize,
    /// The file that is being loaded, for the report of a panic.
    path: PathBuf,
}

/// A job is being done; its end, however it comes, frees its lane.
struct Running<'a, J> {
    pool: &'a Pool<J>,
    lane: Option<Lane>,
}

impl<J> Drop for Running<'_, J> {
    fn drop(&mut self) {
        let mut state = self.pool.state();
        state.running -= 1;
        if let Some(lane) = self.lane {
            state.busy.retain(|busy| *busy != lane);
        }
        if std::thread::panicking() {
            state.failed.get_or_insert_with(|| LoadError::Panicked { path: self.pool.path.clone() });
        }
        self.pool.changed.notify_all();
    }
}

impl<J> Pool<J> {
    /// An empty pool, in which jobs of at most `bytes_max` bytes, and one more, wait.
    pub(super) fn new(bytes_max: usize, path: PathBuf) -> Self {
        let state = State {
            queue: VecDeque::new(),
            queued_bytes: 0,
            busy: Vec::new(),
            running: 0,
            is_closed: false,
            failed: None,
        };
        Self { state: Mutex::new(state), changed: Condvar::new(), bytes_max, path }
    }

    fn state(&self) -> MutexGuard<'_, State<J>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a job, and does others until the bound holds.
    ///
    /// # Errors
    /// The first error of any job: nothing further will be done.
    pub(super) fn push(
        &self,
        lane: Option<Lane>,
        bytes: usize,
        job: J,
        mut run: impl FnMut(J) -> Result<(), LoadError>,
    ) -> Result<(), LoadError> {
        let mut state = self.state();
        state.queued_bytes += bytes;
        state.queue.push_back(Task { lane, bytes, job });
        self.changed.notify_one();
        while state.queued_bytes > self.bytes_max {
            state = self.help(state, &mut run)?;
        }
        state.failed.clone().map_or(Ok(()), Err)
    }

    /// Returns when every job is done.
    ///
    /// # Errors
    /// As [`Pool::push`].
    pub(super) fn settle(&self, mut run: impl FnMut(J) -> Result<(), LoadError>) -> Result<(), LoadError> {
        let mut state = self.state();
        while !state.queue.is_empty() || state.running > 0 {
            state = self.help(state, &mut run)?;
        }
        state.failed.clone().map_or(Ok(()), Err)
    }

    /// Does one job, or waits for a change if none can be done at present.
    fn help<'a>(
        &'a self,
        mut state: MutexGuard<'a, State<J>>,
        run: &mut impl FnMut(J) -> Result<(), LoadError>,
    ) -> Result<MutexGuard<'a, State<J>>, LoadError> {
        if let Some(error) = &state.failed {
            return Err(error.clone());
        }
        match Self::take(&mut state) {
            Some(task) => {
                drop(state);
                self.run(task, run);
                Ok(self.state())
            }
            None => Ok(self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)),
        }
    }

    /// Does jobs until there will be no more.
    pub(super) fn work(&self, mut run: impl FnMut(J) -> Result<(), LoadError>) {
        let mut state = self.state();
        loop {
            if state.failed.is_some() || (state.is_closed && state.queue.is_empty()) {
                return;
            }
            state = match Self::take(&mut state) {
                Some(task) => {
                    drop(state);
                    self.run(task, &mut run);
                    self.state()
                }
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    fn take(state: &mut State<J>) -> Option<Task<J>> {
        let is_free = |task: &Task<J>| task.lane.is_none_or(|lane| !state.busy.contains(&lane));
        let at = state.queue.iter().position(is_free)?;
        let task = state.queue.remove(at)?;
        state.queued_bytes -= task.bytes;
        state.running += 1;
        state.busy.extend(task.lane);
        Some(task)
    }

    fn run(&self, task: Task<J>, run: &mut impl FnMut(J) -> Result<(), LoadError>) {
        let _running = Running { pool: self, lane: task.lane };
        if let Err(error) = run(task.job) {
            self.fail(error);
        }
    }

    fn fail(&self, error: LoadError) {
        self.state().failed.get_or_insert(error);
        self.changed.notify_all();
    }

    /// There will be no more jobs.
    pub(super) fn close(&self) {
        self.state().is_closed = true;
        self.changed.notify_all();
    }
}

/// Closes the pool when the thread that reads ends, however it does.
pub(super) struct Closing<'a, J>(pub(super) &'a Pool<J>);

impl<J> Drop for Closing<'_, J> {
    fn drop(&mut self) {
        self.0.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn one_thread_does_everything_within_the_bound() {
        let pool = Pool::new(10, PathBuf::new());
        let mut done = Vec::new();
        for job in 0..100 {
            pool.push(None, 4, job, |job| {
                done.push(job);
                Ok(())
            })
            .unwrap();
            assert!(pool.state().queued_bytes <= 10);
        }
        pool.settle(|job| {
            done.push(job);
            Ok(())
        })
        .unwrap();
        assert_eq!(done, (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn lanes_keep_their_order_over_threads() {
        let pool = Pool::new(64, PathBuf::new());
        let next: Vec<AtomicU64> = (0..3).map(|_| AtomicU64::new(0)).collect();
        let run = |(lane, number): (u64, u64)| {
            let before = next[lane as usize].swap(number + 1, Ordering::SeqCst);
            assert_eq!(before, number, "lane {lane}");
            Ok(())
        };
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| pool.work(run));
            }
            let _closing = Closing(&pool);
            for number in 0..2000 {
                for lane in 0..3 {
                    pool.push(Some(lane), 1, (lane, number), run).unwrap();
                }
                if number % 100 == 0 {
                    pool.settle(run).unwrap();
                    assert!(next.iter().all(|next| next.load(Ordering::SeqCst) == number + 1));
                }
            }
            pool.settle(run).unwrap();
        });
    }

    #[test]
    fn the_first_error_ends_it_and_a_panic_is_one() {
        let pool = Pool::new(0, PathBuf::new());
        let result = pool.push(None, 1, (), |()| Err(LoadError::Stopped));
        assert!(matches!(result, Err(LoadError::Stopped)));
        assert!(matches!(pool.settle(|()| Ok(())), Err(LoadError::Stopped)));
        let pool = Pool::new(8, PathBuf::from("file"));
        pool.push(None, 1, (), |()| Ok(())).unwrap();
        std::thread::scope(|scope| {
            let worker = scope.spawn(|| pool.work(|()| panic!("a bug")));
            assert!(worker.join().is_err());
        });
        assert!(matches!(pool.settle(|()| Ok(())), Err(LoadError::Panicked { .. })));
    }
}
