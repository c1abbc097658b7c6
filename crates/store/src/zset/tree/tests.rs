use super::*;
use crate::zset::large::Large;

impl Tree {
    /// Checks everything that the tree promises and returns its height.
    pub(in crate::zset) fn assert_valid(&self, members: &Members) -> usize {
        let (mut leaves, mut inners) = (0, 0);
        let height = assert_below(&self.root, true, &mut leaves, &mut inners);
        assert_eq!((leaves, inners), (self.leaf_count, self.inner_count));
        assert_eq!(self.root.count(), self.len);
        let entries: Vec<_> = (0..self.len)
            .map(|rank| {
                let (leaf, at) = self.select(rank).expect("a rank below the length");
                leaf.entry(at)
            })
            .collect();
        for pair in entries.windows(2) {
            let key = Key { score: pair[1].1, member: members.member(pair[1].0) };
            assert_eq!(key.entry_order(pair[0].1, pair[0].0, members), Ordering::Less);
        }
        for (rank, &(id, score)) in entries.iter().enumerate() {
            assert_eq!(members.score(id), score);
            assert_eq!(self.rank(Key { score, member: members.member(id) }, members), rank);
        }
        assert!(self.select(self.len).is_none());
        height
    }

    pub(in crate::zset) fn leaf_count(&self) -> usize {
        self.leaf_count
    }
}

fn assert_below(node: &Node, is_root: bool, leaves: &mut usize, inners: &mut usize) -> usize {
    match node {
        Node::Leaf(leaf) => {
            *leaves += 1;
            assert!(is_root || leaf.len() > 0);
            1
        }
        Node::Inner(inner) => {
            *inners += 1;
            assert!((2..=INNER_CHILDREN).contains(&inner.children.len()));
            let heights: Vec<_> = inner
                .children
                .iter()
                .map(|child| {
                    assert_eq!((child.score, child.id), child.node.first());
                    assert_eq!(child.count as usize, child.node.count());
                    assert_below(&child.node, false, leaves, inners)
                })
                .collect();
            assert!(heights.windows(2).all(|pair| pair[0] == pair[1]));
            heights[0] + 1
        }
    }
}

/// A small generator of its own, so that a failure repeats.
struct Steps(u64);

impl Steps {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

fn member(number: u64) -> Vec<u8> {
    // One in four is too long for its slot.
    if number.is_multiple_of(4) {
        format!("{number:040}").into_bytes()
    } else {
        number.to_string().into_bytes()
    }
}

#[test]
fn random_growth_and_decay_keep_the_order() {
    for (seed, scores) in [(1, 1), (2, 7), (3, 100_000)] {
        let mut steps = Steps(seed);
        let mut set = Large::new();
        for round in 0..40_000 {
            // The second half removes more than it adds, down to nearly nothing.
            let is_insert = steps.next(100) < if round < 20_000 { 75 } else { 15 };
            let name = member(steps.next(8_000));
            if is_insert {
                set.insert(&name, steps.next(scores) as f64);
            } else {
                set.remove(&name);
            }
            if round % 4_000 == 0 {
                set.assert_valid();
            }
        }
        while let Some((name, _)) = set.select(steps.next(set.len().max(1) as u64) as usize) {
            let name = name.to_vec();
            assert!(set.remove(&name).is_some());
        }
        assert_eq!(set.len(), 0);
        set.assert_valid();
    }
}

#[test]
fn filling_in_order_leaves_full_leaves() {
    for is_descending in [false, true] {
        let mut set = Large::new();
        for number in 0..20_000 {
            let score = if is_descending { -f64::from(number) } else { f64::from(number) };
            set.insert(number.to_string().as_bytes(), score);
        }
        let (height, leaves) = set.assert_valid();
        assert!(leaves <= 20_000 / LEAF_ENTRIES + 1, "{leaves}");
        assert!(height <= 4);
        for rank in (0..20_000).rev() {
            let end = if is_descending { 0 } else { rank };
            let name = set.select(end).expect("not empty").0.to_vec();
            set.remove(&name);
            if rank % 1_000 == 0 {
                set.assert_valid();
            }
        }
    }
}
