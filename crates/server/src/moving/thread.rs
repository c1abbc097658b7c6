//! The mover's thread.
//!
//! Owns: the runtime, the orders that are under way, and ending with the server. Does **not** own what an order does (see
//! [`super::courier`]).

use super::courier::Courier;
use super::pool::Pool;
use super::{Errand, HEAVY_THREADS};
use crate::execute::Local;
use crate::shared::{Shared, Stop};
use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::task::{LocalSet, spawn_blocking, spawn_local};
use tokio::time::Instant;

/// How often idle connections are looked at.
const IDLE_LOOK: Duration = Duration::from_secs(1);

/// What the threads for heavy work give way by, on the scale of `nice`: on a machine without an idle core commands come first,
/// and a third of a core is left.
const NICE: i32 = 5;

/// Does errands until the server stops; `seed` starts its randomness.
///
/// # Errors
/// When the runtime cannot be made; the environment's fault.
pub(crate) fn run(shared: &Arc<Shared>, seed: u64) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(HEAVY_THREADS)
        .thread_name("mover-heavy")
        .on_thread_start(give_way)
        .build()?;
    let Some(mut errands) = shared.moves.take_receiver() else { return Ok(()) };
    // Statistics have a place for this thread behind those of the workers.
    let worker = shared.config().workers.max(1);
    let courier = Courier {
        shared: Arc::clone(shared),
        local: Rc::new(RefCell::new(Local::new(worker, Arc::clone(shared), seed))),
        pool: Rc::new(RefCell::new(Pool::default())),
    };
    shared.moves.is_running.store(true, Ordering::Release);
    LocalSet::new().block_on(&runtime, async {
        let mut stopping = shared.stopping();
        let mut looks = tokio::time::interval(IDLE_LOOK);
        loop {
            tokio::select! {
                errand = errands.recv() => match errand {
                    Some(Errand::Move(order, waiter)) => {
                        let courier = courier.clone();
                        spawn_local(async move { courier.run(*order, &waiter).await });
                    }
                    Some(Errand::Decode(decoding)) => _ = spawn_blocking(move || decoding.run()),
                    // The sender lives in `shared`.
                    None => return,
                },
                _ = looks.tick() => courier.expire(Instant::now()),
                _ = stopping.wait_for(|stop| *stop != Stop::No) => return,
            }
        }
    });
    // What is under way on other threads is short, and nobody waits for it any more.
    runtime.shutdown_background();
    Ok(())
}

/// Lowers the priority of this thread alone. Where that is not allowed, it stays as it is.
fn give_way() {
    #[cfg(target_os = "linux")]
    {
        let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICE);
    }
}
