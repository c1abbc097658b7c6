//! A cluster in one thread: model servers, their bridges, the router between them.
//!
//! Each case shows one rule; the property at the end moves slots, cuts connections and lets nodes disagree at random,
//! and then looks at every command's fate and at the order in which commands ran.

mod cases;
mod lanes;
mod random;
mod reads;
mod world;
