//! `MOVED` and `ASK`.
//!
//! Owns the reading of their text. Does not own what follows from them.
//!
//! Source: Redis Cluster specification, "MOVED Redirection" and "ASK redirection".

use crate::address::Address;
use crate::slot::{SLOT_COUNT, Slot};

/// What a redirect asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RedirectKind {
    /// The slot belongs to another node from now on.
    Moved,
    /// This one command goes to another node, which has to be told so by `ASKING`.
    Ask,
}

/// Where a redirect leads.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum RedirectTarget {
    /// To this address.
    Address(Address),
    /// To this port of the host that was asked: the server left the host empty, because it does not know it.
    SamePort(u16),
    /// Nobody can tell: the server wrote `?`, or something that is no address.
    Unknown,
}

/// One redirect: `MOVED 3999 127.0.0.1:6381`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Redirect {
    /// What it asks for.
    pub kind: RedirectKind,
    /// The slot of the command's keys.
    pub slot: Slot,
    /// Where it leads.
    pub target: RedirectTarget,
}

impl Redirect {
    /// Reads the text of an error reply; `None` if it is no redirect.
    ///
    /// ```
    /// use towline_cluster::{Redirect, RedirectKind, RedirectTarget};
    ///
    /// let redirect = Redirect::parse("ASK 3999 :6381").expect("it is one");
    /// assert_eq!((redirect.kind, redirect.slot), (RedirectKind::Ask, 3999));
    /// assert_eq!(redirect.target, RedirectTarget::SamePort(6381));
    /// assert_eq!(Redirect::parse("ERR no such key"), None);
    /// ```
    pub fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_ascii_whitespace();
        let kind = match words.next()? {
            "MOVED" => RedirectKind::Moved,
            "ASK" => RedirectKind::Ask,
            _ => return None,
        };
        let digits = words.next()?;
        let slot = digits.parse().ok().filter(|slot| usize::from(*slot) < SLOT_COUNT)?;
        Some(Self { kind, slot, target: target(words.next().unwrap_or_default()) })
    }

    /// Where it leads, given who was asked; `None` if nobody can tell.
    pub fn address(&self, asked: &Address) -> Option<Address> {
        match &self.target {
            RedirectTarget::Address(address) => Some(address.clone()),
            RedirectTarget::SamePort(port) => Address::new(&asked.host, *port),
            RedirectTarget::Unknown => None,
        }
    }
}

fn target(text: &str) -> RedirectTarget {
    if let Some(address) = Address::parse(text.as_bytes()) {
        return RedirectTarget::Address(address);
    }
    match text.rsplit_once(':') {
        Some(("", port)) => match port.parse() {
            Ok(port) if port > 0 => RedirectTarget::SamePort(port),
            _ => RedirectTarget::Unknown,
        },
        _ => RedirectTarget::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_form_of_a_redirect_is_read() {
        let asked = Address::new("seed.example", 7000).unwrap();
        for (text, expected) in [
            ("MOVED 3999 127.0.0.1:6381", Some("Moved 3999 127.0.0.1:6381")),
            ("ASK 0 node-2.Example.com:6379", Some("Ask 0 node-2.example.com:6379")),
            ("MOVED 16383 2001:db8::1:6379", Some("Moved 16383 [2001:db8::1]:6379")),
            ("MOVED 16383 [2001:db8::1]:6379", Some("Moved 16383 [2001:db8::1]:6379")),
            ("MOVED 1 :6381", Some("Moved 1 seed.example:6381")),
            ("MOVED 1 ?:6381", Some("Moved 1 -")),
            ("MOVED 1 :0", Some("Moved 1 -")),
            ("MOVED 1 :port", Some("Moved 1 -")),
            ("MOVED 1", Some("Moved 1 -")),
            ("MOVED 16384 127.0.0.1:1", None),
            ("MOVED -1 127.0.0.1:1", None),
            ("MOVED x 127.0.0.1:1", None),
            ("MOVED", None),
            ("moved 1 127.0.0.1:1", None),
            ("ERR MOVED 1 127.0.0.1:1", None),
            ("", None),
        ] {
            let read = Redirect::parse(text).map(|redirect| {
                let to = redirect.address(&asked).map_or_else(|| "-".to_owned(), |to| to.to_string());
                format!("{:?} {} {to}", redirect.kind, redirect.slot)
            });
            assert_eq!(read.as_deref(), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(MOVED|ASK) [0-9]{0,6} [a-f0-9:.?\\[\\]]{0,30}") {
            let asked = Address::new("h", 1).unwrap();
            let _ = Redirect::parse(&text).map(|redirect| redirect.address(&asked));
        }
    }
}
