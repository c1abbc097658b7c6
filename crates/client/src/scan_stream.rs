//! Streams over what `SCAN` and its relatives find.
//!
//! Owns [`ScanStream`]: the cursor, one page at a time, and the memory of at most one page. Does **not** own the guarantee,
//! which is the server's: an element that is there from the beginning to the end is seen, at least once; others may be.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_core::Stream;
use towline_client_proto::Error;

use crate::args::{Args, ToArgs};
use crate::client::Client;
use crate::cmd::{Cmd, cmd};
use crate::value::FromReply;

type Page<T> = Result<(Bytes, Vec<T>), Error>;

/// A stream of keys or elements; see [`Client::scan_keys`]. It is not begun before it is polled.
///
/// The options are set before the first poll; later they are without effect. After an error the next poll tries the
/// same page again, so that nothing is left out; a reader who does not want that stops.
#[must_use = "nothing is scanned until it is polled"]
pub struct ScanStream<T> {
    client: Client,
    /// The command up to the cursor.
    head: Cmd,
    options: Args,
    place: Place<T>,
    page: VecDeque<T>,
}

enum Place<T> {
    /// The next page begins at this cursor.
    At(Bytes),
    /// It is on its way, and was asked for from this cursor.
    Asked(Bytes, Pin<Box<dyn Future<Output = Page<T>> + Send>>),
    End,
}

impl Client {
    /// Every key of the database (`SCAN`), as a [`Stream`]. Of one server: in a cluster it is refused
    /// ([`ErrorKind::Misuse`](crate::ErrorKind::Misuse)), because a cursor belongs to one node; [`Client::scan_all`] visits all of
    /// them.
    ///
    /// ```no_run
    /// # async fn run(client: towline_client::Client) -> Result<(), towline_client::Error> {
    /// let mut keys = client.scan_keys::<String>().matching("user:*");
    /// while let Some(key) = keys.next().await {
    ///     println!("{}", key?);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn scan_keys<T: FromReply + Send + 'static>(&self) -> ScanStream<T> {
        ScanStream::new(self, cmd("SCAN"))
    }

    /// Every member of a set (`SSCAN`).
    pub fn scan_set<T: FromReply + Send + 'static>(&self, key: impl ToArgs) -> ScanStream<T> {
        ScanStream::new(self, cmd("SSCAN").arg(key))
    }

    /// Every field of a hash with its value (`HSCAN`).
    pub fn scan_hash<F, V>(&self, key: impl ToArgs) -> ScanStream<(F, V)>
    where
        F: FromReply + Send + 'static,
        V: FromReply + Send + 'static,
    {
        ScanStream::new(self, cmd("HSCAN").arg(key))
    }

    /// Every member of a sorted set with its score (`ZSCAN`).
    pub fn scan_sorted_set<T: FromReply + Send + 'static>(&self, key: impl ToArgs) -> ScanStream<(T, f64)> {
        ScanStream::new(self, cmd("ZSCAN").arg(key))
    }
}

impl<T: FromReply + Send + 'static> ScanStream<T> {
    fn new(client: &Client, head: Cmd) -> Self {
        let place = Place::At(Bytes::from_static(b"0"));
        Self { client: client.clone(), head, options: Args::default(), place, page: VecDeque::new() }
    }

    /// Only what matches the pattern (`MATCH`): `user:*`, `h?llo`, `h[ae]llo`.
    pub fn matching(mut self, pattern: impl ToArgs) -> Self {
        ("MATCH", pattern).write_args(&mut self.options);
        self
    }

    /// About how many elements the server looks at for each page (`COUNT`). Its default is 10: good for a server that
    /// has others to serve, slow for a whole database.
    pub fn page_size(mut self, count: u32) -> Self {
        ("COUNT", count).write_args(&mut self.options);
        self
    }

    /// Only keys whose value is of this type (`TYPE`): `string`, `list`, `set`, `zset`, `hash`, `stream`. For
    /// [`Client::scan_keys`].
    pub fn of_type(mut self, name: impl ToArgs) -> Self {
        ("TYPE", name).write_args(&mut self.options);
        self
    }

    /// The next element, or the error that kept it away; `None` at the end.
    ///
    /// # Errors
    /// As [`Cmd::query`]. What the reply does not fit into is an [`ErrorKind::Shape`](crate::ErrorKind::Shape), whose
    /// page cannot be read at the next try either.
    ///
    /// # Cancel safety
    /// Nothing is lost: the page that is on its way is waited for by the next call.
    pub async fn next(&mut self) -> Option<Result<T, Error>> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    fn ask(&self, cursor: &Bytes) -> Pin<Box<dyn Future<Output = Page<T>> + Send>> {
        let mut page = self.head.clone();
        page.push(cursor).push(&self.options);
        let client = self.client.clone();
        Box::pin(async move { page.query(&client).await })
    }
}

/// No part of it is pinned: what has to be is in a box.
impl<T> Unpin for ScanStream<T> {}

impl<T: FromReply + Send + 'static> Stream for ScanStream<T> {
    type Item = Result<T, Error>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let scan = self.get_mut();
        loop {
            if let Some(element) = scan.page.pop_front() {
                return Poll::Ready(Some(Ok(element)));
            }
            match &mut scan.place {
                Place::End => return Poll::Ready(None),
                Place::At(cursor) => {
                    let cursor = cursor.clone();
                    let page = scan.ask(&cursor);
                    scan.place = Place::Asked(cursor, page);
                }
                Place::Asked(cursor, page) => match page.as_mut().poll(cx) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Err(error)) => {
                        scan.place = Place::At(cursor.clone());
                        return Poll::Ready(Some(Err(error)));
                    }
                    Poll::Ready(Ok((next, elements))) => {
                        scan.page = elements.into();
                        scan.place = if &next[..] == b"0" { Place::End } else { Place::At(next) };
                    }
                },
            }
        }
    }
}

impl<T> fmt::Debug for ScanStream<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScanStream")
            .field("head", &self.head)
            .field("page_len", &self.page.len())
            .finish_non_exhaustive()
    }
}
