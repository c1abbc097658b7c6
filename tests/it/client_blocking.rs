//! The client for programs without a runtime: many threads, one connection, no call in the way of another.

use e2e::process::{Server, ServerKind};
use e2e::wait;
use std::thread;
use std::time::Duration;
use towline_client::blocking::{Client, Commands, TypedCommands};
use towline_client::transport::Target;
use towline_client::{ConnectOptions, ErrorKind, Policy, ProtocolChoice, Script, Transacted, cmd, pipe};

fn each(test: impl Fn(&Server, &Client)) {
    for kind in [ServerKind::Redis70, ServerKind::Valkey91] {
        for protocol in [ProtocolChoice::Resp2, ProtocolChoice::Resp3] {
            let server = Server::start(kind, &[]).unwrap();
            let options = ConnectOptions::new(Target::tcp("127.0.0.1", server.port())).protocol(protocol);
            let client = Client::open(options).unwrap();
            test(&server, &client);
        }
    }
}

#[test]
fn every_kind_of_call_works_without_a_runtime() {
    each(|_, client| {
        client.ready().unwrap();
        client.set("key", 1.to_string()).unwrap();
        assert_eq!(client.get::<i64>("key").unwrap(), 1);
        assert_eq!(client.query::<i64>(cmd("INCR").arg("key")).unwrap(), 2);
        let both = pipe().cmd("INCR").arg("key").cmd("GET").arg("key");
        assert_eq!(client.pipeline::<(i64, i64)>(both.clone()).unwrap(), (3, 3));
        assert_eq!(client.results(both.clone()).unwrap().len(), 2);
        assert_eq!(client.transact::<(i64, i64)>(both.atomic()).unwrap(), Transacted::Committed((5, 5)));
        let script = Script::new("return redis.call('INCRBY', KEYS[1], ARGV[1])");
        assert_eq!(client.script::<i64>(script.key("key").arg(5)).unwrap(), 10);
        let lease = client.lease().unwrap();
        lease.query::<()>(cmd("WATCH").arg("key")).unwrap();
        client.set("key", "other").unwrap();
        let outcome = lease.transact::<()>(pipe().cmd("DEL").arg("key").atomic()).unwrap();
        assert_eq!(outcome, Transacted::Conflict);
        drop(lease);
        assert!(wait::until(|| client.as_async().lease_report().idle == 1));
    });
}

#[test]
fn every_command_is_a_method_with_either_kind_of_type() {
    each(|_, client| {
        assert_eq!(TypedCommands::rpush(client, "list", ["a", "b"]).unwrap(), 2);
        assert_eq!(TypedCommands::lpop(client, "list").unwrap().as_deref(), Some(&b"a"[..]));
        let left: Vec<String> = Commands::lrange(client, "list", 0, -1).unwrap();
        assert_eq!(left, ["b"]);
        let old: Option<String> = Commands::set_with(client, "key", "new", ("EX", 60, "GET")).unwrap();
        assert_eq!(old, None);
        assert!((1..=60).contains(&TypedCommands::ttl(client, "key").unwrap()));
        assert_eq!(TypedCommands::incr(client, "key").unwrap_err().code(), Some("ERR"));
    });
}

#[test]
fn callers_that_wait_do_not_starve_the_others() {
    each(|_, client| {
        thread::scope(|scope| {
            let waiting: Vec<_> = (0..16)
                .map(|_| scope.spawn(|| client.query::<(String, u64)>(cmd("BLPOP").arg(("queue", 0)))))
                .collect();
            let busy: Vec<_> = (0..4)
                .map(|number| {
                    scope.spawn(move || {
                        let key = format!("key:{number}");
                        for value in 0..200_u64 {
                            client.set(&key, value.to_string()).unwrap();
                            assert_eq!(client.get::<u64>(&key).unwrap(), value);
                        }
                    })
                })
                .collect();
            busy.into_iter().for_each(|thread| thread.join().unwrap());
            for element in 0..16_u64 {
                client.query::<()>(cmd("RPUSH").arg(("queue", element))).unwrap();
            }
            let mut popped: Vec<u64> =
                waiting.into_iter().map(|thread| thread.join().unwrap().unwrap().1).collect();
            popped.sort_unstable();
            assert_eq!(popped, (0..16).collect::<Vec<_>>());
        });
    });
}

#[test]
fn a_deadline_frees_its_thread_although_the_server_stands_still() {
    each(|server, client| {
        server.signal(rustix::process::Signal::STOP).unwrap();
        let late = cmd("GET").arg("key").deadline(Duration::from_millis(100));
        let error = client.query::<()>(late).unwrap_err();
        server.signal(rustix::process::Signal::CONT).unwrap();
        assert_eq!(*error.kind(), ErrorKind::Deadline);
    });
}

#[test]
fn a_client_that_does_not_wait_does_not_wait_for_a_lease_either() {
    let port = e2e::process::free_port().unwrap();
    let options = ConnectOptions::new(Target::tcp("127.0.0.1", port)).backlog(Policy::FailFast);
    let client = Client::lazy(options).unwrap();
    assert_eq!(*client.lease().unwrap_err().kind(), ErrorKind::Unavailable);
    let pop = client.query::<()>(cmd("BLPOP").arg(("queue", 0)));
    assert_eq!(*pop.unwrap_err().kind(), ErrorKind::Unavailable);
}
