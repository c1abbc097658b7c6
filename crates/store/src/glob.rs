//! Glob patterns of `KEYS`, `SCAN ... MATCH` and `PSUBSCRIBE`.
//!
//! Owns the matcher and nothing else: no table walk, no shortcut for a caller's "all keys" case beyond
//! [`is_match_all`]. The language is Redis's: `*`, `?`, `[abc]`, `[a-z]`, `[^a]` and `\` as the escape, over bytes.
//!
//! A pattern comes from an untrusted client and runs under a lock, so the cost is bounded: every construct but `*`
//! consumes exactly one byte of the text, hence only the last `*` ever needs another try, and a match takes at most
//! `pattern.len() * text.len()` steps. `a*a*a*a*b` has no exponential case.

/// Whether ASCII letters of both cases are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Case {
    /// Bytes are compared as they are.
    Sensitive,
    /// `A-Z` equal `a-z`; other bytes are compared as they are.
    Insensitive,
}

/// Whether `pattern` is the lone `*`, for which Redis skips matching (and which then also accepts the empty text).
#[must_use]
pub fn is_match_all(pattern: &[u8]) -> bool {
    pattern == b"*"
}

/// Whether all of `text` matches `pattern`.
///
/// Three properties of the original are kept because clients can see them: the empty text matches only the empty pattern
/// (not `*`); an unterminated `[` class ends with the pattern; ranges compare bytes as signed, so `[a-\xff]` is the
/// range from -1 to `a`.
#[must_use]
pub fn matches(pattern: &[u8], text: &[u8], case: Case) -> bool {
    if text.is_empty() {
        return pattern.is_empty();
    }
    let (mut at_pattern, mut at_text) = (0, 0);
    // Where to resume after a mismatch: the pattern behind the last star, and the text position it was last tried at.
    let mut retry: Option<(usize, usize)> = None;
    while let Some(&byte) = text.get(at_text) {
        if pattern.get(at_pattern) == Some(&b'*') {
            at_pattern = skip_stars(pattern, at_pattern);
            if at_pattern == pattern.len() {
                return true;
            }
            retry = Some((at_pattern, at_text));
            continue;
        }
        if let Some(next) = step(pattern, at_pattern, byte, case) {
            at_pattern = next;
            at_text += 1;
            continue;
        }
        let Some((behind_star, tried)) = retry else {
            return false;
        };
        at_pattern = behind_star;
        at_text = tried + 1;
        retry = Some((behind_star, at_text));
    }
    skip_stars(pattern, at_pattern) == pattern.len()
}

/// The index of the first byte at or after `at` that is not a star.
fn skip_stars(pattern: &[u8], mut at: usize) -> usize {
    while pattern.get(at) == Some(&b'*') {
        at += 1;
    }
    at
}

/// Matches one byte against the construct at `at`; the index behind the construct when it accepts the byte.
fn step(pattern: &[u8], at: usize, byte: u8, case: Case) -> Option<usize> {
    match *pattern.get(at)? {
        b'?' => Some(at + 1),
        b'[' => {
            let (is_member, next) = class(pattern, at + 1, byte, case);
            is_member.then_some(next)
        }
        b'\\' if at + 1 < pattern.len() => same(pattern[at + 1], byte, case).then_some(at + 2),
        literal => same(literal, byte, case).then_some(at + 1),
    }
}

/// Evaluates the class whose first byte behind `[` is at `at`: whether it accepts `byte`, and the index behind it.
fn class(pattern: &[u8], mut at: usize, byte: u8, case: Case) -> (bool, usize) {
    let is_negated = pattern.get(at) == Some(&b'^');
    if is_negated {
        at += 1;
    }
    let mut is_found = false;
    loop {
        match pattern.get(at..).unwrap_or_default() {
            [] => return (is_found != is_negated, pattern.len()),
            [b'\\', escaped, ..] => {
                is_found |= *escaped == byte;
                at += 2;
            }
            [b']', ..] => return (is_found != is_negated, at + 1),
            [first, b'-', last, ..] => {
                is_found |= in_range(*first, *last, byte, case);
                at += 3;
            }
            [literal, ..] => {
                is_found |= same(*literal, byte, case);
                at += 1;
            }
        }
    }
}

fn same(left: u8, right: u8, case: Case) -> bool {
    match case {
        Case::Sensitive => left == right,
        Case::Insensitive => left.eq_ignore_ascii_case(&right),
    }
}

/// Range test of a class. The ends may come in either order; they are ordered before the case is folded, as Redis does.
fn in_range(first: u8, last: u8, byte: u8, case: Case) -> bool {
    let signed = |byte: u8| byte.cast_signed();
    let (low, high) = if signed(first) > signed(last) { (last, first) } else { (first, last) };
    let fold = |byte: u8| match case {
        Case::Sensitive => signed(byte),
        Case::Insensitive => signed(byte.to_ascii_lowercase()),
    };
    (fold(low)..=fold(high)).contains(&fold(byte))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sensitive(pattern: &str, text: &str) -> bool {
        matches(pattern.as_bytes(), text.as_bytes(), Case::Sensitive)
    }

    /// Rows seen on Redis 7.0.15 and 8.2.3 through `KEYS`.
    #[test]
    fn answers_equal_those_seen_on_the_real_server() {
        for (pattern, text, expected) in [
            ("**", "", false),
            ("", "", true),
            ("", "a", false),
            ("**", "a", true),
            ("[^", "a", true),
            ("[", "a", false),
            ("[a", "a", true),
            ("[^b", "a", true),
            ("[a-", "a", true),
            ("[a-]", "a", true),
            ("\\", "a", false),
            ("a\\", "a", false),
            ("a\\", "a\\", true),
            ("\\a", "a", true),
            ("[\\a]", "a", true),
            ("[z-a]", "a", true),
            ("?*", "a", true),
            ("a*?", "a", false),
            ("a*?", "ab", true),
            ("[]a]", "a", false),
            ("[^]", "a", true),
            ("h[^e]llo", "hallo", true),
            ("h[^e]llo", "hello", false),
            ("*b*", "abab", true),
            ("a*b", "abab", true),
            ("\\*", "*", true),
            ("\\*", "a", false),
        ] {
            assert_eq!(sensitive(pattern, text), expected, "{pattern:?} on {text:?}");
        }
        assert!(!matches(b"a[a-\xff]", b"a\xe9", Case::Sensitive));
        assert!(!matches(b"a[\x7f-\xff]", b"a\xe9", Case::Sensitive));
    }

    #[test]
    fn case_is_folded_only_where_redis_folds_it() {
        assert!(matches(b"HeL*", b"hello", Case::Insensitive));
        assert!(matches(b"[A-C]", b"b", Case::Insensitive));
        assert!(matches(b"\\A", b"a", Case::Insensitive));
        assert!(!matches(b"[\\A]", b"a", Case::Insensitive));
    }

    #[test]
    fn many_stars_do_not_explode() {
        let pattern = [b"a*".repeat(2_000).as_slice(), b"b"].concat();
        let text = vec![b'a'; 20_000];
        assert!(!matches(&pattern, &text, Case::Sensitive));
    }

    /// One construct of a pattern: the reference splits first and then runs a set of states over the text.
    enum Token {
        Star,
        One(Box<dyn Fn(u8) -> bool>),
    }

    fn tokens(pattern: &[u8], case: Case) -> Vec<Token> {
        let fold = move |byte: u8| if case == Case::Insensitive { byte.to_ascii_lowercase() } else { byte };
        let mut out = Vec::new();
        let mut rest = pattern.iter().copied().peekable();
        while let Some(byte) = rest.next() {
            out.push(match byte {
                b'*' => Token::Star,
                b'?' => Token::One(Box::new(|_| true)),
                b'[' => {
                    let is_negated = rest.next_if_eq(&b'^').is_some();
                    let mut accepted = [false; 256];
                    loop {
                        let left = rest.clone().count();
                        let Some(byte) = rest.next() else { break };
                        if byte == b'\\' && left >= 2 {
                            accepted[usize::from(rest.next().expect("two bytes are left"))] = true;
                            continue;
                        }
                        if byte == b']' {
                            break;
                        }
                        if left >= 3 && rest.peek() == Some(&b'-') {
                            rest.next();
                            let last = rest.next().expect("three bytes were left");
                            let (low, high) =
                                if byte as i8 > last as i8 { (last, byte) } else { (byte, last) };
                            for candidate in 0..=255_u8 {
                                let folded = fold(candidate) as i8;
                                accepted[usize::from(candidate)] |=
                                    folded >= fold(low) as i8 && folded <= fold(high) as i8;
                            }
                        } else {
                            for candidate in 0..=255_u8 {
                                accepted[usize::from(candidate)] |= fold(candidate) == fold(byte);
                            }
                        }
                    }
                    Token::One(Box::new(move |byte| accepted[usize::from(byte)] != is_negated))
                }
                other => {
                    let literal = if other == b'\\' { rest.next().unwrap_or(other) } else { other };
                    Token::One(Box::new(move |byte| fold(literal) == fold(byte)))
                }
            });
        }
        out
    }

    fn reference(pattern: &[u8], text: &[u8], case: Case) -> bool {
        if text.is_empty() {
            return pattern.is_empty();
        }
        let tokens = tokens(pattern, case);
        let close = |states: &mut Vec<bool>| {
            for (index, token) in tokens.iter().enumerate() {
                if states[index] && matches!(token, Token::Star) {
                    states[index + 1] = true;
                }
            }
        };
        let mut states = vec![false; tokens.len() + 1];
        states[0] = true;
        close(&mut states);
        for &byte in text {
            let mut next = vec![false; tokens.len() + 1];
            for (index, token) in tokens.iter().enumerate().filter(|(index, _)| states[*index]) {
                match token {
                    Token::Star => next[index] = true,
                    Token::One(accepts) if accepts(byte) => next[index + 1] = true,
                    Token::One(_) => {}
                }
            }
            close(&mut next);
            states = next;
        }
        states[tokens.len()]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn equals_a_state_set_reference(
            pattern in proptest::collection::vec(proptest::sample::select(&b"abcAB*?[]^-\\\xe9"[..]), 0..12),
            text in proptest::collection::vec(proptest::sample::select(&b"abcAB*]^-\\\xe9"[..]), 0..10),
            is_folded: bool,
        ) {
            let case = if is_folded { Case::Insensitive } else { Case::Sensitive };
            prop_assert_eq!(matches(&pattern, &text, case), reference(&pattern, &text, case));
        }
    }
}
