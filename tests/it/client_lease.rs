//! The client's leased connections: blocking commands that hold up nobody, and state that stays with its owner.

use crate::client_servers::{Rig, each};
use e2e::wait;
use rustix::process::Signal;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use towline_client::{
    Client, Error, ErrorKind, LivenessConfig, LostCause, SecondOpinion, Sent, Transacted, cmd, pipe,
};

type Popped = Option<(String, String)>;

fn same(options: towline_client::ConnectOptions) -> towline_client::ConnectOptions {
    options
}

/// Starts `BLPOP key time` on a task of its own.
fn blpop(client: &Client, key: &str, time: f64) -> tokio::task::JoinHandle<Result<Popped, Error>> {
    let (client, key) = (client.clone(), key.to_owned());
    tokio::spawn(async move { cmd("BLPOP").arg(key).arg(time).query::<Popped>(&client).await })
}

fn pair(key: &str, element: &str) -> Popped {
    Some((key.to_owned(), element.to_owned()))
}

/// Waits until no leased connection is in use.
fn wait_for_rest(client: &Client) {
    assert!(wait::until(|| client.lease_report().taken == 0), "{:?}", client.lease_report());
}

/// Pain 2: one blocked command stalls everybody on a multiplexed connection.
#[test]
fn a_blocked_command_holds_up_nobody() {
    each(same, |mut rig| {
        Box::pin(async move {
            let waiting = blpop(&rig.client, "queue", 0.0);
            let reading = cmd("XREAD").arg(("BLOCK", 0, "STREAMS", "stream", 0));
            let reader = rig.client.clone();
            let reading = tokio::spawn(async move { reading.query::<towline_client::Frame>(&reader).await });
            rig.wait_for_blocked(2);
            rig.client.set("key", "value").await.unwrap();
            assert_eq!(rig.client.get::<String>("key").await.unwrap(), "value");
            assert_eq!(rig.client.lease_report().taken, 2);
            cmd("RPUSH").arg(("queue", "job")).query::<()>(&rig.client).await.unwrap();
            cmd("XADD").arg(("stream", "*", "f", "v")).query::<()>(&rig.client).await.unwrap();
            assert_eq!(waiting.await.unwrap().unwrap(), pair("queue", "job"));
            assert!(!reading.await.unwrap().unwrap().is_null());
            // The connections are used again.
            for _ in 0..5 {
                assert_eq!(blpop(&rig.client, "queue", 0.01).await.unwrap().unwrap(), None);
            }
            let report = rig.client.lease_report();
            assert_eq!((report.opened, report.taken, report.idle), (2, 0, 2));
        })
    });
}

/// Pain 3: the default timeout, or the watch over a silent server, ends a command that was told to wait longer.
#[test]
fn neither_timeout_nor_liveness_end_a_wait_that_was_asked_for() {
    let impatient = LivenessConfig {
        silence_max: Duration::from_millis(100),
        second_opinion: None::<SecondOpinion>,
        ..LivenessConfig::default()
    };
    each(
        |options| options.command_timeout(Duration::from_millis(200)).liveness(impatient),
        |rig| {
            Box::pin(async move {
                let endless = blpop(&rig.client, "queue", 0.0);
                let started = Instant::now();
                assert_eq!(blpop(&rig.client, "nothing", 0.8).await.unwrap().unwrap(), None);
                assert!(started.elapsed() >= Duration::from_millis(800));
                assert!(!endless.is_finished());
                cmd("RPUSH").arg(("queue", "job")).query::<()>(&rig.client).await.unwrap();
                assert_eq!(endless.await.unwrap().unwrap(), pair("queue", "job"));
                assert_eq!(rig.client.lease_report().opened, 2);
            })
        },
    );
}

#[test]
fn a_silent_server_is_noticed_after_the_block_time() {
    let impatient = LivenessConfig { silence_max: Duration::from_millis(300), ..LivenessConfig::default() };
    each(
        |options| options.liveness(impatient),
        |mut rig| {
            Box::pin(async move {
                let waiting = blpop(&rig.client, "queue", 0.2);
                rig.wait_for_blocked(1);
                rig.server.signal(Signal::STOP).unwrap();
                let error = waiting.await.unwrap().unwrap_err();
                rig.server.signal(Signal::CONT).unwrap();
                assert_eq!(*error.kind(), ErrorKind::Lost(LostCause::Silent));
                assert_eq!(error.sent(), Sent::Maybe);
            })
        },
    );
}

#[test]
fn a_dropped_pop_takes_no_element_and_its_connection_serves_again() {
    each(same, |mut rig| {
        Box::pin(async move {
            let waiting = blpop(&rig.client, "queue", 0.0);
            rig.wait_for_blocked(1);
            waiting.abort();
            rig.wait_for_blocked(0);
            wait_for_rest(&rig.client);
            assert_eq!(rig.ask("RPUSH queue job"), ":1");
            assert_eq!(blpop(&rig.client, "queue", 0.0).await.unwrap().unwrap(), pair("queue", "job"));
            let report = rig.client.lease_report();
            assert_eq!((report.opened, report.unblocked, report.replies_lost), (1, 1, 0));
        })
    });
}

#[test]
fn a_pop_that_is_dropped_before_it_arrives_is_unblocked_too() {
    each(same, |mut rig| {
        Box::pin(async move {
            for round in 0..20 {
                let mut waiting = Box::pin(cmd("BLPOP").arg(("queue", 0)).query::<Popped>(&rig.client));
                // Until it has a connection and has sent its bytes, or not yet.
                for _ in 0..round {
                    tokio::select! {
                        biased;
                        outcome = &mut waiting => panic!("{outcome:?}"),
                        () = tokio::task::yield_now() => {}
                    }
                }
                drop(waiting);
            }
            wait_for_rest(&rig.client);
            rig.wait_for_blocked(0);
            assert_eq!(rig.client.lease_report().replies_lost, 0);
            assert_eq!(rig.ask("RPUSH queue job"), ":1");
            assert_eq!(rig.ask("LLEN queue"), ":1");
        })
    });
}

#[test]
fn a_pop_that_is_dropped_on_a_lease_frees_the_lease() {
    each(same, |mut rig| {
        Box::pin(async move {
            let lease = rig.client.lease().await.unwrap();
            for _ in 0..3 {
                let mut waiting = Box::pin(cmd("BLPOP").arg(("queue", 0)).query::<Popped>(&lease));
                tokio::select! {
                    biased;
                    outcome = &mut waiting => panic!("{outcome:?}"),
                    () = std::future::ready(()) => {}
                }
                rig.wait_for_blocked(1);
                drop(waiting);
                lease.set("key", "value").await.unwrap();
            }
            assert_eq!(rig.ask("RPUSH queue job"), ":1");
            drop(lease);
            wait_for_rest(&rig.client);
            assert!(wait::until(|| rig.client.lease_report().unblocked == 3));
            assert_eq!(rig.client.lease_report().replies_lost, 0);
        })
    });
}

#[test]
fn an_element_that_wins_the_race_against_a_drop_is_counted() {
    each(same, |mut rig| {
        Box::pin(async move {
            let waiting = blpop(&rig.client, "queue", 0.0);
            rig.wait_for_blocked(1);
            // The server wakes up with both in its sockets, the element first.
            rig.server.signal(Signal::STOP).unwrap();
            rig.observer.send(&["RPUSH", "queue", "job"]).unwrap();
            waiting.abort();
            assert!(waiting.await.unwrap_err().is_cancelled());
            rig.server.signal(Signal::CONT).unwrap();
            rig.observer.read().unwrap();
            wait_for_rest(&rig.client);
            let report = rig.client.lease_report();
            assert_eq!((report.unblocked, report.replies_lost, report.idle), (1, 1, 1));
        })
    });
}

#[test]
fn a_deadline_ends_an_endless_wait_here_and_at_the_server() {
    each(same, |mut rig| {
        Box::pin(async move {
            let waiting = cmd("BLPOP").arg(("queue", 0)).deadline(Duration::from_millis(300));
            let error = waiting.query::<Popped>(&rig.client).await.unwrap_err();
            assert_eq!((error.kind(), error.sent()), (&ErrorKind::Deadline, Sent::Maybe));
            assert!(error.diagnosis().is_some());
            rig.wait_for_blocked(0);
            wait_for_rest(&rig.client);
            assert_eq!(rig.client.lease_report().idle, 1);
        })
    });
}

/// Pain 4, for pops: what may have run is not repeated.
#[test]
fn a_pop_whose_connection_dies_is_not_repeated() {
    each(same, |mut rig| {
        Box::pin(async move {
            let waiting = blpop(&rig.client, "queue", 0.0);
            rig.wait_for_blocked(1);
            rig.kill_connections_in("blpop");
            let error = waiting.await.unwrap().unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::Lost(_)), "{error}");
            assert_eq!(error.sent(), Sent::Maybe);
            rig.wait_for_blocked(0);
            assert_eq!(rig.client.lease_report().idle, 0);
        })
    });
}

#[test]
fn a_read_whose_connection_dies_goes_on_with_the_time_that_remains() {
    each(same, |mut rig| {
        Box::pin(async move {
            let reader = rig.client.clone();
            let read = cmd("XREAD").arg(("BLOCK", 60_000, "STREAMS", "stream", 0));
            let reading = tokio::spawn(async move { read.query::<towline_client::Frame>(&reader).await });
            for _ in 0..3 {
                rig.wait_for_blocked(1);
                rig.kill_connections_in("xread");
            }
            rig.wait_for_blocked(1);
            rig.ask("XADD stream 1-1 f v");
            assert!(!reading.await.unwrap().unwrap().is_null());

            let reader = rig.client.clone();
            let read = cmd("XREAD").arg(("BLOCK", 300, "STREAMS", "stream", "1-1"));
            let reading = tokio::spawn(async move { read.query::<Option<String>>(&reader).await });
            rig.wait_for_blocked(1);
            rig.kill_connections_in("xread");
            assert_eq!(reading.await.unwrap().unwrap(), None);

            // What comes while there is no connection would be missed.
            let reader = rig.client.clone();
            let read = cmd("XREAD").arg(("BLOCK", 60_000, "STREAMS", "stream", "$"));
            let reading = tokio::spawn(async move { read.query::<()>(&reader).await });
            rig.wait_for_blocked(1);
            rig.kill_connections_in("xread");
            assert_eq!(reading.await.unwrap().unwrap_err().sent(), Sent::Maybe);
        })
    });
}

#[test]
fn leases_are_bounded_and_given_in_the_order_of_the_requests() {
    let bounded = |options: towline_client::ConnectOptions| {
        options.leased_max(2).command_timeout(Duration::from_secs(20))
    };
    each(bounded, |rig| {
        Box::pin(async move {
            let first = rig.client.lease().await.unwrap();
            let second = rig.client.lease().await.unwrap();
            let late = cmd("BLPOP").arg(("queue", 0)).deadline(Duration::from_millis(50));
            let error = late.query::<Popped>(&rig.client).await.unwrap_err();
            assert_eq!(*error.kind(), ErrorKind::LeasesTaken { leased_max: 2 });
            assert!(error.is_timeout() && error.is_retryable());

            let order = Arc::new(Mutex::new(Vec::new()));
            let mut waiters = Vec::new();
            for number in 0..4 {
                let (client, order) = (rig.client.clone(), Arc::clone(&order));
                waiters.push(tokio::spawn(async move {
                    let lease = client.lease().await.unwrap();
                    order.lock().unwrap().push(number);
                    cmd("PING").query::<()>(&lease).await.unwrap();
                }));
                // It stands in the line before the next one comes.
                tokio::task::yield_now().await;
                let ping = cmd("PING").query::<()>(&rig.client);
                ping.await.unwrap();
            }
            drop(first);
            for waiter in waiters {
                waiter.await.unwrap();
            }
            drop(second);
            assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3]);
            assert_eq!(rig.client.lease_report().opened, 2);
        })
    });
}

#[test]
fn unused_connections_are_closed_after_a_while() {
    each(
        |options| options.leased_idle_max(Duration::from_millis(50)),
        |mut rig| {
            Box::pin(async move {
                let leases = [rig.client.lease().await.unwrap(), rig.client.lease().await.unwrap()];
                assert!(rig.ask("INFO clients").contains("connected_clients:4\r\n"));
                drop(leases);
                assert!(wait::until(|| rig.client.lease_report().idle == 0));
                assert!(wait::until(|| rig.ask("INFO clients").contains("connected_clients:2\r\n")));
            })
        },
    );
}

/// Pain 17: two users of one connection share what is watched.
#[test]
fn what_a_lease_watches_is_its_own() {
    each(same, |rig| {
        Box::pin(async move {
            let client = &rig.client;
            let lease = client.lease().await.unwrap();
            cmd("WATCH").arg("key").query::<()>(&lease).await.unwrap();
            client.set("key", "theirs").await.unwrap();
            let change = || pipe().cmd("SET").arg("key").arg("mine").atomic();
            let outcome = change().transact::<()>(&lease).await.unwrap();
            assert_eq!(outcome, Transacted::Conflict);

            // Whoever has the connection next is not bothered by what was watched or begun.
            cmd("WATCH").arg("key").query::<()>(&lease).await.unwrap();
            drop(lease);
            client.set("key", "theirs").await.unwrap();
            wait_for_rest(client);
            let lease = client.lease().await.unwrap();
            assert_eq!(change().transact::<()>(&lease).await.unwrap(), Transacted::Committed(()));
            cmd("MULTI").query::<()>(&lease).await.unwrap();
            cmd("SET").arg(("key", "torn")).query::<()>(&lease).await.unwrap();
            drop(lease);
            wait_for_rest(client);
            let lease = client.lease().await.unwrap();
            assert_eq!(lease.get::<String>("key").await.unwrap(), "mine");
            assert_eq!(client.lease_report().opened, 1);
        })
    });
}

#[test]
fn a_lease_ends_with_its_connection_and_runs_nothing_without_its_watch() {
    each(same, |mut rig| {
        Box::pin(async move {
            let lease = rig.client.lease().await.unwrap();
            cmd("WATCH").arg("key").query::<()>(&lease).await.unwrap();
            rig.kill_connections_in("watch");
            let change = || pipe().cmd("SET").arg("key").arg("mine").atomic();
            assert!(wait::until(|| rig.connections_in("watch").is_empty()));
            for _ in 0..3 {
                match change().transact::<()>(&lease).await {
                    Ok(Transacted::Unknown(error)) | Err(error) => {
                        assert!(error.is_connection_lost(), "{error}");
                    }
                    other => panic!("{other:?}"),
                }
            }
            assert_eq!(rig.client.get::<Option<String>>("key").await.unwrap(), None);
            drop(lease);
            let lease = rig.client.lease().await.unwrap();
            assert_eq!(change().transact::<()>(&lease).await.unwrap(), Transacted::Committed(()));
        })
    });
}

#[test]
fn a_changed_connection_is_not_given_to_another() {
    each(same, |mut rig| {
        Box::pin(async move {
            let lease = rig.client.lease().await.unwrap();
            cmd("SELECT").arg(1).query::<()>(&lease).await.unwrap();
            lease.set("key", "one").await.unwrap();
            drop(lease);
            let lease = rig.client.lease().await.unwrap();
            assert_eq!(lease.get::<Option<String>>("key").await.unwrap(), None);
            // A handle that was cloned out of a lease loses its connection with it.
            let stolen = Client::clone(&lease);
            drop(lease);
            let error = stolen.get::<Option<String>>("key").await.unwrap_err();
            assert_eq!(error.sent(), Sent::No);
            assert_eq!(rig.client.lease_report().idle, 0);
            assert_eq!(rig.ask("DBSIZE"), ":0");
        })
    });
}

#[test]
fn state_of_the_shared_connection_is_out_of_reach() {
    each(same, |rig| {
        Box::pin(async move {
            let misuses = [
                cmd("SELECT").arg(1),
                cmd("MULTI"),
                cmd("WATCH").arg("key"),
                cmd("SUBSCRIBE").arg("news"),
                cmd("CLIENT REPLY").arg("OFF"),
                cmd("MONITOR"),
                cmd("RESET"),
                cmd("WAIT").arg((0, 0)),
            ];
            for misuse in misuses {
                let error = misuse.clone().query::<()>(&rig.client).await.unwrap_err();
                assert!(matches!(error.kind(), ErrorKind::Misuse(_)), "{misuse:?}: {error}");
                let error = pipe().add_command(misuse.clone()).query::<()>(&rig.client).await.unwrap_err();
                assert!(matches!(error.kind(), ErrorKind::Misuse(_)), "{misuse:?}: {error}");
                let unit = pipe().add_command(misuse.clone()).atomic();
                let error = unit.query::<()>(&rig.client).await.unwrap_err();
                assert!(matches!(error.kind(), ErrorKind::Misuse(_)), "{misuse:?}: {error}");
            }
            assert!(cmd("CLIENT ID").query::<u64>(&rig.client).await.unwrap() > 0);
            // `WAIT` speaks of the writes of its own connection.
            let lease = rig.client.lease().await.unwrap();
            lease.set("key", "value").await.unwrap();
            assert_eq!(cmd("WAIT").arg((0, 100)).query::<u64>(&lease).await.unwrap(), 0);
            let blocked = cmd("BLPOP").arg(("queue", 0.05)).query::<Popped>(&lease).await;
            assert_eq!(blocked.unwrap(), None);
        })
    });
}

#[test]
fn a_client_that_ends_takes_its_connections_along() {
    each(same, |rig| {
        Box::pin(async move {
            let Rig { client, mut observer, .. } = rig;
            drop(client.lease().await.unwrap());
            let lease = client.lease().await.unwrap();
            drop(client);
            cmd("PING").query::<()>(&lease).await.unwrap();
            assert_eq!(*lease.lease().await.unwrap_err().kind(), ErrorKind::Closed);
            drop(lease);
            let alone = wait::until(|| {
                let info = observer.words("INFO clients").unwrap();
                String::from_utf8_lossy(info.bytes().unwrap()).contains("connected_clients:1\r\n")
            });
            assert!(alone);
        })
    });
}
