//! Numbered things that travel from producers to consumers: elements of lists, messages of channels.
//!
//! Owns: which numbers were given away, which arrived where, and the count of those that are missing, doubled or out of
//! order. Does not own the sending.

use super::ledger::{Findings, Outcome};

/// One list or channel: its producer's record, and what each of its consumers got.
#[derive(Debug, Default)]
pub(super) struct Stream {
    /// What became of number 0, 1, ... in the order of submission.
    pub(super) produced: Vec<Outcome>,
    /// What each consumer got, in the order in which it got it.
    pub(super) consumed: Vec<Vec<u32>>,
    /// What nobody has taken and is still there.
    pub(super) left: Vec<u32>,
}

/// Who gets what is produced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// One of the consumers: a list.
    One,
    /// Each consumer: a channel.
    Each,
}

impl Stream {
    /// Compares what arrived with what was produced.
    pub(super) fn audit(&self, name: &str, rule: Rule) -> Findings {
        let mut findings = Findings::default();
        for outcome in &self.produced {
            match outcome {
                Outcome::Number(_) | Outcome::Nothing => findings.completed += 1,
                Outcome::Refused | Outcome::Unsent | Outcome::Unknown => findings.failed += 1,
            }
        }
        match rule {
            Rule::One => {
                let all = self.consumed.iter().chain(std::iter::once(&self.left));
                self.arrivals(all.flatten(), name, &mut findings);
            }
            Rule::Each => {
                for consumed in &self.consumed {
                    self.arrivals(consumed.iter(), name, &mut findings);
                }
            }
        }
        for consumed in &self.consumed {
            findings.completed += consumed.len() as u64;
            for pair in consumed.windows(2).filter(|pair| pair[1] < pair[0]) {
                findings.reordered += 1;
                findings.problem(|| format!("{name}: {} arrived behind {}", pair[1], pair[0]));
            }
        }
        findings
    }

    /// Everything that was acknowledged arrived once, and nothing that was not sent.
    fn arrivals<'a>(&self, arrived: impl Iterator<Item = &'a u32>, name: &str, findings: &mut Findings) {
        let mut counts = vec![0_u32; self.produced.len()];
        for number in arrived {
            match counts.get_mut(*number as usize) {
                Some(count) => *count += 1,
                None => {
                    findings.duplicated += 1;
                    findings.problem(|| format!("{name}: {number} arrived, which nobody produced"));
                }
            }
        }
        for (number, (outcome, count)) in self.produced.iter().zip(counts).enumerate() {
            let is_acked = matches!(outcome, Outcome::Number(_) | Outcome::Nothing);
            let may_be_there = is_acked || *outcome == Outcome::Unknown;
            if is_acked && count == 0 {
                findings.lost += 1;
                findings.problem(|| format!("{name}: {number} did not arrive"));
            }
            let extra = count.saturating_sub(u32::from(may_be_there));
            if extra > 0 {
                findings.duplicated += u64::from(extra);
                findings.problem(|| format!("{name}: {number} arrived {count} times"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(acked: u32, consumed: &[&[u32]]) -> Stream {
        Stream {
            produced: vec![Outcome::Number(1); acked as usize],
            consumed: consumed.iter().map(|numbers| numbers.to_vec()).collect(),
            left: Vec::new(),
        }
    }

    #[test]
    fn a_list_gives_each_element_to_one() {
        assert!(stream(4, &[&[0, 2], &[1, 3]]).audit("l", Rule::One).is_clean());
        assert_eq!(stream(4, &[&[0, 2], &[1]]).audit("l", Rule::One).lost, 1);
        assert_eq!(stream(3, &[&[0, 2], &[1, 2]]).audit("l", Rule::One).duplicated, 1);
        assert_eq!(stream(3, &[&[1, 0], &[2]]).audit("l", Rule::One).reordered, 1);
        let mut left = stream(3, &[&[0, 1]]);
        left.left.push(2);
        assert!(left.audit("l", Rule::One).is_clean());
    }

    #[test]
    fn a_channel_gives_each_message_to_all() {
        assert!(stream(2, &[&[0, 1], &[0, 1]]).audit("c", Rule::Each).is_clean());
        assert_eq!(stream(2, &[&[0, 1], &[1]]).audit("c", Rule::Each).lost, 1);
        assert_eq!(stream(2, &[&[0, 0, 1], &[0, 1]]).audit("c", Rule::Each).duplicated, 1);
        assert_eq!(stream(1, &[&[0, 7]]).audit("c", Rule::Each).duplicated, 1);
    }

    #[test]
    fn the_unknown_may_arrive_once_and_the_unsent_not_at_all() {
        let mut stream = stream(3, &[&[0, 2]]);
        stream.produced[1] = Outcome::Unknown;
        let findings = stream.audit("l", Rule::One);
        assert_eq!((findings.failed, findings.lost, findings.duplicated), (1, 0, 0));
        stream.produced[2] = Outcome::Unsent;
        assert_eq!(stream.audit("l", Rule::One).duplicated, 1);
    }
}
