//! The bytes of every command that is not answered yet, in the order of the stream.
//!
//! Owns the blocks and the positions: a position is a count of bytes since the bridge began, it never goes back and
//! outlives connections. Does not own which command a range belongs to, nor what the kernel took ([`crate::Bridge`]).
//!
//! Callers append to the open block. Whoever writes takes whole blocks out, so that no lock is held during a system
//! call, and gives them back. A block stays until every command in it is answered: what was not possibly sent can
//! then be sent again without a copy.

use bytes::Bytes;
use std::collections::VecDeque;
use std::ops::Range;

/// An open block is closed at this size. One block is about one socket write; 16 KiB is what TLS puts in a record.
const BLOCK_BYTES: usize = 16 * 1024;

/// Blocks kept for reuse, and the largest capacity that is worth keeping: together at most 512 KiB.
const SPARES_MAX: usize = 8;
const SPARE_BYTES_MAX: usize = 64 * 1024;

/// Shared arguments of this size and more are not copied into a block.
pub const SHARE_BYTES_MIN: usize = 4096;

#[derive(Debug)]
enum Data {
    /// Copied bytes; callers append to the last block if it is one of these and open.
    Own(Vec<u8>),
    /// The caller's own buffer.
    Shared(Bytes),
    /// A writer has it.
    Out,
}

#[derive(Debug)]
struct Block {
    start: u64,
    len: usize,
    open: bool,
    data: Data,
}

impl Block {
    fn end(&self) -> u64 {
        self.start + self.len as u64
    }
}

/// Bytes on their way to the socket.
#[derive(Debug)]
pub(crate) struct Part {
    /// Where the part begins in the stream; `None` for handshake and connection-state bytes, which have no position.
    start: Option<u64>,
    /// Where the block it was taken from begins.
    block: u64,
    data: PartData,
    range: Range<usize>,
}

#[derive(Debug)]
enum PartData {
    Own(Vec<u8>),
    Shared(Bytes),
}

impl Part {
    /// Bytes without a position.
    pub(crate) fn urgent(bytes: Vec<u8>) -> Self {
        let range = 0..bytes.len();
        Self { start: None, block: 0, data: PartData::Own(bytes), range }
    }

    /// Whether these are bytes of commands; the connection's own have no position.
    pub(crate) const fn has_position(&self) -> bool {
        self.start.is_some()
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        match &self.data {
            PartData::Own(bytes) => &bytes[self.range.clone()],
            PartData::Shared(bytes) => &bytes[self.range.clone()],
        }
    }

    /// Notes that the first `count` bytes were taken; returns the position reached, if it has one.
    pub(crate) fn advance(&mut self, count: usize) -> Option<u64> {
        self.range.start += count;
        if let Some(start) = &mut self.start {
            *start += count as u64;
        }
        self.start
    }
}

/// The log of unanswered commands' bytes.
#[derive(Debug, Default)]
pub(crate) struct Log {
    blocks: VecDeque<Block>,
    end: u64,
    spares: Vec<Vec<u8>>,
    /// Bytes in blocks, answered or not.
    held: usize,
}

impl Log {
    /// The position after the last byte.
    pub(crate) const fn end(&self) -> u64 {
        self.end
    }

    /// Bytes of memory that the blocks' contents take.
    pub(crate) const fn held(&self) -> usize {
        self.held
    }

    /// The block to append `room` bytes to.
    fn open_block(&mut self, room: usize) -> &mut Block {
        // Filled to the last command that fits: room left behind would be a quarter of what a long backlog costs.
        let fits = self.blocks.back().is_some_and(|block| {
            block.open
                && matches!(&block.data, Data::Own(data) if data.capacity().saturating_sub(block.len) >= room)
        });
        if !fits {
            self.close();
            let mut data = self.spares.pop().unwrap_or_default();
            if data.capacity() < room {
                data.reserve_exact(room.max(BLOCK_BYTES));
            }
            self.blocks.push_back(Block { start: self.end, len: 0, open: true, data: Data::Own(data) });
        }
        let last = self.blocks.len() - 1;
        &mut self.blocks[last]
    }

    /// Closes the open block: later bytes go to a new one.
    fn close(&mut self) {
        let Some(block) = self.blocks.back_mut() else { return };
        block.open = false;
        // Every block in the list has bytes, so that no two begin at the same position.
        if block.len == 0
            && let Some(Block { data: Data::Own(bytes), .. }) = self.blocks.pop_back()
        {
            self.keep_spare(bytes);
        }
    }

    /// Appends what `fill` writes, copied. `hint` is its size, or a guess.
    #[inline]
    pub(crate) fn append(&mut self, hint: usize, fill: impl FnOnce(&mut Vec<u8>)) {
        let block = self.open_block(hint);
        let Data::Own(data) = &mut block.data else { return };
        fill(data);
        let added = data.len() - block.len;
        block.len = data.len();
        self.end += added as u64;
        self.held += added;
    }

    /// Appends a shared buffer, not copied.
    pub(crate) fn share(&mut self, bytes: Bytes) {
        if bytes.is_empty() {
            return;
        }
        self.close();
        let (start, len) = (self.end, bytes.len());
        self.blocks.push_back(Block { start, len, open: false, data: Data::Shared(bytes) });
        self.end += len as u64;
        self.held += len;
    }

    /// Where the block with `position` is.
    fn find(&self, position: u64) -> Option<usize> {
        let at = self.blocks.partition_point(|block| block.end() <= position);
        (at < self.blocks.len() && self.blocks[at].start <= position).then_some(at)
    }

    /// Takes the bytes of `range` out for writing, as parts pushed to `out`. A block from which a part was taken is
    /// closed, and is out until [`Log::give_back`]; one that is out already ends the taking. Returns the position
    /// reached.
    pub(crate) fn take(&mut self, range: Range<u64>, out: &mut VecDeque<Part>) -> u64 {
        let mut at = range.start;
        let Some(mut index) = self.find(at) else { return at };
        while at < range.end && index < self.blocks.len() {
            let block = &mut self.blocks[index];
            let from = usize::try_from(at.saturating_sub(block.start)).unwrap_or(usize::MAX);
            let to = usize::try_from(range.end - block.start).unwrap_or(usize::MAX).min(block.len);
            let data = match std::mem::replace(&mut block.data, Data::Out) {
                Data::Own(bytes) => PartData::Own(bytes),
                Data::Shared(bytes) => PartData::Shared(bytes),
                Data::Out => return at,
            };
            block.open = false;
            out.push_back(Part { start: Some(at), block: block.start, data, range: from..to });
            at = block.start + to as u64;
            index += 1;
        }
        at
    }

    /// Returns a part's block. Bytes without a position are kept as spare memory.
    pub(crate) fn give_back(&mut self, part: Part) {
        let index = if part.start.is_some() {
            self.blocks.binary_search_by_key(&part.block, |block| block.start).ok()
        } else {
            None
        };
        // Behind a gap that compacting has left, bytes would get the positions of others.
        let is_last =
            index.is_some_and(|index| index + 1 == self.blocks.len() && self.blocks[index].end() == self.end);
        match (index, part.data) {
            (Some(index), PartData::Own(bytes)) => {
                // There may be room in it: small batches fill one block before they take another.
                self.blocks[index].open = is_last;
                self.blocks[index].data = Data::Own(bytes);
            }
            (Some(index), PartData::Shared(bytes)) => self.blocks[index].data = Data::Shared(bytes),
            (None, PartData::Own(bytes)) => self.keep_spare(bytes),
            (None, PartData::Shared(_)) => {}
        }
    }

    pub(crate) fn keep_spare(&mut self, mut bytes: Vec<u8>) {
        if self.spares.len() < SPARES_MAX && bytes.capacity() <= SPARE_BYTES_MAX {
            bytes.clear();
            self.spares.push(bytes);
        }
    }

    /// An empty buffer with memory from the spares.
    pub(crate) fn spare(&mut self) -> Vec<u8> {
        self.spares.pop().unwrap_or_default()
    }

    /// Drops every block that ends at or before `position`: all its commands are answered. A block that a writer has
    /// is dropped at the next call.
    pub(crate) fn release(&mut self, position: u64) {
        while let Some(block) = self.blocks.front_mut()
            && block.end() <= position
        {
            match std::mem::replace(&mut block.data, Data::Out) {
                Data::Out => return,
                // The open block is emptied in place, so that steady traffic needs no new one.
                Data::Own(mut bytes) if block.open => {
                    self.held -= block.len;
                    block.start = block.end();
                    block.len = 0;
                    bytes.clear();
                    block.data = Data::Own(bytes);
                    return;
                }
                Data::Own(bytes) => {
                    self.held -= block.len;
                    self.blocks.pop_front();
                    self.keep_spare(bytes);
                }
                Data::Shared(_) => {
                    self.held -= block.len;
                    self.blocks.pop_front();
                }
            }
        }
    }

    /// Copies `range` to `out`. The range must not be out with a writer.
    pub(crate) fn copy(&self, range: Range<u64>, out: &mut Vec<u8>) -> bool {
        let mut at = range.start;
        let Some(index) = self.find(at) else { return range.is_empty() };
        for block in self.blocks.range(index..) {
            if at >= range.end {
                break;
            }
            let from = usize::try_from(at.saturating_sub(block.start)).unwrap_or(usize::MAX);
            let to = usize::try_from(range.end - block.start).unwrap_or(usize::MAX).min(block.len);
            match &block.data {
                Data::Own(bytes) => out.extend_from_slice(&bytes[from..to]),
                Data::Shared(bytes) => out.extend_from_slice(&bytes[from..to]),
                Data::Out => return false,
            }
            at = block.start + to as u64;
        }
        at >= range.end
    }

    /// Moves `ranges` (ascending) to fresh positions at the end of the log, in order, and drops the blocks that they
    /// came from. Blocks that begin before `from` stay, with the ranges that begin in them; of those behind, none may
    /// be out. Calls `moved` with each range's new end. What is left of many withdrawn commands is made small this way.
    pub(crate) fn compact(
        &mut self,
        from: u64,
        ranges: &[(u32, Range<u64>)],
        mut moved: impl FnMut(u32, u64),
    ) {
        let mut kept = self.blocks.partition_point(|block| block.start < from);
        let mut staying = 0;
        while let (Some(block), Some((_, range))) = (self.blocks.get(kept), ranges.get(staying))
            && range.start < block.start
        {
            kept = self.blocks.partition_point(|block| block.start < range.end).max(kept);
            staying += 1;
        }
        if kept == self.blocks.len() {
            return;
        }
        let blocks = self.blocks.split_off(kept);
        let held = blocks.iter().map(|block| block.len).sum();
        let source = Self { blocks, end: self.end, spares: Vec::new(), held };
        self.held -= held;
        if let Some(last) = self.blocks.back_mut() {
            // Positions go on behind a gap.
            last.open = false;
        }
        for (key, range) in &ranges[staying..] {
            let len = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
            self.append(len, |out| {
                source.copy(range.clone(), out);
            });
            moved(*key, self.end);
        }
    }

    /// Whether a writer has any block.
    pub(crate) fn is_out(&self) -> bool {
        self.blocks.iter().any(|block| matches!(block.data, Data::Out))
    }
}
