//! Where parameters come from: a file, the environment, flags; later ones win.
//!
//! Owns: reading the three sources and saying what is wrong with them. Does **not** own printing that, nor the process's
//! environment and arguments: those are given.

use super::param::Param;
use super::table::{PARAMS, UNSUPPORTED, find};
use super::{Config, Persistence, split_words};
use std::path::{Path, PathBuf};

/// `include` directives within one another that are followed; more are taken for a cycle.
const INCLUDE_DEPTH_MAX: usize = 16;
/// Bytes of a file that are read at most: a configuration is small, a wrong path may not be.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// What the names of environment variables begin with.
const ENV_PREFIX: &str = "TOWLINE_";

/// What is wrong with a configuration: one line that says where, what, and what to do. All are the caller's to mend.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A file cannot be read.
    #[error("{path}: cannot read the file: {reason}")]
    Unreadable {
        /// The file.
        path: String,
        /// The system's words.
        reason: String,
    },
    /// `include` directives go too deep.
    #[error("{at}: files include each other more than {INCLUDE_DEPTH_MAX} deep; is there a cycle?")]
    IncludedTooDeep {
        /// Where.
        at: String,
    },
    /// A quote is not closed.
    #[error("{at}: unbalanced quotes")]
    Quotes {
        /// Where.
        at: String,
    },
    /// No parameter has this name.
    #[error("{at}: unknown parameter '{name}'{}", suggest(name))]
    Unknown {
        /// Where.
        at: String,
        /// The name that was given.
        name: String,
    },
    /// The parameter exists in Redis, and not here.
    #[error("{at}: '{name}' is not supported: {reason}")]
    Unsupported {
        /// Where.
        at: String,
        /// The parameter.
        name: String,
        /// What is missing.
        reason: String,
    },
    /// The parameter does not take this value.
    #[error("{at}: invalid value for '{name}': {reason}")]
    Invalid {
        /// Where.
        at: String,
        /// The parameter.
        name: String,
        /// Why.
        reason: String,
    },
    /// An argument of the command line that is neither a flag nor a flag's value.
    #[error("unexpected argument '{0}'; parameters are given as '--name value'")]
    UnexpectedArgument(String),
    /// Parameters that do not go together.
    #[error("{0}")]
    Conflict(&'static str),
}

fn suggest(name: &str) -> String {
    nearest(name).map_or_else(String::new, |near| format!("; did you mean '{near}'?"))
}

impl Config {
    /// The defaults of a process, changed by a file in `redis.conf` syntax, then by the environment (`TOWLINE_MAXMEMORY_POLICY` is
    /// `maxmemory-policy`; other variables are ignored), then by flags (`--maxmemory-policy allkeys-lru`, or with `=`).
    /// Values of one parameter on several lines are applied one after the other.
    ///
    /// # Errors
    /// [`ConfigError`] for the first thing that is wrong; the caller prints it and ends.
    pub fn load(
        file: Option<&Path>,
        env: impl IntoIterator<Item = (String, String)>,
        flags: impl IntoIterator<Item = String>,
    ) -> Result<Self, ConfigError> {
        let mut config = Self { persistence: Persistence::of_a_process(), ..Self::default() };
        if let Some(file) = file {
            apply_file(&mut config, file, 0, &mut false)?;
            config.file = Some(std::path::absolute(file).unwrap_or_else(|_| file.to_owned()));
        }
        apply_env(&mut config, env)?;
        apply_flags(&mut config, flags)?;
        config.check()?;
        Ok(config)
    }

    /// What no parameter can check alone.
    fn check(&self) -> Result<(), ConfigError> {
        let has_identity = self.tls_cert_file.is_some() && self.tls_key_file.is_some();
        if self.tls_port != 0 && !has_identity {
            return Err(ConfigError::Conflict("tls-port needs tls-cert-file and tls-key-file"));
        }
        if self.tls_port != 0
            && self.tls_auth_clients == super::TlsAuthClients::Yes
            && self.tls_ca_cert_file.is_none()
        {
            return Err(ConfigError::Conflict(
                "tls-port with tls-auth-clients yes needs tls-ca-cert-file; set 'tls-auth-clients no' if clients \
                 have no certificates",
            ));
        }
        if self.port == 0 && self.tls_port == 0 && self.unixsocket.is_none() {
            return Err(ConfigError::Conflict(
                "nothing to listen on: port and tls-port are 0 and there is no unixsocket",
            ));
        }
        Ok(())
    }
}

/// `has_saves` says whether a `save` line came before: the first one replaces the defaults, the others add to it.
fn apply_file(
    config: &mut Config,
    path: &Path,
    depth: usize,
    has_saves: &mut bool,
) -> Result<(), ConfigError> {
    let shown = path.display().to_string();
    let content = read(path).map_err(|reason| ConfigError::Unreadable { path: shown.clone(), reason })?;
    for (number, line) in content.split(|&byte| byte == b'\n').enumerate() {
        let at = || format!("{shown}:{}", number + 1);
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        let words = split_words(line).ok_or_else(|| ConfigError::Quotes { at: at() })?;
        let Some((name, values)) = words.split_first() else { continue };
        if name.eq_ignore_ascii_case(b"include") && !values.is_empty() {
            if depth >= INCLUDE_DEPTH_MAX {
                return Err(ConfigError::IncludedTooDeep { at: at() });
            }
            for value in values {
                let path = PathBuf::from(String::from_utf8_lossy(value).into_owned());
                apply_file(config, &path, depth + 1, has_saves)?;
            }
            continue;
        }
        let is_save = name.eq_ignore_ascii_case(b"save");
        let before = if is_save && *has_saves { config.persistence.save.clone() } else { Vec::new() };
        *has_saves |= is_save;
        apply(config, at, name, values)?;
        if !config.persistence.save.is_empty() {
            config.persistence.save.splice(..0, before);
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    use std::io::Read as _;
    let mut content = Vec::new();
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut content).map_err(|error| error.to_string())?;
    if content.len() as u64 > FILE_BYTES_MAX {
        return Err(format!("it is larger than {FILE_BYTES_MAX} bytes, this is no configuration"));
    }
    Ok(content)
}

fn apply_env(
    config: &mut Config,
    env: impl IntoIterator<Item = (String, String)>,
) -> Result<(), ConfigError> {
    // Sorted, so that the outcome does not depend on the environment's order.
    let mut variables: Vec<_> = env.into_iter().filter(|(name, _)| name.starts_with(ENV_PREFIX)).collect();
    variables.sort();
    for (variable, value) in variables {
        if is_service_link(&variable, &value) {
            continue;
        }
        let name = variable[ENV_PREFIX.len()..].to_ascii_lowercase();
        let param = PARAMS.iter().find(|param| param.name.replace('-', "_") == name);
        let name = param.map_or_else(|| name.replace('_', "-"), |param| param.name.to_owned());
        let words = words_of_text(param, &value);
        apply(config, || format!("environment variable {variable}"), name.as_bytes(), &words)?;
    }
    Ok(())
}

/// Whether Kubernetes made the variable for a service that is called "towline": `TOWLINE_PORT=tcp://10.0.0.1:6379`,
/// `TOWLINE_SERVICE_HOST`, `TOWLINE_PORT_6379_TCP_ADDR`.
fn is_service_link(variable: &str, value: &str) -> bool {
    let rest = &variable[ENV_PREFIX.len()..];
    rest.starts_with("SERVICE_HOST")
        || rest.starts_with("SERVICE_PORT")
        || rest.starts_with("PORT_")
        || (rest == "PORT" && value.contains("://"))
}

/// A value that was given as one text, as the words of a line.
fn words_of_text(param: Option<&Param>, text: &str) -> Vec<Vec<u8>> {
    match param.map(|param| param.set) {
        Some(super::param::Set::Words(_)) => {
            let words = split_words(text.as_bytes()).filter(|words| !words.is_empty());
            words.unwrap_or_else(|| vec![text.as_bytes().to_vec()])
        }
        _ => vec![text.as_bytes().to_vec()],
    }
}

fn apply_flags(config: &mut Config, flags: impl IntoIterator<Item = String>) -> Result<(), ConfigError> {
    let mut flags = flags.into_iter().peekable();
    while let Some(flag) = flags.next() {
        let Some(flag) = flag.strip_prefix("--").filter(|name| !name.is_empty()) else {
            return Err(ConfigError::UnexpectedArgument(flag));
        };
        let (name, first) = match flag.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (flag, None),
        };
        let values: Vec<String> = match first {
            Some(value) => vec![value],
            None => std::iter::from_fn(|| flags.next_if(|value| !value.starts_with("--"))).collect(),
        };
        let words = match values.as_slice() {
            [only] => words_of_text(find(name.as_bytes()), only),
            several => several.iter().map(|value| value.as_bytes().to_vec()).collect(),
        };
        apply(config, || format!("--{name}"), name.as_bytes(), &words)?;
    }
    Ok(())
}

fn apply(
    config: &mut Config,
    at: impl Fn() -> String,
    name: &[u8],
    words: &[Vec<u8>],
) -> Result<(), ConfigError> {
    let shown = String::from_utf8_lossy(name).into_owned();
    let Some(param) = find(name) else {
        let unsupported = UNSUPPORTED.iter().find(|(known, _)| name.eq_ignore_ascii_case(known.as_bytes()));
        return Err(match unsupported {
            Some((name, reason)) => {
                ConfigError::Unsupported { at: at(), name: (*name).into(), reason: (*reason).into() }
            }
            None => ConfigError::Unknown { at: at(), name: shown },
        });
    };
    param.set_words(config, words).map_err(|reason| ConfigError::Invalid {
        at: at(),
        name: shown,
        reason: reason.into_owned(),
    })
}

/// The parameter whose name is closest to `name`, if it is close enough to be meant.
fn nearest(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    let limit = (name.len() / 3).clamp(1, 4);
    let names = PARAMS.iter().flat_map(|param| std::iter::once(param.name).chain(param.alias));
    let (distance, nearest) = names
        .map(|known| (distance(name.as_bytes(), known.as_bytes()), known))
        .min_by_key(|&(distance, _)| distance)?;
    (distance <= limit).then_some(nearest)
}

/// Characters to insert, remove or replace to get from `a` to `b`.
fn distance(a: &[u8], b: &[u8]) -> usize {
    /// Longer names are no misspelling of a parameter.
    const LEN_MAX: usize = 64;
    if a.len() > LEN_MAX {
        return usize::MAX;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, byte) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, other) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(byte != other);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
