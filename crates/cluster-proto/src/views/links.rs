//! `CLUSTER LINKS`.

use crate::id::NodeId;
use towline_resp::writer::Writer;

/// A link between this node and another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkFacts {
    /// The other node.
    pub node: NodeId,
    /// Whether this node dialled.
    pub is_outgoing: bool,
    /// Since when, in unix milliseconds.
    pub since_ms: u64,
    /// Bytes that are allocated for sending.
    pub send_buffer_allocated: usize,
    /// Of these, bytes that wait.
    pub send_buffer_used: usize,
}

/// The reply to `CLUSTER LINKS`.
pub fn links(links: &[LinkFacts], out: &mut Writer) {
    let number = |value: usize| i64::try_from(value).unwrap_or(i64::MAX);
    out.array(links.len());
    for link in links {
        out.map(6);
        out.bulk(b"direction");
        out.bulk(if link.is_outgoing { b"to" } else { b"from" });
        out.bulk(b"node");
        out.bulk_display(link.node);
        out.bulk(b"create-time");
        out.int(i64::try_from(link.since_ms).unwrap_or(i64::MAX));
        out.bulk(b"events");
        // It is always read, and written to while something waits.
        out.bulk(if link.send_buffer_used > 0 { b"rw" } else { b"r" });
        out.bulk(b"send-buffer-allocated");
        out.int(number(link.send_buffer_allocated));
        out.bulk(b"send-buffer-used");
        out.int(number(link.send_buffer_used));
    }
}
