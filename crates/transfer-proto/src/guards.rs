//! Rules that others rest on, each with a switch.
//!
//! Owns the list. A test switches one off and must fail then: a rule that can be removed without a test noticing is
//! not tested. Everybody else leaves all of them on.

/// The switches. All on, except in tests of the tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guards {
    /// A target drops a HELLO that is older than one it has seen of the same life of its peer.
    pub attempts: bool,
    /// A target refuses earlier lives of a peer, and a new life ends the links of the earlier one.
    pub incarnations: bool,
    /// An initiator takes a WELCOME only as the answer to its present HELLO.
    pub echo: bool,
    /// A target posts only after CONFIRM.
    pub confirm: bool,
    /// Of two HELLOs that cross, the one of the higher node is answered.
    pub tie_break: bool,
    /// A HELLO that its sender has given up, as its WELCOME told, is dropped.
    pub abandoned: bool,
    /// A HELLO that comes twice is answered from memory.
    pub cached_reply: bool,
    /// Queue pairs begin at random packet numbers.
    pub random_psn: bool,
    /// A permit goes back whatever became of its attempt.
    pub permits: bool,
    /// *Busy* is no failure: it raises no backoff and opens no breaker.
    pub busy_is_free: bool,
    /// Waiting for a link spends nothing of a slice's retry budget.
    pub waiting_is_free: bool,
    /// Buffers are given back only when nothing can touch them any more.
    pub quarantine: bool,
    /// Notifications that come twice are delivered once.
    pub dedupe: bool,
}

impl Guards {
    /// Every rule in force.
    pub const ALL: Self = Self {
        attempts: true,
        incarnations: true,
        echo: true,
        confirm: true,
        tie_break: true,
        abandoned: true,
        cached_reply: true,
        random_psn: true,
        permits: true,
        busy_is_free: true,
        waiting_is_free: true,
        quarantine: true,
        dedupe: true,
    };
}

impl Default for Guards {
    fn default() -> Self {
        Self::ALL
    }
}
