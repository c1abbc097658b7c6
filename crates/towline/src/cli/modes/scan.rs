//! `--scan`: the names of all keys, one a line.

use crate::cli::error::CliError;
use crate::cli::modes::Pages;
use crate::cli::options::{ScanOptions, Settings};
use crate::cli::session::Session;

/// Prints the keys page by page, with the settings' pause between pages.
///
/// # Errors
/// The server refused `SCAN`, the connection broke, or the output is closed.
pub(super) fn run(session: &mut Session, settings: &Settings, options: &ScanOptions) -> Result<(), CliError> {
    let mut pages = Pages::new(options);
    while let Some(keys) = pages.next(session)? {
        let lines: Vec<u8> = keys.iter().flat_map(|key| session.output().key(key)).collect();
        session.output().write(&lines)?;
        if let Some(interval) = settings.interval {
            std::thread::sleep(interval);
        }
    }
    Ok(())
}
