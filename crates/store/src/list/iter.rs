//! The iterator over a list's elements, in either direction.

use std::collections::vec_deque;

use crate::packed::{self, Elem, Packed};

/// Elements of a [`super::List`] from some index on, towards either end.
#[derive(Debug, Clone)]
pub struct Iter<'a> {
    node: packed::Iter<'a>,
    rest: Option<vec_deque::Iter<'a, Packed>>,
    is_backwards: bool,
}

impl<'a> Iter<'a> {
    /// The elements of `node`, then those of `rest`.
    pub(super) fn new(node: packed::Iter<'a>, rest: Option<vec_deque::Iter<'a, Packed>>) -> Self {
        Self { node, rest, is_backwards: false }
    }

    /// The elements of `node` from its end, then those of `rest` from its end.
    pub(super) fn backwards(node: packed::Iter<'a>, rest: Option<vec_deque::Iter<'a, Packed>>) -> Self {
        Self { node, rest, is_backwards: true }
    }
}

impl<'a> Iterator for Iter<'a> {
    type Item = Elem<'a>;

    fn next(&mut self) -> Option<Elem<'a>> {
        loop {
            let elem = if self.is_backwards { self.node.next_back() } else { self.node.next() };
            if elem.is_some() {
                return elem;
            }
            let rest = self.rest.as_mut()?;
            self.node = if self.is_backwards { rest.next_back()?.iter() } else { rest.next()?.iter() };
        }
    }
}
