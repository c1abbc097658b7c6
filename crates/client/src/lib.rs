//! The client for applications.
#![warn(missing_docs)]
#![forbid(unsafe_code)]
