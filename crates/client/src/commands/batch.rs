//! Pipelines and transactions whose result has a type for each command.
//!
//! Owns [`Batch`], which is a [`Pipeline`] that remembers the types. Does not own sending.

mod methods;

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use towline_client_proto::Error;

use crate::client::Client;
use crate::cmd::Cmd;
use crate::pipeline::{Pipeline, Transacted, pipe};
use crate::value::FromReply;

/// Begins a batch.
///
/// ```no_run
/// # async fn run(client: &towline_client::Client) -> Result<(), towline_client::Error> {
/// use towline_client::commands::batch;
///
/// let (visits, name) = batch().incr("visits").get("name").query(client).await?;
/// let _: (i64, Option<bytes::Bytes>) = (visits, name);
/// # Ok(())
/// # }
/// ```
#[must_use = "a batch does nothing until it is sent"]
pub const fn batch() -> Batch<()> {
    Batch { pipeline: pipe(), replies: PhantomData }
}

/// A pipeline whose result is the tuple `T`: a place for each command, in order. At most 12.
///
/// Its methods append commands; those whose reply depends on how they are called ask for its type. Another type than a
/// method's own has [`and`](Self::and): `batch().and::<Option<String>>(make::strings::get("name"))`.
#[must_use = "a batch does nothing until it is sent"]
pub struct Batch<T> {
    pipeline: Pipeline,
    replies: PhantomData<fn() -> T>,
}

/// A tuple that can have one more place.
pub trait Grow {
    /// The tuple with one more place.
    type With<R>;
}

macro_rules! grow {
    ($($name:ident)*) => {
        impl<$($name),*> Grow for ($($name,)*) {
            type With<R> = ($($name,)* R,);
        }
    };
}

grow!();
grow!(A);
grow!(A B);
grow!(A B C);
grow!(A B C D);
grow!(A B C D E);
grow!(A B C D E F);
grow!(A B C D E F G);
grow!(A B C D E F G H);
grow!(A B C D E F G H I);
grow!(A B C D E F G H I J);
grow!(A B C D E F G H I J K);

impl<T: Grow> Batch<T> {
    /// Appends any command whose reply is an `R`.
    pub fn and<R>(mut self, cmd: Cmd) -> Batch<T::With<R>> {
        self.pipeline.push(cmd);
        Batch { pipeline: self.pipeline, replies: PhantomData }
    }
}

impl<T> Batch<T> {
    /// Appends a command without a place in the result. An error of it is reported all the same.
    pub fn and_ignore(mut self, cmd: Cmd) -> Self {
        self.pipeline = self.pipeline.add_command(cmd).ignore();
        self
    }

    /// As [`Pipeline::atomic`].
    pub fn atomic(mut self) -> Self {
        self.pipeline = self.pipeline.atomic();
        self
    }

    /// As [`Pipeline::deadline`].
    pub fn deadline(mut self, after: Duration) -> Self {
        self.pipeline = self.pipeline.deadline(after);
        self
    }

    /// The pipeline, without the types.
    pub fn into_pipeline(self) -> Pipeline {
        self.pipeline
    }
}

impl<T: FromReply> Batch<T> {
    /// Sends the commands; see [`Pipeline::query`].
    ///
    /// # Errors
    /// As [`Pipeline::query`].
    ///
    /// # Cancel safety
    /// As [`Pipeline::query`].
    pub async fn query(self, client: &Client) -> Result<T, Error> {
        self.pipeline.query(client).await
    }

    /// Sends the commands as a transaction, [`atomic`](Self::atomic) or not; see [`Pipeline::transact`].
    ///
    /// # Errors
    /// As [`Pipeline::transact`].
    ///
    /// # Cancel safety
    /// As [`Pipeline::transact`].
    pub async fn transact(self, client: &Client) -> Result<Transacted<T>, Error> {
        self.pipeline.transact(client).await
    }
}

impl<T> Clone for Batch<T> {
    fn clone(&self) -> Self {
        Self { pipeline: self.pipeline.clone(), replies: PhantomData }
    }
}

impl<T> fmt::Debug for Batch<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Batch").field(&self.pipeline).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::make::hashes::hget;
    use bytes::Bytes;

    #[test]
    fn each_command_has_a_place_of_its_type() {
        let batch: Batch<(i64, Option<Bytes>, String)> =
            batch().incr("a").get("b").and(hget("h", "f")).and_ignore(Cmd::new("PING")).atomic();
        let pipeline = batch.into_pipeline();
        assert_eq!((pipeline.len(), pipeline.reply_count(), pipeline.is_atomic()), (4, 3, true));
    }
}
