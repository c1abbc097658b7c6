//! The names of the log's files.

use super::rewrite::BaseForm;

/// Names made from `appendfilename`, as Redis makes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names(String);

impl Names {
    /// For a log of this `appendfilename`, for example `appendonly.aof`: a name, no path.
    #[must_use]
    pub fn new(append_filename: impl Into<String>) -> Self {
        Self(append_filename.into())
    }

    /// The name of the whole log, and of the single file of a Redis before 7.
    #[must_use]
    pub fn single_log(&self) -> &str {
        &self.0
    }

    /// The manifest.
    #[must_use]
    pub fn manifest(&self) -> String {
        format!("{}.manifest", self.0)
    }

    /// Where the next manifest is written before it gets its name.
    #[must_use]
    pub fn manifest_draft(&self) -> String {
        format!("temp-{}.manifest", self.0)
    }

    /// Where a base is written before it gets its name.
    #[must_use]
    pub fn base_draft(&self) -> String {
        format!("temp-{}.base", self.0)
    }

    /// A base.
    #[must_use]
    pub fn base(&self, sequence: u64, form: BaseForm) -> String {
        let extension = match form {
            BaseForm::Rdb => "rdb",
            BaseForm::Commands => "aof",
        };
        format!("{}.{sequence}.base.{extension}", self.0)
    }

    /// An increment.
    #[must_use]
    pub fn increment(&self, sequence: u64) -> String {
        format!("{}.{sequence}.incr.aof", self.0)
    }

    /// What an increment of which nobody knows is renamed to, so that nothing in it is lost.
    #[must_use]
    pub fn set_aside(&self, name: &str) -> String {
        format!("orphan-{name}")
    }

    /// The number in the name of a base.
    pub(super) fn base_sequence(&self, name: &str) -> Option<u64> {
        let rest = self.numbered(name)?;
        let number = rest.strip_suffix(".base.rdb").or_else(|| rest.strip_suffix(".base.aof"))?;
        canonical(number)
    }

    /// The number in the name of an increment.
    pub(super) fn increment_sequence(&self, name: &str) -> Option<u64> {
        canonical(self.numbered(name)?.strip_suffix(".incr.aof")?)
    }

    fn numbered<'a>(&self, name: &'a str) -> Option<&'a str> {
        name.strip_prefix(self.0.as_str())?.strip_prefix('.')
    }
}

/// A number as it is written in a name: digits only, no zero in front.
fn canonical(text: &str) -> Option<u64> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    text.parse().ok().filter(|_| is_number)
}
