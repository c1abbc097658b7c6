//! Who should own which slot: plans for tools.
//!
//! Owns the arithmetic of a new cluster ([`spread`], [`place_replicas`]), of moving slots ([`take`], [`pick`]) and of an even load
//! ([`rebalance`]). Does **not** own carrying a plan out, nor whether a slot may move at present.
//!
//! Everything is deterministic: the same cluster gives the same plan, so a plan that was interrupted goes on where it was.

use crate::change::Ranges;
use crate::id::NodeId;
use std::collections::BTreeMap;
use towline_cluster::{SLOT_COUNT, Slot};

pub use crate::change::ranges as ranges_of;

/// A primary as plans see it.
#[derive(Debug, Clone, PartialEq)]
pub struct Share {
    /// Its name.
    pub node: NodeId,
    /// What it owns.
    pub slots: Ranges,
    /// How much it should own, relative to the others: finite and not negative. `None` is 1, and for a primary without slots that it
    /// keeps none unless empty ones are to get their share.
    pub weight: Option<f64>,
}

/// Slots that go from one primary to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Move {
    /// Owns them now.
    pub from: NodeId,
    /// Is to own them.
    pub to: NodeId,
    /// The slots, at least one.
    pub slots: Ranges,
}

/// Why there is no plan. The operator's to mend, and trying the same again is of no use.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// More slots are asked for than the sources own.
    #[error("{wanted} slots are wanted, and the sources own {owned}")]
    TooFew {
        /// Asked for.
        wanted: usize,
        /// Owned by all sources.
        owned: usize,
    },
    /// A weight is negative or no number.
    #[error("the weight of {0} is not a number from 0 up")]
    Weight(NodeId),
    /// No primary would own anything.
    #[error("the weights of all primaries are 0: nobody could own the slots")]
    NoWeight,
    /// A slot to be moved has no owner among the sources.
    #[error("slot {0} belongs to none of the sources")]
    NotOwned(Slot),
}

/// How many slots these are.
pub fn count(ranges: &[(Slot, Slot)]) -> usize {
    ranges.iter().map(|(first, last)| usize::from(*last) + 1 - usize::from(*first)).sum()
}

/// The slots, in the order of the ranges.
pub fn each(ranges: &[(Slot, Slot)]) -> impl Iterator<Item = Slot> {
    ranges.iter().flat_map(|(first, last)| *first..=*last)
}

/// All slots over so many primaries, one range for each, as `redis-cli --cluster create` has them. With more primaries than slots the
/// last ones get none.
pub fn spread(primaries: usize) -> Vec<Ranges> {
    let mut first = 0;
    (1..=primaries)
        .map(|nth| {
            // To the nearest: 5461, 5462 and 5461 of three.
            let end = ((2 * SLOT_COUNT * nth + primaries) / (2 * primaries)).min(SLOT_COUNT);
            let range = (first, end);
            first = end;
            if range.0 == range.1 { Ranges::new() } else { vec![(range.0 as Slot, (range.1 - 1) as Slot)] }
        })
        .collect()
}

/// A primary for each replica, by number: each gets as many as the others, and rather one on another host. Without primaries
/// there is nobody to follow, and the answer is empty.
pub fn place_replicas<H: PartialEq>(primaries: &[H], replicas: &[H]) -> Vec<usize> {
    let mut followers = vec![0usize; primaries.len()];
    let choose = |host: &H| {
        let order = |at: &usize| (followers[*at], primaries[*at] == *host, *at);
        let chosen = (0..primaries.len()).min_by_key(order)?;
        followers[chosen] += 1;
        Some(chosen)
    };
    replicas.iter().map_while(choose).collect()
}

/// Takes `wanted` slots from the sources, from each in proportion to what it owns, for `to`.
///
/// # Errors
/// [`PlanError::TooFew`].
pub fn take(sources: &[Share], wanted: usize, to: NodeId) -> Result<Vec<Move>, PlanError> {
    let sources: Vec<&Share> = sources.iter().filter(|share| share.node != to).collect();
    let owned: Vec<usize> = sources.iter().map(|share| count(&share.slots)).collect();
    let total: usize = owned.iter().sum();
    if wanted > total {
        return Err(PlanError::TooFew { wanted, owned: total });
    }
    let weights: Vec<f64> = owned.iter().map(|owned| *owned as f64).collect();
    let parts = apportion(wanted, &weights, &owned);
    let mut moves = Vec::new();
    for (share, part) in sources.iter().zip(parts) {
        if part > 0 {
            moves.push(Move { from: share.node, to, slots: give(&mut share.slots.clone(), part) });
        }
    }
    Ok(moves)
}

/// Moves these very slots to `to`. Those that it owns already stay, so the same plan can be asked for again after an interruption.
///
/// # Errors
/// [`PlanError::NotOwned`].
pub fn pick(sources: &[Share], wanted: &[(Slot, Slot)], to: NodeId) -> Result<Vec<Move>, PlanError> {
    let mut slots: BTreeMap<NodeId, Vec<Slot>> = BTreeMap::new();
    for slot in each(wanted) {
        let owns = |share: &&Share| share.slots.iter().any(|(first, last)| (*first..=*last).contains(&slot));
        let owner = sources.iter().find(owns).ok_or(PlanError::NotOwned(slot))?;
        if owner.node != to {
            slots.entry(owner.node).or_default().push(slot);
        }
    }
    Ok(slots.into_iter().map(|(from, slots)| Move { from, to, slots: ranges_of(slots) }).collect())
}

/// Moves as few slots as it takes until each primary owns what its weight says. Nothing moves while no primary is off by more than
/// `threshold_percent` of that; one of weight 0 that owns slots is always off.
///
/// # Errors
/// [`PlanError::Weight`], [`PlanError::NoWeight`].
pub fn rebalance(shares: &[Share], threshold_percent: f64, uses_empty: bool) -> Result<Vec<Move>, PlanError> {
    let takes_part = |share: &&Share| !share.slots.is_empty() || share.weight.is_some() || uses_empty;
    let mut parts: Vec<(&Share, Ranges)> =
        shares.iter().filter(takes_part).map(|share| (share, share.slots.clone())).collect();
    parts.sort_by_key(|(share, _)| share.node);
    let weights: Vec<f64> = parts.iter().map(|(share, _)| share.weight.unwrap_or(1.0)).collect();
    for ((share, _), weight) in parts.iter().zip(&weights) {
        if !weight.is_finite() || *weight < 0.0 {
            return Err(PlanError::Weight(share.node));
        }
    }
    let owned: Vec<usize> = parts.iter().map(|(_, slots)| count(slots)).collect();
    let total: usize = owned.iter().sum();
    if total == 0 {
        return Ok(Vec::new());
    }
    if weights.iter().all(|weight| *weight == 0.0) {
        return Err(PlanError::NoWeight);
    }
    let goals = apportion(total, &weights, &owned);
    let is_off = |(owned, goal): (&usize, &usize)| {
        owned.abs_diff(*goal) as f64 * 100.0 > threshold_percent * *goal as f64
    };
    if !owned.iter().zip(&goals).any(is_off) {
        return Ok(Vec::new());
    }
    let by_size = |mut nodes: Vec<(usize, usize)>| {
        nodes.sort_by_key(|(at, amount)| (std::cmp::Reverse(*amount), *at));
        nodes
    };
    let over = |at: usize| owned[at].saturating_sub(goals[at]);
    let under = |at: usize| goals[at].saturating_sub(owned[at]);
    let among = |amount: &dyn Fn(usize) -> usize| {
        by_size((0..parts.len()).map(|at| (at, amount(at))).filter(|(_, amount)| *amount > 0).collect())
    };
    let (givers, mut takers) = (among(&over), among(&under));
    let mut moves = Vec::new();
    for (giver, mut left) in givers {
        // What all have too much is what the others lack, so whoever gives finds a taker.
        while let Some((taker, lacks)) = takers.first_mut().filter(|_| left > 0) {
            let amount = left.min(*lacks);
            let slots = give(&mut parts[giver].1, amount);
            moves.push(Move { from: parts[giver].0.node, to: parts[*taker].0.node, slots });
            left -= amount;
            *lacks -= amount;
            if *lacks == 0 {
                takers.remove(0);
            }
        }
    }
    Ok(moves)
}

/// Divides `total` by weight: each part is the exact share rounded down or up, together they are `total`. Of equal remainders the
/// ones that own more get the rest, so that less has to move.
fn apportion(total: usize, weights: &[f64], owned: &[usize]) -> Vec<usize> {
    let sum: f64 = weights.iter().sum();
    if sum <= 0.0 {
        return vec![0; weights.len()];
    }
    let exact: Vec<f64> = weights.iter().map(|weight| total as f64 * (weight / sum)).collect();
    let mut parts: Vec<usize> = exact.iter().map(|exact| *exact as usize).collect();
    let mut order: Vec<usize> = (0..weights.len()).filter(|at| weights[*at] > 0.0).collect();
    order.sort_by(|a, b| {
        let remainder = |at: &usize| exact[*at] - exact[*at].floor();
        remainder(b).total_cmp(&remainder(a)).then(owned[*b].cmp(&owned[*a])).then(a.cmp(b))
    });
    let mut rest = total.saturating_sub(parts.iter().sum());
    // Rounding of the shares may leave more or less than one each: go round until nothing is left.
    while rest > 0 {
        for at in &order {
            if rest > 0 {
                parts[*at] += 1;
                rest -= 1;
            }
        }
    }
    parts
}

/// Takes so many slots out of the ranges: whole ranges first, the shortest ones, then the end of one. So both sides have few ranges.
fn give(ranges: &mut Ranges, mut amount: usize) -> Ranges {
    let mut given = Vec::new();
    while amount > 0 {
        let Some(at) = (0..ranges.len()).min_by_key(|at| (count(&ranges[*at..=*at]), *at)) else { break };
        let (first, last) = ranges[at];
        let length = usize::from(last) + 1 - usize::from(first);
        if length <= amount {
            ranges.remove(at);
            given.push((first, last));
            amount -= length;
        } else {
            let cut = last - (amount as Slot - 1);
            ranges[at] = (first, cut - 1);
            given.push((cut, last));
            amount = 0;
        }
    }
    ranges_of(each(&given))
}

#[cfg(test)]
mod tests;
