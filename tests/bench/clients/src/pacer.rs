//! Instants at a fixed rate, on a timer of the kernel in the runtime's own poll: tokio's timers tick in milliseconds,
//! which is too coarse for tens of thousands of commands a second.

use nix::sys::time::{TimeSpec, TimeValLike};
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::time::{Duration, Instant};
use tokio::io::unix::AsyncFd;

/// Shorter periods would spend more on the timer than on the commands; several become due at once instead.
const PERIOD_MIN: Duration = Duration::from_micros(50);

/// How often [`pause`] looks whether it is over.
const PAUSE_LOOKS_PER_SECOND: u32 = 1_000;

/// Knows how many commands are due, and since when.
pub(crate) struct Pacer {
    timer: AsyncFd<Descriptor>,
    started: Instant,
    each: Duration,
    given: u64,
}

/// The timer, under the trait that tokio asks for.
struct Descriptor(TimerFd);

impl AsRawFd for Descriptor {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

impl Pacer {
    /// Starts now. Call it inside a runtime.
    pub(crate) fn start(commands_per_second: u32) -> anyhow::Result<Self> {
        let each = Duration::from_secs(1) / commands_per_second.max(1);
        let period = TimeSpec::nanoseconds(each.max(PERIOD_MIN).as_nanos() as i64);
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_NONBLOCK)?;
        timer.set(Expiration::Interval(period), TimerSetTimeFlags::empty())?;
        #[expect(
            deprecated,
            reason = "the descriptor belongs to the wrapper, so it outlives its registration"
        )]
        let timer = AsyncFd::new(Descriptor(timer))?;
        Ok(Self { timer, started: Instant::now(), each, given: 0 })
    }

    /// Waits until commands are due and gives the instants at which they were; late ones come together.
    pub(crate) async fn due(&mut self) -> anyhow::Result<impl Iterator<Item = Instant> + use<>> {
        loop {
            let mut ready = self.timer.readable().await?;
            // The count of expirations is not needed: the clock tells it, and this only resets the timer.
            match self.timer.get_ref().0.wait() {
                Ok(()) | Err(nix::errno::Errno::EAGAIN) => ready.clear_ready(),
                Err(error) => return Err(error.into()),
            }
            let until = (self.started.elapsed().as_nanos() / self.each.as_nanos()) as u64;
            if until > self.given {
                let (first, started, each) = (self.given, self.started, self.each.as_nanos() as u64);
                self.given = until;
                return Ok(
                    (first..until).map(move |number| started + Duration::from_nanos(each * (number + 1)))
                );
            }
        }
    }
}

/// Lets the other tasks run for a while.
pub(crate) async fn pause(length: Duration) -> anyhow::Result<()> {
    let until = Instant::now() + length;
    let mut pacer = Pacer::start(PAUSE_LOOKS_PER_SECOND)?;
    while Instant::now() < until {
        drop(pacer.due().await?);
    }
    Ok(())
}
