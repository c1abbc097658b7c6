//! The codec against any split of any stream, hostile input, and itself.

mod driver;
mod frames;
mod requests;
mod texts;
