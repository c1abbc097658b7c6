//! Nobody learns a false fate from a reply that nobody waits for.

use towline_client::transport::Target;
use towline_client::{Client, ConnectOptions, ErrorKind, Sent, cmd};

#[tokio::test]
async fn a_fire_and_forget_command_has_no_typed_reply() {
    // Nobody listens on port 1: commands wait.
    let client = Client::lazy(ConnectOptions::new(Target::tcp("127.0.0.1", 1))).unwrap();
    let error = cmd("INCR").arg("n").fire_and_forget().query::<i64>(&client).await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Misuse(_)), "{error}");
    assert_eq!((error.sent(), client.snapshot().backlog_commands), (Sent::No, 0));
    cmd("INCR").arg("n").fire_and_forget().query::<()>(&client).await.unwrap();
    assert_eq!(client.snapshot().backlog_commands, 1);
}
