//! Patterns of `PSUBSCRIBE`: `*`, `?`, `[abc]`, `[a-z]`, `[^a]` and `\` as the escape, over bytes.

/// Whether all of `text` matches `pattern`. Takes at most `pattern.len() * text.len()` steps.
pub(super) fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at_pattern, mut at_text) = (0, 0);
    // Behind the last star, and where in the text it was last tried: only the last star needs another try, for every
    // other construct takes exactly one byte.
    let mut retry = None;
    while at_text < text.len() {
        if pattern.get(at_pattern) == Some(&b'*') {
            at_pattern += 1;
            retry = Some((at_pattern, at_text));
        } else if let Some(next) = step(pattern, at_pattern, text[at_text]) {
            (at_pattern, at_text) = (next, at_text + 1);
        } else if let Some((behind_star, tried)) = retry {
            (at_pattern, at_text) = (behind_star, tried + 1);
            retry = Some((behind_star, tried + 1));
        } else {
            return false;
        }
    }
    pattern[at_pattern..].iter().all(|&byte| byte == b'*')
}

/// Where the pattern goes on if its construct at `at` takes `byte`.
fn step(pattern: &[u8], at: usize, byte: u8) -> Option<usize> {
    match *pattern.get(at)? {
        b'?' => Some(at + 1),
        b'[' => class(pattern, at + 1, byte),
        b'\\' if at + 1 < pattern.len() => (pattern[at + 1] == byte).then_some(at + 2),
        literal => (literal == byte).then_some(at + 1),
    }
}

/// A class whose members begin at `at`; one that does not end is closed by the pattern's end.
fn class(pattern: &[u8], mut at: usize, byte: u8) -> Option<usize> {
    let is_negated = pattern.get(at) == Some(&b'^');
    at += usize::from(is_negated);
    let mut is_member = false;
    loop {
        match pattern[at.min(pattern.len())..] {
            [] => break,
            [b']', ..] => {
                at += 1;
                break;
            }
            [b'\\', escaped, ..] => {
                is_member |= escaped == byte;
                at += 2;
            }
            [low, b'-', high, ..] => {
                is_member |= (low.min(high)..=low.max(high)).contains(&byte);
                at += 3;
            }
            [member, ..] => {
                is_member |= member == byte;
                at += 1;
            }
        }
    }
    (is_member != is_negated).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_match_as_in_redis() {
        let yes = [
            ("*", "abc"),
            ("", ""),
            ("a*c*", "abcd"),
            ("h?llo", "hello"),
            ("h[ae]llo", "hallo"),
            ("h[^e]llo", "hallo"),
            ("h[a-c]llo", "hbllo"),
            ("\\*x", "*x"),
            ("news.*.de", "news.a.b.de"),
            ("[abc", "b"),
        ];
        for (pattern, text) in yes {
            assert!(matches(pattern.as_bytes(), text.as_bytes()), "{pattern} {text}");
        }
        let no =
            [("h?llo", "hllo"), ("h[^e]llo", "hello"), ("a", "ab"), ("*x", "xy"), ("\\*", "a"), ("", "a")];
        for (pattern, text) in no {
            assert!(!matches(pattern.as_bytes(), text.as_bytes()), "{pattern} {text}");
        }
    }
}
