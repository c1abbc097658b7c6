//! redis-rs's stream of the commands that a server is given.

use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

use ::redis::{FromRedisValue, RedisResult, Value, from_redis_value};
use futures_core::Stream;

use super::error::redis_error;
use crate::client::Client;

/// In the place of `redis::aio::Monitor`. A stream of it ends with its connection.
#[derive(Debug)]
pub struct Monitor(crate::Monitor);

impl Monitor {
    pub(super) async fn new(client: &Client) -> RedisResult<Self> {
        client.monitor().await.map(Self).map_err(redis_error)
    }

    /// The commands as the server writes them, for as long as this is borrowed. What is no `T` is left out.
    pub fn on_message<'a, T: FromRedisValue + 'a>(&'a mut self) -> impl Stream<Item = T> + 'a {
        Lines { monitor: &mut self.0, of: PhantomData }
    }

    /// The commands as the server writes them. What is no `T` is left out.
    pub fn into_on_message<T: FromRedisValue>(self) -> impl Stream<Item = T> {
        Lines { monitor: self.0, of: PhantomData }
    }
}

struct Lines<M, T> {
    monitor: M,
    of: PhantomData<fn() -> T>,
}

impl<M: Stream<Item = Result<crate::MonitorEvent, crate::Error>> + Unpin, T: FromRedisValue> Stream
    for Lines<M, T>
{
    type Item = T;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let lines = self.get_mut();
        loop {
            match Pin::new(&mut lines.monitor).poll_next(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(Ok(event))) => {
                    let line = Value::SimpleString(String::from_utf8_lossy(&event.line).into_owned());
                    if let Ok(line) = from_redis_value(line) {
                        return Poll::Ready(Some(line));
                    }
                }
                Poll::Ready(Some(Err(_)) | None) => return Poll::Ready(None),
            }
        }
    }
}

impl<M, T> fmt::Debug for Lines<M, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lines").finish_non_exhaustive()
    }
}
