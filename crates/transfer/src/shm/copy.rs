//! Copying between mappings that other processes may change meanwhile.
//!
//! Owns the one routine that moves the bytes of shared memory. Does **not** own bounds: its callers have checked them.
//!
//! The C library's copy is not used, for two reasons. First, of memory that others change at the same time, Rust and C promise
//! nothing to plain copies; what assembly does to memory is as the processor says, which is: each byte is an old one or a new one.
//! Second, on some processors it falls to a twentieth of its speed where the two places lie a little more than a
//! multiple of 4 KiB apart (`docs/transfer.md`): a load then looks as if it depended on the store just before it, whose address
//! has the same low 12 bits. The loop here goes through such a pair backwards, so that the stores that look alike
//! come after their loads.
//!
//! Stores go through the caches up to [`STREAM_MIN`]; what is larger would only drive out everything else, and streams past them.

/// From so many bytes on, of one request, stores bypass the caches. Measured: see `docs/transfer.md`.
pub(crate) const STREAM_MIN: usize = 16 * 1024 * 1024;

/// How a copy treats the caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stores {
    /// What is written is read soon.
    Cached,
    /// There is more than the caches hold.
    Streaming,
}

impl Stores {
    /// What a request of so many bytes wants.
    pub(crate) fn of(bytes: usize) -> Self {
        if bytes >= STREAM_MIN { Self::Streaming } else { Self::Cached }
    }
}

/// Copies `len` bytes. Places may overlap; what arrives then is some mixture of what was there.
///
/// # Safety
/// `from..from + len` is mapped for reading and `to..to + len` for writing until this returns, and no Rust reference to
/// either exists meanwhile.
pub(crate) unsafe fn copy(from: *const u8, to: *mut u8, len: usize, stores: Stores) {
    // SAFETY: handed on.
    unsafe { machine::copy(from, to, len, stores) }
}

#[cfg(target_arch = "x86_64")]
mod machine {
    use std::arch::asm;

    use super::Stores;

    /// Bytes of one turn of the loops: four registers of AVX.
    const BLOCK: usize = 128;

    /// Places whose distance, modulo 4 KiB, is above zero and below this are copied backwards.
    const ALIASED: usize = 2048;

    /// # Safety
    /// See [`super::copy`].
    pub(super) unsafe fn copy(mut from: *const u8, mut to: *mut u8, mut len: usize, stores: Stores) {
        if len < 2 * BLOCK || !std::is_x86_feature_detected!("avx") {
            // SAFETY: handed on.
            return unsafe { bytes(from, to, len) };
        }
        // The blocks begin where the stores are aligned.
        let head = to.align_offset(32).min(len);
        let blocks = (len - head) / BLOCK;
        let distance = (to as usize).wrapping_sub(from as usize) % 4096;
        // SAFETY: head, blocks and tail are parts of the range, in this order, and the processor has AVX.
        unsafe {
            bytes(from, to, head);
            (from, to, len) = (from.add(head), to.add(head), len - head);
            match stores {
                Stores::Streaming => stream(from, to, blocks),
                Stores::Cached if distance > 0 && distance < ALIASED => backwards(from, to, blocks),
                Stores::Cached => forwards(from, to, blocks),
            }
            let done = blocks * BLOCK;
            bytes(from.add(done), to.add(done), len - done);
        }
    }

    /// # Safety
    /// See [`super::copy`].
    unsafe fn bytes(from: *const u8, to: *mut u8, len: usize) {
        // SAFETY: the direction flag is clear, and the caller vouches for both ranges.
        unsafe {
            asm!(
                "rep movsb",
                inout("rcx") len => _,
                inout("rsi") from => _,
                inout("rdi") to => _,
                options(nostack, preserves_flags)
            );
        }
    }

    /// # Safety
    /// See [`super::copy`], with `blocks` blocks; the processor has AVX and `to` is a multiple of 32.
    #[target_feature(enable = "avx")]
    unsafe fn forwards(from: *const u8, to: *mut u8, blocks: usize) {
        if blocks == 0 {
            return;
        }
        // SAFETY: the loop touches exactly `blocks` blocks of both ranges.
        unsafe {
            asm!(
                "2:",
                "vmovdqu {a}, [{from}]",
                "vmovdqu {b}, [{from} + 32]",
                "vmovdqu {c}, [{from} + 64]",
                "vmovdqu {d}, [{from} + 96]",
                "vmovdqa [{to}], {a}",
                "vmovdqa [{to} + 32], {b}",
                "vmovdqa [{to} + 64], {c}",
                "vmovdqa [{to} + 96], {d}",
                "add {from}, 128",
                "add {to}, 128",
                "dec {blocks}",
                "jnz 2b",
                "vzeroupper",
                from = inout(reg) from => _,
                to = inout(reg) to => _,
                blocks = inout(reg) blocks => _,
                a = out(ymm_reg) _, b = out(ymm_reg) _, c = out(ymm_reg) _, d = out(ymm_reg) _,
                options(nostack)
            );
        }
    }

    /// # Safety
    /// As for [`forwards`].
    #[target_feature(enable = "avx")]
    unsafe fn backwards(from: *const u8, to: *mut u8, blocks: usize) {
        if blocks == 0 {
            return;
        }
        let last = (blocks - 1) * BLOCK;
        // SAFETY: the loop touches exactly `blocks` blocks of both ranges, the last one first.
        unsafe {
            asm!(
                "2:",
                "vmovdqu {a}, [{from} + 96]",
                "vmovdqu {b}, [{from} + 64]",
                "vmovdqu {c}, [{from} + 32]",
                "vmovdqu {d}, [{from}]",
                "vmovdqa [{to} + 96], {a}",
                "vmovdqa [{to} + 64], {b}",
                "vmovdqa [{to} + 32], {c}",
                "vmovdqa [{to}], {d}",
                "sub {from}, 128",
                "sub {to}, 128",
                "dec {blocks}",
                "jnz 2b",
                "vzeroupper",
                from = inout(reg) from.wrapping_add(last) => _,
                to = inout(reg) to.wrapping_add(last) => _,
                blocks = inout(reg) blocks => _,
                a = out(ymm_reg) _, b = out(ymm_reg) _, c = out(ymm_reg) _, d = out(ymm_reg) _,
                options(nostack)
            );
        }
    }

    /// # Safety
    /// As for [`forwards`].
    #[target_feature(enable = "avx")]
    unsafe fn stream(from: *const u8, to: *mut u8, blocks: usize) {
        if blocks == 0 {
            return;
        }
        // SAFETY: as for `forwards`; the fence orders these stores before whatever tells that they are done.
        unsafe {
            asm!(
                "2:",
                "prefetcht0 [{from} + 512]",
                "prefetcht0 [{from} + 576]",
                "vmovdqu {a}, [{from}]",
                "vmovdqu {b}, [{from} + 32]",
                "vmovdqu {c}, [{from} + 64]",
                "vmovdqu {d}, [{from} + 96]",
                "vmovntdq [{to}], {a}",
                "vmovntdq [{to} + 32], {b}",
                "vmovntdq [{to} + 64], {c}",
                "vmovntdq [{to} + 96], {d}",
                "add {from}, 128",
                "add {to}, 128",
                "dec {blocks}",
                "jnz 2b",
                "sfence",
                "vzeroupper",
                from = inout(reg) from => _,
                to = inout(reg) to => _,
                blocks = inout(reg) blocks => _,
                a = out(ymm_reg) _, b = out(ymm_reg) _, c = out(ymm_reg) _, d = out(ymm_reg) _,
                options(nostack)
            );
        }
    }
}

/// Elsewhere: words, as atomics.
#[cfg(not(target_arch = "x86_64"))]
mod machine {
    use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

    use super::Stores;

    const WORD: usize = size_of::<u64>();

    /// # Safety
    /// See [`super::copy`].
    pub(super) unsafe fn copy(from: *const u8, to: *mut u8, len: usize, _stores: Stores) {
        let mut at = 0;
        while at < len {
            let (source, sink) = (from.wrapping_add(at).cast_mut(), to.wrapping_add(at));
            let is_word = len - at >= WORD && source.align_offset(WORD) == 0 && sink.align_offset(WORD) == 0;
            // SAFETY: both places are within the ranges; words are aligned.
            unsafe {
                if is_word {
                    let word = AtomicU64::from_ptr(source.cast()).load(Ordering::Relaxed);
                    AtomicU64::from_ptr(sink.cast()).store(word, Ordering::Relaxed);
                } else {
                    let byte = AtomicU8::from_ptr(source).load(Ordering::Relaxed);
                    AtomicU8::from_ptr(sink).store(byte, Ordering::Relaxed);
                }
            }
            at += if is_word { WORD } else { 1 };
        }
    }
}
