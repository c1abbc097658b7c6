//! A client outlives the runtime that it was made on, as far as its callers are concerned.

use towline_client::transport::Target;
use towline_client::{Client, ConnectOptions, ErrorKind, Sent, cmd};

#[test]
fn a_runtime_that_shuts_down_leaves_nobody_waiting() {
    let (give, take) = std::sync::mpsc::channel();
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let made_on = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            // Nobody listens on port 1: commands wait.
            give.send(Client::lazy(ConnectOptions::new(Target::tcp("127.0.0.1", 1))).unwrap()).unwrap();
            ended.await.unwrap_err();
        });
    });
    let client = take.recv().unwrap();
    let waits_on = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let error = waits_on.block_on(async move {
        let caller = client.clone();
        let waiting = tokio::spawn(async move { cmd("INCR").arg("n").query::<i64>(&caller).await });
        while client.snapshot().backlog_commands == 0 {
            tokio::task::yield_now().await;
        }
        drop(end);
        made_on.join().unwrap();
        let error = waiting.await.unwrap().unwrap_err();
        let refused = cmd("GET").arg("n").query::<i64>(&client).await.unwrap_err();
        assert_eq!(refused.kind(), &ErrorKind::Closed);
        error
    });
    assert_eq!((error.kind(), error.sent()), (&ErrorKind::Closed, Sent::No));
}
