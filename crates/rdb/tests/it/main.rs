//! DUMP payloads against recorded ones of real servers, and against mutations of valid ones.
//!
//! The recordings in `fixtures/` come from `fixtures/generate.py`; no server is needed here.

mod canonical;
mod hostile;
mod peers;
mod rules;
mod samples;
