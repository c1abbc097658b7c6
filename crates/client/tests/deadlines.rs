//! A deadline that has passed is one, whatever the call.

use std::time::Duration;

use towline_client::transport::Target;
use towline_client::{Client, ConnectOptions, Error, Sent, cmd, pipe};

#[tokio::test]
async fn a_deadline_of_zero_fails_every_kind_of_call_before_it_is_sent() {
    // Nobody listens on port 1: commands would wait.
    let client = Client::lazy(ConnectOptions::new(Target::tcp("127.0.0.1", 1))).unwrap();
    let both = || pipe().cmd("GET").arg("a").cmd("GET").arg("b").deadline(Duration::ZERO);
    let errors: [Error; 3] = [
        cmd("GET").arg("a").deadline(Duration::ZERO).query::<()>(&client).await.unwrap_err(),
        both().query::<()>(&client).await.unwrap_err(),
        both().atomic().query::<()>(&client).await.unwrap_err(),
    ];
    for error in errors {
        assert!(error.is_timeout() && error.sent() == Sent::No, "{error}");
    }
    assert_eq!(client.snapshot().backlog_commands, 0);
}
