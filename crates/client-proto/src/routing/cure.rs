//! What to do about a refusal that proves that nothing ran.
//!
//! Owns the one decision. Does not own waiting, nor where a redirect leads.
//!
//! A command that was refused in this way is as good as not sent, so neither the retry budget nor
//! [`crate::Flags::NO_RETRY`] keeps it from following a redirect: the client had the wrong address. Waits end with the
//! command's deadline; their pace bounds what they cost. Redirects are bounded by number, because nodes that send a
//! command back and forth would be asked without end.

use crate::server_error::ServerClass;

/// A command follows so many redirects in all; then the redirect is its answer. With the waits from
/// [`REDIRECTS_AT_ONCE`] on that takes about four seconds: longer than nodes disagree after a failover.
pub const REDIRECTS_MAX: u8 = 16;

/// So many redirects are followed without a wait: to the new owner, to where a slot is imported, and back. Who is sent on
/// more often is in a loop, or in the middle of a failover.
pub const REDIRECTS_AT_ONCE: u8 = 3;

/// What the decision depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// What the server said.
    pub class: ServerClass,
    /// How many redirects the command has followed before.
    pub redirects: u8,
    /// The caller wants no second attempt where a first one reached a server.
    pub no_retry: bool,
}

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cure {
    /// Go where the server says.
    Follow {
        /// Without a wait.
        is_at_once: bool,
    },
    /// Wait, and ask again: the same node, or whoever has the slot by then.
    Wait,
    /// Nothing: the refusal is the answer.
    Fail,
}

/// What to do about a refusal.
pub const fn cure(refusal: &Refusal) -> Cure {
    match refusal.class {
        ServerClass::Moved | ServerClass::Ask => {
            if refusal.redirects >= REDIRECTS_MAX {
                Cure::Fail
            } else {
                Cure::Follow { is_at_once: refusal.redirects < REDIRECTS_AT_ONCE }
            }
        }
        _ if refusal.no_retry => Cure::Fail,
        ServerClass::TryAgain
        | ServerClass::ClusterDown
        | ServerClass::Loading
        | ServerClass::ScriptBusy
        | ServerClass::MasterDown
        | ServerClass::ReadOnly
        | ServerClass::NoReplicas => Cure::Wait,
        // The connection was refused, not the command: a new one is made, by the rules of a single endpoint.
        ServerClass::TooManyClients | ServerClass::Answer => Cure::Fail,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Columns: redirects 0, 2, 3, 15, 16; then the same with `no_retry`. `>` follow at once, `~` follow after a wait, `w` wait,
    /// `.` fail.
    const TABLE: &[(ServerClass, &str)] = &[
        (ServerClass::Moved, ">>~~.>>~~."),
        (ServerClass::Ask, ">>~~.>>~~."),
        (ServerClass::TryAgain, "wwwww....."),
        (ServerClass::ClusterDown, "wwwww....."),
        (ServerClass::Loading, "wwwww....."),
        (ServerClass::ScriptBusy, "wwwww....."),
        (ServerClass::MasterDown, "wwwww....."),
        (ServerClass::ReadOnly, "wwwww....."),
        (ServerClass::NoReplicas, "wwwww....."),
        (ServerClass::TooManyClients, ".........."),
        (ServerClass::Answer, ".........."),
    ];

    #[test]
    fn the_whole_product_is_decided_as_the_table_says() {
        for (class, row) in TABLE {
            let questions = [false, true].into_iter().flat_map(|no_retry| {
                [0, 2, 3, 15, 16].map(|redirects| Refusal { class: *class, redirects, no_retry })
            });
            for (refusal, mark) in questions.zip(row.chars()) {
                let expected = match mark {
                    '>' => Cure::Follow { is_at_once: true },
                    '~' => Cure::Follow { is_at_once: false },
                    'w' => Cure::Wait,
                    _ => Cure::Fail,
                };
                assert_eq!(cure(&refusal), expected, "{refusal:?}");
            }
        }
    }
}
