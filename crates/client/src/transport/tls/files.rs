//! Certificates and keys as texts: where they come from, and whether they were written anew.
//!
//! Owns the reading, and the reading again when a file changes, for whichever library ([`Loaded`]). Does not own what a library makes of
//! the texts.

use super::{Pem, TlsConfigError, TlsOptions};
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// What a library makes of all certificates.
type Load<T> = fn(&TlsOptions) -> Result<T, TlsConfigError>;

/// What a library has made of the certificates, and makes anew when one of their files changes.
pub(super) struct Loaded<T> {
    options: TlsOptions,
    load: Load<T>,
    /// The last that could be made, and the marks of the files that it was made of.
    last: Mutex<(T, Vec<Option<Stamp>>)>,
}

impl<T: Clone + Send + 'static> Loaded<T> {
    /// Reads all certificates.
    pub(super) fn new(options: TlsOptions, load: Load<T>) -> Result<Arc<Self>, TlsConfigError> {
        let stamps = stamps(&options);
        let last = Mutex::new((load(&options)?, stamps));
        Ok(Arc::new(Self { options, load, last }))
    }

    /// What a handshake uses now: made anew if a file has changed and can be used.
    pub(super) async fn now(self: &Arc<Self>) -> T {
        let (present, known) = self.last().clone();
        if known.is_empty() {
            return present;
        }
        let this = Arc::clone(self);
        let read = tokio::task::spawn_blocking(move || {
            let found = stamps(&this.options);
            if found == known {
                return present;
            }
            // While certificates are replaced the files may not fit each other; the next dial looks again.
            let Ok(fresh) = (this.load)(&this.options) else { return present };
            *this.last() = (fresh.clone(), found);
            fresh
        });
        // An error is the runtime's end.
        read.await.unwrap_or_else(|_| self.last().0.clone())
    }

    /// A panic elsewhere leaves it whole: it is replaced at once.
    fn last(&self) -> MutexGuard<'_, (T, Vec<Option<Stamp>>)> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> fmt::Debug for Loaded<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loaded").field("options", &self.options).finish_non_exhaustive()
    }
}

/// What tells that a file was written anew.
type Stamp = (SystemTime, u64);

/// The marks of all files that the options name; empty when they name none.
fn stamps(options: &TlsOptions) -> Vec<Option<Stamp>> {
    let identity = options.identity.iter().flat_map(|(chain, key)| [chain, key]);
    let files = options.authorities.iter().chain(identity).filter_map(Pem::file);
    let stamp = |path: &Path| {
        let metadata = std::fs::metadata(path).ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    };
    files.map(stamp).collect()
}

pub(super) fn read(what: &'static str, source: &Pem) -> Result<Arc<[u8]>, TlsConfigError> {
    match source {
        Pem::Text(text) => Ok(Arc::clone(text)),
        Pem::File(path) => match std::fs::read(path) {
            Ok(text) => Ok(text.into()),
            Err(error) => Err(pem_error(what, source, &error.to_string())),
        },
    }
}

pub(super) fn pem_error(what: &'static str, source: &Pem, reason: &str) -> TlsConfigError {
    let from = match source {
        Pem::File(path) => format!("'{}'", path.display()),
        Pem::Text(_) => "the given text".to_owned(),
    };
    TlsConfigError::Pem { what, from, reason: reason.to_owned() }
}
