//! Whether a command that did not succeed is sent again.
//!
//! Owns the one decision, [`decide`], and the budget that bounds what all repetitions together may add to a server's
//! load. Does not own waiting (`admission` has the backoff), deadlines (expired work is culled before anybody asks
//! here), nor redirects, which are reported for the router to follow.
//!
//! The rules, in the order in which they apply:
//!
//! 1. What was not sent is replayed, always: it did not run, and it keeps its place. No flag, budget or count of
//!    attempts has a say, because this is a first attempt.
//! 2. What was possibly sent is sent again only where a second execution is harmless: a read; an idempotent command
//!    whose caller allows it; a convergent one whose caller does not look at the reply either. Never a transaction
//!    or a script that writes.
//! 3. A refusal that proves that nothing ran is followed by another attempt where waiting helps.
//! 4. Every other answer is the answer.
//!
//! Rules 2 and 3 cost one attempt and one token of the budget each.

use std::time::Duration;

use towline_sansio::Instant;
use towline_spec::SideEffect;

use crate::error::{ErrorKind, Sent};
use crate::server_error::ServerClass;

/// Everything that the decision depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Question {
    /// What a second execution may do: `towline_spec::effect_of`, or what the caller says instead.
    pub effect: SideEffect,
    /// What is executed as a whole.
    pub unit: Unit,
    /// What happened to this attempt.
    pub failure: Failure,
    /// What the caller wants.
    pub flags: RetryFlags,
    /// How many more attempts the command may have. Replays do not count.
    pub attempts_left: u32,
    /// Whether the client's [`RetryBudget`] has a token.
    pub has_budget: bool,
}

/// What is executed as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unit {
    /// One command.
    Command,
    /// `MULTI` to `EXEC`. Sent means: `EXEC`'s last byte.
    Transaction,
    /// A script or function that may write, whatever class its caller gave it.
    WritingScript,
}

/// What happened to an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Failure {
    /// The connection ended before the kernel took the last byte.
    NotSent,
    /// The connection ended after that and before the reply.
    MaybeSent,
    /// The server answered with an error of this class.
    Answered(ServerClass),
}

/// What the caller allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct RetryFlags {
    /// Nothing that may have reached the server is sent again. Default: no.
    pub no_retry: bool,
    /// An idempotent command may run twice. Default: no, because another client's write may come between the
    /// two executions and be undone by the second.
    pub allow_idempotent: bool,
    /// The caller does not look at the reply. Default: no.
    pub reply_not_needed: bool,
}

/// What to do with the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Decision {
    /// Send it on the next connection, in its old order. Costs neither an attempt nor budget.
    Replay,
    /// Send it again after this wait. Costs an attempt and a token.
    RetryAfter(Wait),
    /// Give its error to the caller.
    Fail {
        /// What the caller learns about its execution.
        sent: Sent,
        /// Why it is not sent again.
        why: NoRetry,
    },
}

/// What to wait for before the next attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Wait {
    /// The next connection; the pace of dials is pause enough.
    Reconnect,
    /// Jittered backoff, same endpoint: the server needs time.
    Server,
    /// A change of topology, or jittered backoff where none is known: this endpoint cannot serve the command in
    /// its present role.
    Topology,
}

/// Why a command is not sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NoRetry {
    /// The server answered the command.
    Answer,
    /// `MOVED` or `ASK`: not a matter of trying again, but of asking another node.
    Redirect,
    /// It may have run, and a second execution could do harm, or the caller does not allow it.
    MayHaveRun,
    /// The caller asked for no retry.
    Flag,
    /// It had all its attempts.
    AttemptsSpent,
    /// The client's budget is exhausted: too many repetitions lately.
    BudgetSpent,
}

impl Failure {
    /// The failure that `kind` stands for, given whether the command was sent. `None` for an end that leaves
    /// nothing to decide: a passed deadline, a bound of the backlog, a cancelled command, a closed client, a misuse.
    pub fn of(kind: &ErrorKind, sent: Sent) -> Option<Self> {
        match kind {
            ErrorKind::Server(error) => Some(Self::Answered(error.class())),
            ErrorKind::Lost(_) | ErrorKind::Protocol(_) => match sent {
                Sent::No => Some(Self::NotSent),
                Sent::Maybe => Some(Self::MaybeSent),
                Sent::Answered => None,
            },
            _ => None,
        }
    }

    /// What the failure says about execution.
    pub const fn sent(self) -> Sent {
        match self {
            Self::NotSent => Sent::No,
            Self::MaybeSent => Sent::Maybe,
            Self::Answered(_) => Sent::Answered,
        }
    }
}

/// Whether and when a command is sent again.
pub const fn decide(question: &Question) -> Decision {
    let wait = match question.failure {
        Failure::NotSent => return Decision::Replay,
        Failure::MaybeSent if !is_repeatable(question) => return fail(question, NoRetry::MayHaveRun),
        Failure::MaybeSent => Wait::Reconnect,
        Failure::Answered(class) => match wait_for(class) {
            Ok(wait) => wait,
            Err(why) => return fail(question, why),
        },
    };
    if question.flags.no_retry {
        fail(question, NoRetry::Flag)
    } else if question.attempts_left == 0 {
        fail(question, NoRetry::AttemptsSpent)
    } else if !question.has_budget {
        fail(question, NoRetry::BudgetSpent)
    } else {
        Decision::RetryAfter(wait)
    }
}

const fn fail(question: &Question, why: NoRetry) -> Decision {
    Decision::Fail { sent: question.failure.sent(), why }
}

/// Whether a second execution is harmless.
const fn is_repeatable(question: &Question) -> bool {
    let flags = question.flags;
    matches!(question.unit, Unit::Command)
        && match question.effect {
            SideEffect::ReadOnly => true,
            SideEffect::Idempotent => flags.allow_idempotent,
            SideEffect::Convergent => flags.allow_idempotent && flags.reply_not_needed,
            // A connection's state belongs to the connection that is gone.
            SideEffect::Connection | SideEffect::NonIdempotent | SideEffect::Admin => false,
        }
}

/// What cures a refusal, if anything does.
const fn wait_for(class: ServerClass) -> Result<Wait, NoRetry> {
    match class {
        ServerClass::Loading
        | ServerClass::ScriptBusy
        | ServerClass::ClusterDown
        | ServerClass::TryAgain
        | ServerClass::MasterDown
        | ServerClass::NoReplicas => Ok(Wait::Server),
        ServerClass::ReadOnly => Ok(Wait::Topology),
        ServerClass::TooManyClients => Ok(Wait::Reconnect),
        ServerClass::Moved | ServerClass::Ask => Err(NoRetry::Redirect),
        ServerClass::Answer => Err(NoRetry::Answer),
    }
}

/// Bounds of a [`RetryBudget`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryBudgetConfig {
    /// Most tokens at a time. Default 1000: the reads in flight on a few busy connections that die together.
    pub tokens_max: u32,
    /// Tokens that time adds, per second. Default 10: a client with little traffic can repeat a command too.
    pub tokens_per_second: u32,
    /// Tokens that answered commands add, per hundred. Default 10: in the long run repetitions add at most a tenth
    /// to what the server has to do anyway.
    pub tokens_per_hundred_answers: u32,
}

impl Default for RetryBudgetConfig {
    fn default() -> Self {
        Self { tokens_max: 1000, tokens_per_second: 10, tokens_per_hundred_answers: 10 }
    }
}

/// A token bucket: bounds what all repetitions of a client together add to the load. Starts full.
#[derive(Debug, Clone)]
pub struct RetryBudget {
    config: RetryBudgetConfig,
    /// In units of [`UNIT`] to a token, so that small deposits do not get lost.
    units: u64,
    refilled_at: Instant,
    answers_seen: u64,
}

/// Units to a token: a nanosecond at one token per second is one unit.
const UNIT: u64 = 1_000_000_000;

impl RetryBudget {
    /// A full budget.
    pub fn new(now: Instant, config: RetryBudgetConfig) -> Self {
        Self { config, units: units_max(&config), refilled_at: now, answers_seen: 0 }
    }

    /// Whether a token is there. `answers` is how many commands of the client were answered so far, in total.
    pub fn has_token(&mut self, now: Instant, answers: u64) -> bool {
        self.refill(now, answers);
        self.units >= UNIT
    }

    /// Takes a token for a repetition; false, and nothing taken, if there is none.
    #[must_use]
    pub fn take(&mut self, now: Instant, answers: u64) -> bool {
        let has_token = self.has_token(now, answers);
        if has_token {
            self.units -= UNIT;
        }
        has_token
    }

    /// Whole tokens at the time of the last call.
    pub fn tokens(&self) -> u64 {
        self.units / UNIT
    }

    fn refill(&mut self, now: Instant, answers: u64) {
        let elapsed = u64::try_from(now.since(self.refilled_at).as_nanos()).unwrap_or(u64::MAX);
        let by_time = elapsed.saturating_mul(u64::from(self.config.tokens_per_second));
        let by_answers = answers
            .saturating_sub(self.answers_seen)
            .saturating_mul(u64::from(self.config.tokens_per_hundred_answers))
            .saturating_mul(UNIT / 100);
        self.refilled_at = self.refilled_at.max(now);
        self.answers_seen = self.answers_seen.max(answers);
        self.units =
            self.units.saturating_add(by_time).saturating_add(by_answers).min(units_max(&self.config));
    }

    /// How long until time alone has added a token; zero if one is there, `Duration::MAX` if time adds none.
    pub fn until_token(&self) -> Duration {
        let missing = UNIT.saturating_sub(self.units);
        match u64::from(self.config.tokens_per_second) {
            _ if missing == 0 => Duration::ZERO,
            _ if self.config.tokens_max == 0 => Duration::MAX,
            0 => Duration::MAX,
            rate => Duration::from_nanos(missing.div_ceil(rate)),
        }
    }
}

fn units_max(config: &RetryBudgetConfig) -> u64 {
    u64::from(config.tokens_max) * UNIT
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const EFFECTS: [SideEffect; 6] = [
        SideEffect::ReadOnly,
        SideEffect::Idempotent,
        SideEffect::Convergent,
        SideEffect::Connection,
        SideEffect::NonIdempotent,
        SideEffect::Admin,
    ];
    const UNITS: [Unit; 3] = [Unit::Command, Unit::Transaction, Unit::WritingScript];

    /// Columns: no flags, no_retry, allow_idempotent, both, and the same four with reply_not_needed.
    /// `=` replay, `c` retry on reconnect, `s` after a server wait, `t` after a topology change; failures: `a` answer,
    /// `r` redirect, `m` may have run, `f` flag.
    const TABLE: &[(&str, Unit, &str, &str)] = &[
        ("not sent", Unit::Command, "any", "========"),
        ("not sent", Unit::Transaction, "any", "========"),
        ("not sent", Unit::WritingScript, "any", "========"),
        ("maybe sent", Unit::Command, "ReadOnly", "cfcfcfcf"),
        ("maybe sent", Unit::Command, "Idempotent", "mmcfmmcf"),
        ("maybe sent", Unit::Command, "Convergent", "mmmmmmcf"),
        ("maybe sent", Unit::Command, "Connection", "mmmmmmmm"),
        ("maybe sent", Unit::Command, "NonIdempotent", "mmmmmmmm"),
        ("maybe sent", Unit::Command, "Admin", "mmmmmmmm"),
        ("maybe sent", Unit::Transaction, "any", "mmmmmmmm"),
        ("maybe sent", Unit::WritingScript, "any", "mmmmmmmm"),
    ];

    /// The same for answers, which do not depend on effect and unit.
    const ANSWERS: &[(ServerClass, &str)] = &[
        (ServerClass::Loading, "sfsfsfsf"),
        (ServerClass::ScriptBusy, "sfsfsfsf"),
        (ServerClass::ClusterDown, "sfsfsfsf"),
        (ServerClass::TryAgain, "sfsfsfsf"),
        (ServerClass::MasterDown, "sfsfsfsf"),
        (ServerClass::NoReplicas, "sfsfsfsf"),
        (ServerClass::ReadOnly, "tftftftf"),
        (ServerClass::TooManyClients, "cfcfcfcf"),
        (ServerClass::Moved, "rrrrrrrr"),
        (ServerClass::Ask, "rrrrrrrr"),
        (ServerClass::Answer, "aaaaaaaa"),
    ];

    fn expected(question: &Question, column: usize) -> Decision {
        let columns = match question.failure {
            Failure::Answered(class) => ANSWERS.iter().find(|row| row.0 == class).map(|row| row.1),
            not_answered => {
                let name = if not_answered == Failure::NotSent { "not sent" } else { "maybe sent" };
                let effect = format!("{:?}", question.effect);
                TABLE
                    .iter()
                    .find(|row| {
                        row.0 == name && row.1 == question.unit && (row.2 == "any" || row.2 == effect)
                    })
                    .map(|row| row.3)
            }
        };
        let mark = columns.expect("the table has a row for every question").as_bytes()[column];
        let sent = question.failure.sent();
        let retry = |wait| match (question.attempts_left, question.has_budget) {
            (0, _) => Decision::Fail { sent, why: NoRetry::AttemptsSpent },
            (_, false) => Decision::Fail { sent, why: NoRetry::BudgetSpent },
            _ => Decision::RetryAfter(wait),
        };
        match mark {
            b'=' => Decision::Replay,
            b'c' => retry(Wait::Reconnect),
            b's' => retry(Wait::Server),
            b't' => retry(Wait::Topology),
            b'a' => Decision::Fail { sent, why: NoRetry::Answer },
            b'r' => Decision::Fail { sent, why: NoRetry::Redirect },
            b'm' => Decision::Fail { sent, why: NoRetry::MayHaveRun },
            b'f' => Decision::Fail { sent, why: NoRetry::Flag },
            other => panic!("no such mark: {other}"),
        }
    }

    fn questions() -> impl Iterator<Item = (usize, Question)> {
        let failures: Vec<Failure> = [Failure::NotSent, Failure::MaybeSent]
            .into_iter()
            .chain(ANSWERS.iter().map(|row| Failure::Answered(row.0)))
            .collect();
        EFFECTS.into_iter().flat_map(move |effect| {
            let failures = failures.clone();
            UNITS.into_iter().flat_map(move |unit| {
                failures.clone().into_iter().flat_map(move |failure| {
                    (0..32).map(move |bits| {
                        let flags = RetryFlags {
                            no_retry: bits & 1 != 0,
                            allow_idempotent: bits & 2 != 0,
                            reply_not_needed: bits & 4 != 0,
                        };
                        let attempts_left = (bits >> 3) & 1;
                        let has_budget = bits & 16 != 0;
                        let question = Question { effect, unit, failure, flags, attempts_left, has_budget };
                        ((bits & 7) as usize, question)
                    })
                })
            })
        })
    }

    #[test]
    fn the_whole_product_is_decided_as_the_table_says() {
        let mut count = 0;
        for (column, question) in questions() {
            assert_eq!(decide(&question), expected(&question, column), "{question:?}");
            count += 1;
        }
        assert_eq!(count, 6 * 3 * 13 * 32);
    }

    #[test]
    fn what_may_have_run_is_never_repeated_if_that_could_do_harm() {
        for (_, question) in questions().filter(|(_, question)| question.failure == Failure::MaybeSent) {
            let is_harmful = question.unit != Unit::Command || question.effect >= SideEffect::Connection;
            if is_harmful || question.flags.no_retry {
                assert!(
                    matches!(decide(&question), Decision::Fail { sent: Sent::Maybe, .. }),
                    "{question:?}"
                );
            }
        }
    }

    #[test]
    fn what_was_not_sent_is_never_failed() {
        for (_, question) in questions().filter(|(_, question)| question.failure == Failure::NotSent) {
            assert_eq!(decide(&question), Decision::Replay);
        }
    }

    #[test]
    fn an_error_that_is_retryable_for_the_caller_is_a_proof_of_no_execution() {
        use crate::error::Error;
        use crate::server_error::ServerError;
        let error =
            Error::server(ServerError::new("TRYAGAIN Multiple keys request during rehashing of slot"));
        assert!(error.is_retryable());
        assert_eq!(Failure::of(error.kind(), error.sent()), Some(Failure::Answered(ServerClass::TryAgain)));
        assert_eq!(Failure::of(&ErrorKind::Deadline, Sent::Maybe), None);
    }

    #[test]
    fn a_budget_is_spent_and_refilled_by_time_and_by_answers() {
        let config =
            RetryBudgetConfig { tokens_max: 2, tokens_per_second: 1, tokens_per_hundred_answers: 10 };
        let mut budget = RetryBudget::new(Instant::ZERO, config);
        assert!(budget.take(Instant::ZERO, 0) && budget.take(Instant::ZERO, 0));
        assert!(!budget.take(Instant::ZERO, 9));
        assert_eq!(budget.until_token(), Duration::from_millis(100));
        assert!(budget.take(Instant::ZERO, 10), "ten answers are a token");
        let almost = Instant::from_nanos(UNIT - 1);
        assert!(!budget.take(almost, 10));
        assert!(budget.take(Instant::from_nanos(UNIT), 10), "a second is a token");
        assert!(budget.has_token(Instant::FAR, u64::MAX));
        assert_eq!(budget.tokens(), 2, "no more than the bound");
    }

    #[test]
    fn time_and_counts_that_go_back_fill_nothing_twice() {
        let config =
            RetryBudgetConfig { tokens_max: 9, tokens_per_second: 1, tokens_per_hundred_answers: 100 };
        let (early, late) = (Instant::ZERO, Instant::from_nanos(5 * UNIT));
        let mut budget = RetryBudget::new(late, config);
        while budget.take(late, 5) {}
        for (now, answers) in [(early, 5), (late, 0), (late, 5)] {
            assert!(!budget.take(now, answers));
        }
    }

    #[test]
    fn a_budget_of_nothing_never_has_a_token() {
        let config =
            RetryBudgetConfig { tokens_max: 0, tokens_per_second: 9, tokens_per_hundred_answers: 100 };
        let mut budget = RetryBudget::new(Instant::ZERO, config);
        assert!(!budget.take(Instant::FAR, u64::MAX));
        assert_eq!(budget.until_token(), Duration::MAX);
    }

    proptest! {
        #[test]
        fn a_budget_never_grants_more_than_its_bounds(
            steps in prop::collection::vec((0_u64..500, 0_u64..50, 0_u8..20), 0..200),
        ) {
            let config = RetryBudgetConfig { tokens_max: 20, tokens_per_second: 5, tokens_per_hundred_answers: 10 };
            let mut budget = RetryBudget::new(Instant::ZERO, config);
            let (mut millis, mut answers, mut granted) = (0, 0, 0_u64);
            for (pause, answered, wanted) in steps {
                millis += pause;
                answers += answered;
                for _ in 0..wanted {
                    granted += u64::from(budget.take(Instant::ZERO + Duration::from_millis(millis), answers));
                }
                prop_assert!(granted * 1000 <= 20_000 + millis * 5 + answers * 100);
            }
        }
    }
}
