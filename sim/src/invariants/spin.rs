//! **Time moves on.** After `handle_timeout(now)` the next timer is later than `now`, unless it is a dial that the owner
//! has yet to ask for: an owner that sleeps until the timer sleeps.

use towline_sansio::Instant;

use super::{Violation, promise};

pub(crate) fn has_moved(next: Option<Instant>, now: Instant, is_dial_due: bool) -> Result<(), Violation> {
    promise!(
        is_dial_due || next.is_none_or(|next| next > now),
        "spin",
        "everything due was done, and the next timer is not later than now"
    );
    Ok(())
}
