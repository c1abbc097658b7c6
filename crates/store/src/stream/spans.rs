//! A list as it was, while it changes.
//!
//! Owns: which of the list's elements of now are those of then, and what became of the others. Does **not** own the list.
//!
//! The list of the opening instant is kept as a sequence of spans: ranges of the list of now, and encoded elements that
//! are no longer there. Each change of the list cuts the spans that it touches, which costs no more than the change.

use super::image::write_element;
use crate::elem::ElemBuf;
use crate::list::List;
use std::collections::VecDeque;
use std::ops::Range;

/// Saved elements are joined up to this many bytes.
const SAVED_BYTES_JOINED: usize = 4096;

#[derive(Debug)]
enum Span {
    /// Elements that are still where this range of indices says.
    Live(Range<usize>),
    /// Elements that are gone, encoded.
    Saved(Vec<u8>),
}

/// What is still to be sent of a list.
#[derive(Debug)]
pub(super) struct Spans {
    spans: VecDeque<Span>,
    saved_bytes: usize,
}

impl Spans {
    /// Nothing was sent of a list of `len` elements.
    pub(super) fn new(len: usize) -> Self {
        Self { spans: VecDeque::from([Span::Live(0..len)]), saved_bytes: 0 }
    }

    /// Whether everything was sent.
    pub(super) fn is_done(&self) -> bool {
        self.spans.is_empty()
    }

    /// Heap bytes because of changes, roughly.
    pub(super) fn held_bytes(&self) -> usize {
        self.spans.len().saturating_sub(1) * size_of::<Span>() + self.saved_bytes
    }

    /// `count` elements are about to be inserted in front of the one with index `at`.
    pub(super) fn before_insert(&mut self, at: usize, count: usize) {
        let mut after = VecDeque::with_capacity(self.spans.len() + 1);
        for span in self.spans.drain(..) {
            match span {
                Span::Live(range) if at <= range.start => {
                    after.push_back(Span::Live(range.start + count..range.end + count));
                }
                Span::Live(range) if at < range.end => {
                    after.push_back(Span::Live(range.start..at));
                    after.push_back(Span::Live(at + count..range.end + count));
                }
                span => after.push_back(span),
            }
        }
        self.spans = after;
    }

    /// The elements in `gone` are about to be removed from `list`.
    pub(super) fn before_remove(&mut self, gone: Range<usize>, list: &List) {
        self.cut(&gone, gone.len(), list);
    }

    /// The element with index `at` is about to be replaced.
    pub(super) fn before_set(&mut self, at: usize, list: &List) {
        self.cut(&(at..at + 1), 0, list);
    }

    /// Saves the elements in `gone`; those behind move by `shift` towards the head.
    fn cut(&mut self, gone: &Range<usize>, shift: usize, list: &List) {
        let mut after = VecDeque::with_capacity(self.spans.len() + 2);
        for span in std::mem::take(&mut self.spans) {
            let Span::Live(range) = span else {
                push(&mut after, span);
                continue;
            };
            let left = range.start..range.end.min(gone.start);
            let lost = range.start.max(gone.start)..range.end.min(gone.end);
            let right = range.start.max(gone.end)..range.end;
            if !left.is_empty() {
                after.push_back(Span::Live(left));
            }
            if !lost.is_empty() {
                let mut saved = Vec::new();
                write_range(&mut saved, list, lost);
                self.saved_bytes += saved.len();
                push(&mut after, Span::Saved(saved));
            }
            if !right.is_empty() {
                after.push_back(Span::Live(right.start - shift..right.end - shift));
            }
        }
        self.spans = after;
    }

    /// Writes the next elements, at most `elements` of them and not many more than `bytes` bytes.
    pub(super) fn write_next(&mut self, out: &mut Vec<u8>, list: &List, elements: usize, bytes: usize) {
        let (mut elements, start) = (elements, out.len());
        while elements > 0 && out.len() - start < bytes {
            match self.spans.pop_front() {
                None => return,
                Some(Span::Saved(saved)) => {
                    self.saved_bytes -= saved.len();
                    out.extend_from_slice(&saved);
                }
                Some(Span::Live(range)) => {
                    let mut buf = ElemBuf::new();
                    let mut at = range.start;
                    for element in list.iter_from(range.start).take(range.len().min(elements)) {
                        write_element(out, element.render(&mut buf));
                        at += 1;
                        if out.len() - start >= bytes {
                            break;
                        }
                    }
                    assert!(at > range.start, "invariant: a span's elements are in the list");
                    elements -= at - range.start;
                    if at < range.end {
                        self.spans.push_front(Span::Live(at..range.end));
                    }
                }
            }
        }
    }
}

/// Adds a span, joined with the one before it if both are small and saved.
fn push(spans: &mut VecDeque<Span>, span: Span) {
    if let (Some(Span::Saved(last)), Span::Saved(saved)) = (spans.back_mut(), &span)
        && last.len() + saved.len() <= SAVED_BYTES_JOINED
    {
        last.extend_from_slice(saved);
        return;
    }
    spans.push_back(span);
}

fn write_range(out: &mut Vec<u8>, list: &List, range: Range<usize>) {
    let mut buf = ElemBuf::new();
    list.iter_from(range.start)
        .take(range.len())
        .for_each(|element| write_element(out, element.render(&mut buf)));
}
