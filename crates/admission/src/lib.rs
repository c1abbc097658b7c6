//! When and how fast this software dials, and what a listener does when too many dial at once.
#![warn(missing_docs)]
#![forbid(unsafe_code)]
