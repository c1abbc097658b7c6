//! When the commands of an open loop are meant to leave.
//!
//! Owns the arithmetic between command numbers and intended send times, in nanoseconds since the run's start. It reads
//! no clock. Latency is measured from these times and not from the real sends, so a server that stalls is charged
//! for every command that should have left meanwhile (coordinated omission).

/// Evenly spaced send times for the whole run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Schedule {
    interval_ns: f64,
    total: u64,
}

impl Schedule {
    /// `rate` commands per second (at least one), `total` commands in all.
    pub(crate) fn new(rate: u64, total: u64) -> Self {
        Self { interval_ns: 1e9 / rate.max(1) as f64, total }
    }

    /// Commands in all.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// Intended send time of command `index`.
    #[inline]
    pub(crate) fn intended_ns(&self, index: u64) -> u64 {
        (index as f64 * self.interval_ns) as u64
    }

    /// How many commands are meant to have left at `now_ns`: those with an intended time at or before it.
    #[inline]
    pub(crate) fn due(&self, now_ns: u64) -> u64 {
        let mut count = (now_ns as f64 / self.interval_ns) as u64;
        // The quotient may be one off either way; the product decides.
        while self.intended_ns(count) <= now_ns && count < self.total {
            count += 1;
        }
        while count > 0 && self.intended_ns(count - 1) > now_ns {
            count -= 1;
        }
        count.min(self.total)
    }
}

/// The share of one connection: every `stride`-th command, from `first` on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lane {
    first: u64,
    stride: u64,
}

impl Lane {
    /// The lane of connection number `first` among `stride` connections (`first < stride`).
    pub(crate) fn new(first: u64, stride: u64) -> Self {
        debug_assert!(first < stride, "invariant: a lane's number is below the number of lanes");
        Self { first, stride }
    }

    /// How many lanes there are: the distance between two commands of one lane.
    pub(crate) fn stride(&self) -> u64 {
        self.stride
    }

    /// The run's number of this lane's `index`-th command.
    #[inline]
    pub(crate) fn global(&self, index: u64) -> u64 {
        index * self.stride + self.first
    }

    /// How many of the run's first `count` commands belong to this lane.
    #[inline]
    pub(crate) fn share(&self, count: u64) -> u64 {
        (count + self.stride - 1 - self.first) / self.stride
    }
}

/// Walks the commands of several neighbouring lanes (those of one thread) in the order of their times.
#[derive(Debug, Clone)]
pub(crate) struct LaneWalk {
    first: u64,
    lanes: u64,
    stride: u64,
    next: u64,
}

impl LaneWalk {
    /// Lanes `first..first + lanes` of `stride`; at least one lane.
    pub(crate) fn new(first: u64, lanes: u64, stride: u64) -> Self {
        debug_assert!(lanes > 0 && first + lanes <= stride, "invariant: the lanes exist");
        Self { first, lanes, stride, next: 0 }
    }

    /// The run's number of the next command, and its lane counted from `first`.
    pub(crate) fn peek(&self) -> (u64, usize) {
        let lane = self.next % self.lanes;
        (self.next / self.lanes * self.stride + self.first + lane, lane as usize)
    }

    /// Moves past the command that [`Self::peek`] names.
    pub(crate) fn advance(&mut self) {
        self.next += 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn due_agrees_with_the_intended_times(
            rate in 1_u64..5_000_000, total in 0_u64..10_000_000, now in 0_u64..20_000_000_000,
        ) {
            let schedule = Schedule::new(rate, total);
            let due = schedule.due(now);
            prop_assert!(due <= total);
            if due > 0 {
                prop_assert!(schedule.intended_ns(due - 1) <= now);
            }
            if due < total {
                prop_assert!(schedule.intended_ns(due) > now);
            }
        }

        #[test]
        fn lanes_share_every_command_once(stride in 1_u64..40, count in 0_u64..1000) {
            let shares: u64 = (0..stride).map(|first| Lane::new(first, stride).share(count)).sum();
            prop_assert_eq!(shares, count);
            for first in 0..stride {
                let lane = Lane::new(first, stride);
                let share = lane.share(count);
                prop_assert!(share == 0 || lane.global(share - 1) < count);
                prop_assert!(lane.global(share) >= count);
            }
        }

        #[test]
        fn a_walk_visits_its_lanes_in_time_order(first in 0_u64..5, lanes in 1_u64..5, more in 0_u64..5) {
            let stride = first + lanes + more;
            let mut walk = LaneWalk::new(first, lanes, stride);
            let mut per_lane = vec![0; lanes as usize];
            let mut last = None;
            for _ in 0..lanes * 7 {
                let (global, lane) = walk.peek();
                prop_assert_eq!(global, Lane::new(first + lane as u64, stride).global(per_lane[lane]));
                prop_assert!(last.is_none_or(|last| last < global));
                last = Some(global);
                per_lane[lane] += 1;
                walk.advance();
            }
        }
    }

    #[test]
    fn a_stall_in_virtual_time_leaves_every_missed_command_due() {
        let schedule = Schedule::new(1000, 10_000);
        let lane = Lane::new(0, 2);
        let sent = lane.share(schedule.due(9_999_999));
        assert_eq!(sent, 5);
        // The server answers nothing for two seconds: the lane owes 1000 commands, the oldest two seconds late.
        let now = 2_009_999_999;
        assert_eq!(lane.share(schedule.due(now)) - sent, 1000);
        assert_eq!(now - schedule.intended_ns(lane.global(sent)), 1_999_999_999);
    }
}
