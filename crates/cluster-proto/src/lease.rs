//! When a node may serve.
//!
//! Owns: the rule. Does **not** own how a node hears of a quorum and of the log.

/// Whether a node may serve. `was_fresh`: whether it might until now; `knows_quorum`: whether it has heard of one within the lease; it has applied
/// the log up to `applied`, and at least `decided` is decided.
///
/// A node that comes back, from a stop or a long pause, knows of a quorum before it knows what that has decided meanwhile: by what it knows
/// its slots may be another node's. So it serves again only once it has applied all that was decided when it came back. While it is fresh,
/// it is behind by the time of a heartbeat at most.
pub fn may_serve(was_fresh: bool, knows_quorum: bool, applied: u64, decided: u64) -> bool {
    knows_quorum && (was_fresh || applied >= decided)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_back_serves_when_it_has_caught_up() {
        for (was_fresh, knows_quorum, applied, decided, expected) in [
            (false, true, 4, 5, false),
            (false, true, 5, 5, true),
            (false, true, 6, 5, true),
            (true, true, 4, 5, true),
            (true, false, 5, 5, false),
            (false, false, 5, 5, false),
        ] {
            let case = (was_fresh, knows_quorum, applied, decided);
            assert_eq!(may_serve(was_fresh, knows_quorum, applied, decided), expected, "{case:?}");
        }
    }
}
