//! The part of a URL that is about sentinels.
//!
//! Owns its options and what the path means. Does not own the hosts, nor what is about the servers.

use super::{UrlError, authenticated, bytes, flag, text};
use crate::primary_options::SentinelOptions;
use crate::transport::TlsOptions;

/// Port of a sentinel when nothing else is said.
pub(super) const PORT_DEFAULT: u16 = 26379;

/// The options, still encoded.
#[derive(Default)]
pub(super) struct Part<'a> {
    pub(super) service: Option<&'a str>,
    pub(super) username: Option<&'a str>,
    pub(super) password: Option<&'a str>,
    pub(super) tls: Option<&'a str>,
    /// Further sentinels.
    pub(super) nodes: Vec<&'a str>,
}

impl<'a> Part<'a> {
    /// What the options and the path amount to, and the database, still in digits. The path is `name/database`, or `database`
    /// if the name is an option. `has_tls`: the servers speak TLS.
    pub(super) fn options(
        &self,
        path: Option<&'a str>,
        has_tls: bool,
    ) -> Result<(SentinelOptions, Option<&'a str>), UrlError> {
        let path = path.unwrap_or_default();
        let (name, database) = match (self.service, path.split_once('/')) {
            (Some(name), _) => (name, path),
            (None, Some(parts)) => parts,
            (None, None) => (path, ""),
        };
        let name = text("name of the primary", name)?;
        if name.is_empty() {
            return Err(UrlError::NoPrimaryName);
        }
        let mut sentinel = SentinelOptions::new(name);
        match (self.username, self.password) {
            (None, None) => {}
            (Some(_), None) => return Err(UrlError::SentinelCredentials),
            (user, Some(password)) => {
                let user = text("option `sentinel_username`", user.unwrap_or_default())?;
                let password = bytes("option `sentinel_password`", password)?;
                sentinel = sentinel.credentials(authenticated(&user, password));
            }
        }
        if self.tls.is_some() {
            sentinel = match (flag("sentinel_tls", self.tls, false)?, has_tls) {
                // As with the servers, with their authorities, unless something else is said.
                (true, true) => sentinel,
                (true, false) => sentinel.tls(TlsOptions::new()),
                (false, _) => sentinel.plain(),
            };
        }
        Ok((sentinel, Some(database).filter(|database| !database.is_empty())))
    }

    /// None of them is given.
    pub(super) fn none(&self) -> Result<(), UrlError> {
        let options = [
            ("sentinelServiceName", self.service),
            ("sentinel_username", self.username),
            ("sentinel_password", self.password),
            ("sentinel_tls", self.tls),
            ("node", self.nodes.first().copied()),
        ];
        match options.into_iter().find(|(_, value)| value.is_some()) {
            Some((name, _)) => Err(UrlError::NoSentinel { name }),
            None => Ok(()),
        }
    }
}
