//! Finds the real servers and clients that Towline is compared with.
//!
//! Owns: the names of the peers and where they come from: the environment first, then the installer beside the
//! checkout. It starts none of them.

use anyhow::{Context, bail};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// A foreign program that tests need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// `redis-server` 7.0
    Redis70,
    /// `redis-server` 8.2
    Redis82,
    /// `valkey-server` 9.1
    Valkey91,
    /// `redis-cli`
    RedisCli,
    /// A Python that has redis-py
    Python,
}

impl Peer {
    /// The variable that names this peer's path, in the environment and in what the installer prints.
    pub fn variable(self) -> &'static str {
        match self {
            Self::Redis70 => "REDIS70",
            Self::Redis82 => "REDIS82",
            Self::Valkey91 => "VALKEY91",
            Self::RedisCli => "REDIS_CLI",
            Self::Python => "PEER_PYTHON",
        }
    }

    /// Where this peer's program is.
    ///
    /// # Errors
    /// The environment does not name it and there is no installer, or the installer fails.
    pub fn path(self) -> anyhow::Result<PathBuf> {
        let variable = self.variable();
        if let Some(path) = std::env::var_os(variable).filter(|path| !path.is_empty()) {
            return Ok(path.into());
        }
        let installed = installed().as_ref().map_err(|error| {
            anyhow::anyhow!("set {variable} to the program's path, or provide the peers' installer: {error}")
        })?;
        installed
            .get(variable)
            .cloned()
            .with_context(|| format!("the peers' installer does not know {variable}"))
    }
}

/// The root of the checkout.
pub fn checkout() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("invariant: tests/ is inside the checkout")
}

/// What the installer printed, run once in this process.
fn installed() -> &'static Result<BTreeMap<String, PathBuf>, String> {
    static INSTALLED: OnceLock<Result<BTreeMap<String, PathBuf>, String>> = OnceLock::new();
    INSTALLED.get_or_init(|| install().map_err(|error| format!("{error:#}")))
}

fn install() -> anyhow::Result<BTreeMap<String, PathBuf>> {
    let script = checkout().join("../shared/peers/install");
    let output =
        Command::new(&script).output().with_context(|| format!("cannot run {}", script.display()))?;
    if !output.status.success() {
        bail!("{} failed: {}", script.display(), String::from_utf8_lossy(&output.stderr).trim_end());
    }
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    let pairs = lines.lines().filter_map(|line| line.split_once('='));
    Ok(pairs.map(|(name, path)| (name.to_owned(), PathBuf::from(path))).collect())
}
