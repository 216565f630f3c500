//! Free blocks, by class: one pool for all, and a short list a thread for small blocks.

use std::collections::VecDeque;

use super::block::{Block, CLASSES, Class, SMALL_CLASSES};

/// The free blocks of all threads.
pub struct Pool {
    /// A stack a class, oldest in front; each block with when it was freed.
    classes: Vec<VecDeque<(u64, Block)>>,
    /// Counts frees.
    clock: u64,
}

impl Pool {
    pub const fn new() -> Self {
        Pool { classes: Vec::new(), clock: 0 }
    }

    pub fn push(&mut self, block: Block) {
        if self.classes.is_empty() {
            self.classes.resize_with(CLASSES, VecDeque::new);
        }
        self.clock += 1;
        self.classes[block.class().index()].push_back((self.clock, block));
    }

    /// The block of `class`, or of the next larger one, that was freed last.
    pub fn pop(&mut self, class: Class) -> Option<Block> {
        let reach = if class.is_small() { 1 } else { 2 };
        let start = class.index().min(self.classes.len());
        let end = (start + reach).min(self.classes.len());
        self.classes[start..end].iter_mut().find_map(|c| c.pop_back()).map(|(_, block)| block)
    }

    /// Takes out the blocks that were freed first, until they are `bytes` bytes together.
    pub fn evict(&mut self, bytes: usize) -> Vec<Block> {
        let mut out = Vec::new();
        let mut total = 0;
        while total < bytes {
            let age = |c: &VecDeque<(u64, Block)>| c.front().map(|(freed, _)| *freed);
            let oldest = self.classes.iter_mut().filter(|c| !c.is_empty()).min_by_key(|c| age(c));
            let Some((_, block)) = oldest.and_then(VecDeque::pop_front) else {
                break;
            };
            total += block.bytes();
            out.push(block);
        }
        out
    }

    pub fn drain(&mut self) -> Vec<Block> {
        self.classes.iter_mut().flat_map(|c| c.drain(..)).map(|(_, block)| block).collect()
    }
}

/// Small blocks that one thread freed.
pub struct ThreadPool {
    classes: [Vec<Block>; SMALL_CLASSES],
    bytes: usize,
    /// The trim that it last saw.
    pub epoch: usize,
}

/// The most that one thread keeps, in bytes.
const KEPT: usize = 256 << 10;

impl ThreadPool {
    pub const fn new() -> Self {
        ThreadPool { classes: [const { Vec::new() }; SMALL_CLASSES], bytes: 0, epoch: 0 }
    }

    pub fn pop(&mut self, class: Class) -> Option<Block> {
        let block = self.classes[class.index()].pop()?;
        self.bytes -= block.bytes();
        Some(block)
    }

    /// Keeps the block, or gives it back where the list is full.
    pub fn push(&mut self, block: Block) -> Option<Block> {
        if self.bytes + block.bytes() > KEPT {
            return Some(block);
        }
        self.bytes += block.bytes();
        self.classes[block.class().index()].push(block);
        None
    }

    pub fn drain(&mut self) -> Vec<Block> {
        self.bytes = 0;
        self.classes.iter_mut().flat_map(|c| c.drain(..)).collect()
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        super::ALLOCATOR.release(self.drain());
    }
}
