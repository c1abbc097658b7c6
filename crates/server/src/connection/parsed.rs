//! Commands in the bytes that were read.
//!
//! Owns: where they lie. Does **not** own parsing (see `towline_resp`).

use crate::batch;
use crate::command::{Args, Row};
use std::sync::Arc;
use towline_resp::request::ArgRange;
use towline_spec::Command;

/// What [`Connection::execute_run`] leaves behind.
pub(super) enum Step {
    /// There may be more from here on.
    More(usize),
    /// Nothing more is complete; this part of the data is to be kept.
    Rest { from: usize, to: usize },
}

/// Where a parsed command lies.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parsed {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) from: usize,
    pub(super) to: usize,
}

impl Parsed {
    /// Its arguments.
    #[inline]
    pub(super) fn args<'a>(
        &self,
        data: &'a [u8],
        ranges: &'a [ArgRange],
        owned: &'a [Arc<Vec<u8>>],
    ) -> Args<'a> {
        Args::new(&data[self.start..self.end], &ranges[self.from..self.to], owned)
    }
}

/// The command and its row, if it is simple.
#[inline]
pub(super) fn simple_row(args: Args<'_>) -> Option<(&'static Command, &'static Row)> {
    let command = towline_spec::lookup(args.get(0))?;
    batch::simple(command, args.len()).map(|row| (command, row))
}
