//! Rules to text and back. The grammar is in [`super`].

use std::fmt;
use std::net::IpAddr;
use std::num::{NonZeroU32, NonZeroU64};
use std::str::FromStr;
use std::time::Duration;

use bytes::Bytes;

use super::{
    DialFault, DialRule, Direction, DnsRule, GARBAGE_BYTES_MAX, Garbage, Rule, SPLIT_SIZES_MAX, Scope, Side,
    StreamFault, StreamRule, Trigger, Way,
};

/// A rule that cannot be understood; the caller's mistake.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("rule `{rule}`: {problem}")]
pub struct RuleError {
    /// The whole rule as given.
    pub rule: String,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What is wrong with a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// There is no `@`.
    #[error("no `@`; a rule looks like cut@c2s:100")]
    NoPlace,
    /// No fault has this name.
    #[error(
        "unknown fault `{0}`; there are cut, reset, stall, split, delay, rate, halfopen, swallow, garbage, refuse, close, \
         hang, busy and dns"
    )]
    UnknownFault(String),
    /// The place of a stream's fault cannot be read.
    #[error(
        "bad place `{0}`; it is a number of bytes, rand:N..M, mean:N or after:TIME, perhaps after c2s:, s2c: or both:"
    )]
    Place(String),
    /// A dial's fault happens elsewhere.
    #[error("`{0}` happens to dials only; write {0}@dial")]
    NotADial(&'static str),
    /// No whole number in range.
    #[error("bad number `{0}`")]
    Number(String),
    /// No time.
    #[error("bad time `{0}`; it is a whole number and us, ms, s or m")]
    Time(String),
    /// Something has to stand after `/`.
    #[error("`{fault}` needs an argument: {example}")]
    NoArgument {
        /// The fault.
        fault: &'static str,
        /// How it is written.
        example: &'static str,
    },
    /// Nothing may stand after `/`.
    #[error("`{0}` takes no argument")]
    Argument(&'static str),
    /// A range whose end is before its begin.
    #[error("empty range `{0}`")]
    EmptyRange(String),
    /// No option has this name.
    #[error("unknown option `{0}`; there are nth, count, chance, during, side, gap and jitter")]
    UnknownOption(String),
    /// The option is given twice.
    #[error("option `{0}` is given twice")]
    Repeated(&'static str),
    /// The option means nothing to this fault.
    #[error("option `{option}` means nothing to `{fault}`")]
    ForeignOption {
        /// The option.
        option: &'static str,
        /// The fault.
        fault: String,
    },
    /// A side that does not exist.
    #[error("bad side `{0}`; it is client, server or both")]
    Side(String),
    /// A share that is none.
    #[error("bad chance `{0}`; it is 1% to 100%")]
    Chance(String),
    /// Garbage that is not hexadecimal, empty, or longer than [`GARBAGE_BYTES_MAX`].
    #[error("bad garbage `{0}`; it is pairs of hexadecimal digits or rand:N, up to 65536 bytes")]
    Garbage(String),
    /// Sizes that are none, or more than [`SPLIT_SIZES_MAX`].
    #[error("bad sizes `{0}`; they are numbers from 1 with + between, at most 64")]
    Sizes(String),
    /// A rate that is none.
    #[error("bad rate `{0}`; it is a whole number of bytes a second from 1, perhaps with k or M behind")]
    Rate(String),
    /// Answers that cannot be read or go back in time.
    #[error("bad answer `{0}`; answers look like 0s=10.0.0.1+5s=10.0.0.2|10.0.0.3, in order of time")]
    Answer(String),
}

impl FromStr for Rule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        parse(text).map_err(|problem| RuleError { rule: text.to_owned(), problem })
    }
}

fn parse(text: &str) -> Result<Rule, Problem> {
    let (name, rest) = text.split_once('@').ok_or(Problem::NoPlace)?;
    if name == "dns" {
        return parse_dns(rest).map(Rule::Dns);
    }
    let mut parts = rest.split(',');
    let head = parts.next().unwrap_or_default();
    let options = Options::read(parts)?;
    let (place, argument) = head.split_once('/').map_or((head, None), |(place, text)| (place, Some(text)));
    if let Some(fault) = DialFault::ALL.into_iter().find(|fault| fault.name() == name) {
        if place != "dial" {
            return Err(Problem::NotADial(fault.name()));
        }
        if argument.is_some() {
            return Err(Problem::Argument(fault.name()));
        }
        return Ok(Rule::Dial(DialRule { fault, scope: options.finish(name)? }));
    }
    let mut options = options;
    let fault = parse_fault(name, argument, &mut options)?;
    let (way, trigger) = parse_place(place)?;
    Ok(Rule::Stream(StreamRule { fault, way, trigger, scope: options.finish(name)? }))
}

fn parse_fault(name: &str, argument: Option<&str>, options: &mut Options) -> Result<StreamFault, Problem> {
    let none = |fault| if argument.is_some() { Err(Problem::Argument(fault)) } else { Ok(()) };
    let some = |fault, example| argument.ok_or(Problem::NoArgument { fault, example });
    Ok(match name {
        "cut" => {
            none("cut")?;
            StreamFault::Cut { side: options.side.take().unwrap_or_default() }
        }
        "reset" => {
            none("reset")?;
            StreamFault::Reset { side: options.side.take().unwrap_or_default() }
        }
        "stall" => StreamFault::Stall(argument.map(parse_time).transpose()?),
        "split" => {
            let sizes = parse_sizes(some("split", "split@s2c:0/1+2")?)?;
            StreamFault::Split { sizes, gap: options.gap.take().unwrap_or_default() }
        }
        "delay" => {
            let time = parse_time(some("delay", "delay@s2c:0/20ms")?)?;
            StreamFault::Delay { time, jitter: options.jitter.take().unwrap_or_default() }
        }
        "rate" => StreamFault::Rate(parse_rate(some("rate", "rate@s2c:0/64k")?)?),
        "halfopen" => {
            none("halfopen")?;
            StreamFault::HalfOpen
        }
        "swallow" => {
            none("swallow")?;
            StreamFault::Swallow
        }
        "garbage" => StreamFault::Garbage(parse_garbage(some("garbage", "garbage@s2c:5/2b4f4b")?)?),
        _ => return Err(Problem::UnknownFault(name.to_owned())),
    })
}

fn parse_place(text: &str) -> Result<(Way, Trigger), Problem> {
    let bad = || Problem::Place(text.to_owned());
    let (way, rest) = match text.split_once(':') {
        Some(("c2s", rest)) => (Way::One(Direction::ClientToServer), rest),
        Some(("s2c", rest)) => (Way::One(Direction::ServerToClient), rest),
        Some(("both", rest)) => (Way::Both, rest),
        _ => (Way::Drawn, text),
    };
    let trigger = match rest.split_once(':') {
        None => Trigger::Offset(parse_number(rest).map_err(|_| bad())?),
        Some(("rand", range)) => {
            let (first, last) = range.split_once("..").ok_or_else(bad)?;
            let (first, last) = (parse_number(first)?, parse_number(last)?);
            if first > last {
                return Err(Problem::EmptyRange(range.to_owned()));
            }
            Trigger::Random { first, last }
        }
        Some(("mean", count)) => Trigger::Mean(parse_number(count)?),
        Some(("after", time)) => Trigger::After(parse_time(time)?),
        Some(_) => return Err(bad()),
    };
    Ok((way, trigger))
}

/// Digits only: no sign, no blank.
fn parse_number(text: &str) -> Result<u64, Problem> {
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = if is_plain { text.parse().ok() } else { None };
    number.ok_or_else(|| Problem::Number(text.to_owned()))
}

fn parse_time(text: &str) -> Result<Duration, Problem> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let unit_us = match unit {
        "us" => 1,
        "ms" => 1000,
        "s" => 1_000_000,
        "m" => 60_000_000,
        _ => 0,
    };
    let us = parse_number(number).ok().filter(|_| unit_us > 0).and_then(|number| number.checked_mul(unit_us));
    us.map(Duration::from_micros).ok_or_else(|| Problem::Time(text.to_owned()))
}

/// Decimal thousands and millions, as networks count.
fn parse_rate(text: &str) -> Result<NonZeroU64, Problem> {
    let (number, unit) = match text.strip_suffix('k') {
        Some(number) => (number, 1000),
        None => text.strip_suffix('M').map_or((text, 1), |number| (number, 1_000_000)),
    };
    let rate = parse_number(number).ok().and_then(|number| number.checked_mul(unit));
    rate.and_then(NonZeroU64::new).ok_or_else(|| Problem::Rate(text.to_owned()))
}

fn parse_sizes(text: &str) -> Result<Vec<NonZeroU32>, Problem> {
    let bad = || Problem::Sizes(text.to_owned());
    let sizes: Option<Vec<NonZeroU32>> = text
        .split('+')
        .map(|size| parse_number(size).ok().and_then(|size| NonZeroU32::new(u32::try_from(size).ok()?)))
        .collect();
    sizes.filter(|sizes| sizes.len() <= SPLIT_SIZES_MAX).ok_or_else(bad)
}

fn parse_garbage(text: &str) -> Result<Garbage, Problem> {
    let bad = || Problem::Garbage(text.to_owned());
    if let Some(length) = text.strip_prefix("rand:") {
        let length =
            parse_number(length).ok().filter(|&length| (1..=GARBAGE_BYTES_MAX as u64).contains(&length));
        return length.and_then(|length| u32::try_from(length).ok()).map(Garbage::Random).ok_or_else(bad);
    }
    let digits = text.as_bytes();
    let is_hex =
        !digits.is_empty() && digits.len().is_multiple_of(2) && digits.iter().all(u8::is_ascii_hexdigit);
    if !is_hex || digits.len() / 2 > GARBAGE_BYTES_MAX {
        return Err(bad());
    }
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Option<Vec<u8>> = digits.chunks_exact(2).map(byte).collect();
    bytes.map(|bytes| Garbage::Exact(Bytes::from(bytes))).ok_or_else(bad)
}

fn parse_dns(text: &str) -> Result<DnsRule, Problem> {
    let example = "dns@redis.test/0s=10.0.0.1+5s=10.0.0.2";
    let (name, answers) = text.split_once('/').ok_or(Problem::NoArgument { fault: "dns", example })?;
    if name.is_empty() {
        return Err(Problem::Place(name.to_owned()));
    }
    let mut parsed: Vec<(Duration, Vec<IpAddr>)> = Vec::new();
    for answer in answers.split('+') {
        let bad = || Problem::Answer(answer.to_owned());
        let (since, addresses) = answer.split_once('=').ok_or_else(bad)?;
        let since = parse_time(since)?;
        if parsed.last().is_some_and(|(last, _)| *last >= since) {
            return Err(bad());
        }
        let addresses = match addresses {
            "none" => Vec::new(),
            some => some.split('|').map(str::parse).collect::<Result<_, _>>().map_err(|_| bad())?,
        };
        parsed.push((since, addresses));
    }
    Ok(DnsRule { name: name.to_owned(), answers: parsed })
}

/// The options of one rule as given.
#[derive(Default)]
struct Options {
    nth: Option<(u64, Option<u64>)>,
    count: Option<u64>,
    chance: Option<u8>,
    during: Option<(Duration, Option<Duration>)>,
    side: Option<Side>,
    gap: Option<Duration>,
    jitter: Option<Duration>,
}

impl Options {
    fn read<'a>(texts: impl Iterator<Item = &'a str>) -> Result<Self, Problem> {
        let mut options = Self::default();
        for text in texts {
            let Some((name, value)) = text.split_once('=') else {
                return Err(Problem::UnknownOption(text.to_owned()));
            };
            match name {
                "nth" => put(&mut options.nth, "nth", parse_nth(value)?)?,
                "count" => {
                    let count = parse_number(value).ok().filter(|&count| count > 0);
                    put(
                        &mut options.count,
                        "count",
                        count.ok_or_else(|| Problem::Number(value.to_owned()))?,
                    )?;
                }
                "chance" => put(&mut options.chance, "chance", parse_chance(value)?)?,
                "during" => put(&mut options.during, "during", parse_during(value)?)?,
                "side" => put(&mut options.side, "side", parse_side(value)?)?,
                "gap" => put(&mut options.gap, "gap", parse_time(value)?)?,
                "jitter" => put(&mut options.jitter, "jitter", parse_time(value)?)?,
                _ => return Err(Problem::UnknownOption(name.to_owned())),
            }
        }
        Ok(options)
    }

    /// The scope, when the fault has taken what is its own.
    fn finish(self, fault: &str) -> Result<Scope, Problem> {
        let side = self.side.map(|_| "side");
        let (gap, jitter) = (self.gap.map(|_| "gap"), self.jitter.map(|_| "jitter"));
        let foreign = side.or(gap).or(jitter);
        if let Some(option) = foreign {
            return Err(Problem::ForeignOption { option, fault: fault.to_owned() });
        }
        let (nth_first, nth_last) = self.nth.unwrap_or((1, None));
        let (from, until) = self.during.unwrap_or_default();
        let chance_percent = self.chance.unwrap_or(100);
        Ok(Scope { nth_first, nth_last, count: self.count, chance_percent, from, until })
    }
}

fn put<T>(place: &mut Option<T>, name: &'static str, value: T) -> Result<(), Problem> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(Problem::Repeated(name)),
    }
}

fn parse_nth(text: &str) -> Result<(u64, Option<u64>), Problem> {
    let (first, last) = match text.split_once("..") {
        None => {
            let only = parse_number(text)?;
            (only, Some(only))
        }
        Some((first, "")) => (parse_number(first)?, None),
        Some((first, last)) => (parse_number(first)?, Some(parse_number(last)?)),
    };
    if first == 0 {
        return Err(Problem::Number(text.to_owned()));
    }
    if last.is_some_and(|last| last < first) {
        return Err(Problem::EmptyRange(text.to_owned()));
    }
    Ok((first, last))
}

fn parse_during(text: &str) -> Result<(Duration, Option<Duration>), Problem> {
    let (from, until) = text.split_once("..").ok_or_else(|| Problem::Time(text.to_owned()))?;
    let from = parse_time(from)?;
    let until = if until.is_empty() { None } else { Some(parse_time(until)?) };
    if until.is_some_and(|until| until <= from) {
        return Err(Problem::EmptyRange(text.to_owned()));
    }
    Ok((from, until))
}

fn parse_chance(text: &str) -> Result<u8, Problem> {
    let percent = text.strip_suffix('%').and_then(|number| parse_number(number).ok());
    let percent = percent.filter(|percent| (1..=100).contains(percent));
    percent.and_then(|percent| u8::try_from(percent).ok()).ok_or_else(|| Problem::Chance(text.to_owned()))
}

fn parse_side(text: &str) -> Result<Side, Problem> {
    let sides = [Side::Both, Side::Client, Side::Server];
    sides.into_iter().find(|side| side.name() == text).ok_or_else(|| Problem::Side(text.to_owned()))
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stream(rule) => rule.fmt(f),
            Self::Dial(rule) => rule.fmt(f),
            Self::Dns(rule) => rule.fmt(f),
        }
    }
}

impl fmt::Display for StreamRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@", self.fault.name())?;
        match self.way {
            Way::Drawn => {}
            Way::One(direction) => write!(f, "{}:", direction.name())?,
            Way::Both => f.write_str("both:")?,
        }
        match self.trigger {
            Trigger::Offset(offset) => write!(f, "{offset}")?,
            Trigger::Random { first, last } => write!(f, "rand:{first}..{last}")?,
            Trigger::Mean(count) => write!(f, "mean:{count}")?,
            Trigger::After(time) => write!(f, "after:{}", Time(time))?,
        }
        match &self.fault {
            StreamFault::Stall(Some(time)) | StreamFault::Delay { time, .. } => {
                write!(f, "/{}", Time(*time))?
            }
            StreamFault::Rate(rate) => match rate.get() {
                rate if rate.is_multiple_of(1_000_000) => write!(f, "/{}M", rate / 1_000_000)?,
                rate if rate.is_multiple_of(1000) => write!(f, "/{}k", rate / 1000)?,
                rate => write!(f, "/{rate}")?,
            },
            StreamFault::Split { sizes, .. } => {
                for (index, size) in sizes.iter().enumerate() {
                    write!(f, "{}{size}", if index == 0 { '/' } else { '+' })?;
                }
            }
            StreamFault::Garbage(Garbage::Random(length)) => write!(f, "/rand:{length}")?,
            StreamFault::Garbage(Garbage::Exact(bytes)) => {
                f.write_str("/")?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
            }
            StreamFault::Cut { .. }
            | StreamFault::Reset { .. }
            | StreamFault::Stall(None)
            | StreamFault::HalfOpen
            | StreamFault::Swallow => {}
        }
        self.scope.fmt(f)?;
        match &self.fault {
            StreamFault::Cut { side } | StreamFault::Reset { side } if *side != Side::Both => {
                write!(f, ",side={}", side.name())
            }
            StreamFault::Split { gap, .. } if !gap.is_zero() => write!(f, ",gap={}", Time(*gap)),
            StreamFault::Delay { jitter, .. } if !jitter.is_zero() => write!(f, ",jitter={}", Time(*jitter)),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.nth_first, self.nth_last) {
            (1, None) => {}
            (first, None) => write!(f, ",nth={first}..")?,
            (first, Some(last)) if first == last => write!(f, ",nth={first}")?,
            (first, Some(last)) => write!(f, ",nth={first}..{last}")?,
        }
        if let Some(count) = self.count {
            write!(f, ",count={count}")?;
        }
        if self.chance_percent != 100 {
            write!(f, ",chance={}%", self.chance_percent)?;
        }
        match (self.from, self.until) {
            (Duration::ZERO, None) => Ok(()),
            (from, None) => write!(f, ",during={}..", Time(from)),
            (from, Some(until)) => write!(f, ",during={}..{}", Time(from), Time(until)),
        }
    }
}

impl fmt::Display for DialRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@dial{}", self.fault.name(), self.scope)
    }
}

impl fmt::Display for DnsRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "dns@{}", self.name)?;
        for (index, (since, addresses)) in self.answers.iter().enumerate() {
            write!(f, "{}{}=", if index == 0 { '/' } else { '+' }, Time(*since))?;
            if addresses.is_empty() {
                f.write_str("none")?;
            }
            for (index, address) in addresses.iter().enumerate() {
                write!(f, "{}{address}", if index == 0 { "" } else { "|" })?;
            }
        }
        Ok(())
    }
}

/// A time as rules write it: a whole number and `us`, `ms`, `s` or `m`. It shows in the largest unit up to a second that is
/// exact; parts of microseconds are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(pub Duration);

impl FromStr for Time {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        parse_time(text).map(Self)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_micros() {
            us if us.is_multiple_of(1_000_000) => write!(f, "{}s", us / 1_000_000),
            us if us.is_multiple_of(1000) => write!(f, "{}ms", us / 1000),
            us => write!(f, "{us}us"),
        }
    }
}
