//! Both machines together under losses and crashes, and each alone where an order of events matters.

mod histories;
mod source;
mod target;
mod world;

use super::*;

const fn id(n: u8) -> NodeId {
    NodeId::from_bytes([n; NodeId::BYTES])
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}
