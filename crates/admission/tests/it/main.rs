//! Fleets in virtual time: the parts of this crate together, at the scale they are made for.

#[cfg(test)]
mod events;
#[cfg(test)]
mod fleet;
#[cfg(test)]
mod storm;
