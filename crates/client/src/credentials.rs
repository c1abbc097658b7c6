//! Who a client is, when that changes with time.
//!
//! Owns [`CredentialsProvider`] and its two usual forms: credentials that stay, and [`RotatingCredentials`]. Does **not**
//! own `AUTH` (the handshake) nor when it is repeated (the driver).

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use tokio::sync::watch;
use towline_client_proto::Credentials;

/// A future of a [`CredentialsProvider`].
pub type CredentialsFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Gives credentials whenever a connection is set up, and says when they change.
///
/// On a change the client authenticates open connections again, in place, before the old credentials end; a connection
/// whose server refuses the new ones is replaced. Implemented by [`Credentials`] for those that never change.
pub trait CredentialsProvider: Send + Sync + 'static {
    /// The credentials to use now. Called once for each connection, within its connect timeout: keep a token instead of
    /// fetching one each time.
    ///
    /// # Errors
    /// There are none at the moment: the dial fails and is repeated with backoff.
    ///
    /// # Cancel safety
    /// The future is dropped when its time is over.
    fn credentials(&self) -> CredentialsFuture<'_, Result<Credentials, CredentialsError>>;

    /// Ends as soon as [`credentials`](Self::credentials) would give something else than `known`. The default never
    /// does.
    ///
    /// # Cancel safety
    /// The future may be dropped at any time; a change is not lost, since `known` tells what was seen.
    fn changed<'a>(&'a self, known: &'a Credentials) -> CredentialsFuture<'a, ()> {
        let _ = known;
        Box::pin(std::future::pending())
    }
}

/// Credentials that stay.
impl CredentialsProvider for Credentials {
    fn credentials(&self) -> CredentialsFuture<'_, Result<Credentials, CredentialsError>> {
        Box::pin(async { Ok(self.clone()) })
    }
}

/// Why a provider has no credentials. `Display` and `source` are those of its reason.
#[derive(Debug)]
pub struct CredentialsError(Box<dyn Error + Send + Sync>);

impl CredentialsError {
    /// From the provider's own error, or a text. It is shown to people and logged: it must not hold a secret.
    pub fn new(reason: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self(reason.into())
    }
}

impl fmt::Display for CredentialsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no credentials: {}", self.0)
    }
}

impl Error for CredentialsError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}

/// Credentials that the application replaces, such as a token that is renewed. A cheap handle: give a clone to the
/// client and keep one.
///
/// ```
/// use towline_client::{Credentials, RotatingCredentials};
///
/// let rotating = RotatingCredentials::new(Credentials::user("app", "first"));
/// let kept = rotating.clone();
/// // ... ConnectOptions::new(target).credentials_provider(rotating) ...
/// kept.set(Credentials::user("app", "second"));
/// ```
#[derive(Debug, Clone)]
pub struct RotatingCredentials {
    current: watch::Sender<Credentials>,
}

impl RotatingCredentials {
    /// Begins with these.
    pub fn new(credentials: Credentials) -> Self {
        Self { current: watch::Sender::new(credentials) }
    }

    /// Replaces them. Clients authenticate their connections again if these are others.
    pub fn set(&self, credentials: Credentials) {
        self.current.send_replace(credentials);
    }
}

impl CredentialsProvider for RotatingCredentials {
    fn credentials(&self) -> CredentialsFuture<'_, Result<Credentials, CredentialsError>> {
        let current = self.current.borrow().clone();
        Box::pin(async { Ok(current) })
    }

    fn changed<'a>(&'a self, known: &'a Credentials) -> CredentialsFuture<'a, ()> {
        let mut changes = self.current.subscribe();
        Box::pin(async move {
            if changes.wait_for(|current| current != known).await.is_err() {
                // Cannot be: this handle is a sender. Then nothing changes any more.
                std::future::pending().await
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::{Context, Poll, Waker};

    fn is_ready(future: &mut CredentialsFuture<'_, ()>) -> bool {
        future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[tokio::test]
    async fn a_change_is_seen_whenever_it_came() {
        let (first, second) = (Credentials::password("1"), Credentials::user("u", "2"));
        let provider = RotatingCredentials::new(first.clone());
        assert_eq!(provider.credentials().await.unwrap(), first);
        let mut early = provider.changed(&first);
        assert!(!is_ready(&mut early));
        provider.clone().set(first.clone());
        assert!(!is_ready(&mut early));
        provider.set(second.clone());
        assert!(is_ready(&mut early));
        // One that begins to wait after the change learns of it too.
        assert!(is_ready(&mut provider.changed(&first)));
        assert!(!is_ready(&mut provider.changed(&second)));
        assert_eq!(provider.credentials().await.unwrap(), second);
    }

    #[tokio::test]
    async fn credentials_that_stay_provide_themselves() {
        let fixed = Credentials::password("1");
        assert_eq!(CredentialsProvider::credentials(&fixed).await.unwrap(), fixed);
        assert!(!is_ready(&mut fixed.changed(&fixed)));
        let mut asked = fixed.credentials();
        let Poll::Ready(Ok(_)) = asked.as_mut().poll(&mut Context::from_waker(Waker::noop())) else {
            panic!("not at once")
        };
    }

    #[test]
    fn nothing_shows_a_secret() {
        let rotating = RotatingCredentials::new(Credentials::user("app", "hunter2"));
        assert!(!format!("{rotating:?}").contains("hunter2"));
        let error = CredentialsError::new("the vault is sealed");
        assert_eq!(error.to_string(), "no credentials: the vault is sealed");
    }
}
