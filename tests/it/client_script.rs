//! The client's scripts: by digest where the server has them, and never a `NOSCRIPT` for the caller.

use crate::client_servers::each;
use towline_client::{Script, Transacted, cmd, pipe};

fn same(options: towline_client::ConnectOptions) -> towline_client::ConnectOptions {
    options
}

fn incr_by() -> Script {
    Script::new("return redis.call('INCRBY', KEYS[1], ARGV[1])")
}

#[test]
fn the_first_call_sends_the_source_and_the_others_the_digest() {
    each(same, |mut rig| {
        Box::pin(async move {
            let script = incr_by();
            for expected in 1..=5 {
                let total = script.key("total").arg(1).query::<i64>(&rig.client).await.unwrap();
                assert_eq!(total, expected);
            }
            assert_eq!((rig.calls("eval"), rig.calls("evalsha")), (1, 4));
            // A copy of the script is the same script; a loaded one needs no source.
            assert_eq!(incr_by().key("total").arg(1).query::<i64>(&rig.client).await.unwrap(), 6);
            let other = Script::new("return ARGV[1]");
            other.load(&rig.client).await.unwrap();
            assert_eq!(other.arg("echo").query::<String>(&rig.client).await.unwrap(), "echo");
            assert_eq!((rig.calls("eval"), rig.calls("evalsha")), (1, 6));
            // An error of the script is its own.
            let error = Script::new("return redis.error_reply('MINE no')").call();
            let error = error.query::<()>(&rig.client).await.unwrap_err();
            assert_eq!(error.code(), Some("MINE"));
        })
    });
}

#[test]
fn a_forgotten_script_is_sent_again_and_nobody_notices() {
    each(same, |mut rig| {
        Box::pin(async move {
            let script = incr_by();
            for expected in 1..=4 {
                let total = script.key("total").arg(1).query::<i64>(&rig.client).await.unwrap();
                assert_eq!(total, expected);
                rig.ask("SCRIPT FLUSH");
            }
            // Nobody would hear of it: fire-and-forget.
            script.key("total").arg(1).fire_and_forget().query::<()>(&rig.client).await.unwrap();
            assert_eq!(rig.client.get::<i64>("total").await.unwrap(), 5);
            // A new connection may lead to a server that never saw it.
            rig.ask("SCRIPT FLUSH");
            rig.kill_connections_in("get");
            // A read goes through whatever happens, and the next command finds the new connection.
            assert_eq!(rig.client.get::<i64>("total").await.unwrap(), 5);
            assert_eq!(script.key("total").arg(1).query::<i64>(&rig.client).await.unwrap(), 6);
        })
    });
}

#[test]
fn each_call_runs_once_while_scripts_are_being_forgotten() {
    each(same, |mut rig| {
        Box::pin(async move {
            let script = incr_by();
            let mut calls = Vec::new();
            for round in 0..200 {
                let (client, script) = (rig.client.clone(), script.clone());
                calls.push(tokio::spawn(async move {
                    script.key("total").arg(1).query::<i64>(&client).await.unwrap()
                }));
                if round % 20 == 0 {
                    rig.ask("SCRIPT FLUSH");
                }
            }
            let mut totals = Vec::new();
            for call in calls {
                totals.push(call.await.unwrap());
            }
            totals.sort_unstable();
            assert_eq!(totals, (1..=200).collect::<Vec<_>>());
        })
    });
}

#[test]
fn a_script_in_a_pipeline_or_transaction_carries_its_source() {
    each(same, |mut rig| {
        Box::pin(async move {
            let call = incr_by().key("total").arg(2);
            let pipeline = || pipe().cmd("PING").add_command(call.to_cmd_eval()).cmd("GET").arg("total");
            rig.ask("SCRIPT FLUSH");
            let (_, two, also) = pipeline().query::<(String, i64, i64)>(&rig.client).await.unwrap();
            assert_eq!((two, also), (2, 2));
            rig.ask("SCRIPT FLUSH");
            let outcome = pipeline().atomic().transact::<(String, i64, i64)>(&rig.client).await.unwrap();
            assert_eq!(outcome, Transacted::Committed(("PONG".to_owned(), 4, 4)));
            let by_digest = call.to_cmd_evalsha().query::<i64>(&rig.client).await.unwrap();
            assert_eq!(by_digest, 6);
        })
    });
}

#[test]
fn a_read_only_script_reads_only() {
    each(same, |mut rig| {
        Box::pin(async move {
            rig.client.set("key", "value").await.unwrap();
            let read = Script::new("return redis.call('GET', KEYS[1])").read_only();
            for _ in 0..3 {
                assert_eq!(read.key("key").query::<String>(&rig.client).await.unwrap(), "value");
            }
            assert_eq!((rig.calls("eval_ro"), rig.calls("evalsha_ro")), (1, 2));
            let write = incr_by().read_only().key("total").arg(1).query::<i64>(&rig.client).await;
            assert!(write.unwrap_err().code().is_some());
            assert_eq!(cmd("EXISTS").arg("total").query::<i64>(&rig.client).await.unwrap(), 0);
        })
    });
}

#[test]
fn without_a_script_cache_every_call_carries_its_source() {
    each(
        |options| options.script_cache(false),
        |mut rig| {
            Box::pin(async move {
                for _ in 0..3 {
                    incr_by().key("total").arg(1).query::<i64>(&rig.client).await.unwrap();
                }
                assert_eq!((rig.calls("eval"), rig.calls("evalsha")), (3, 0));
            })
        },
    );
}

#[test]
fn a_lease_runs_scripts_on_its_own_connection() {
    each(same, |mut rig| {
        Box::pin(async move {
            let lease = rig.client.lease().await.unwrap();
            cmd("SELECT").arg(1).query::<()>(&lease).await.unwrap();
            incr_by().key("total").arg(1).query::<i64>(&lease).await.unwrap();
            incr_by().key("total").arg(1).query::<i64>(&lease).await.unwrap();
            assert_eq!((rig.calls("eval"), rig.calls("evalsha")), (1, 1));
            assert_eq!(rig.client.get::<Option<i64>>("total").await.unwrap(), None);
        })
    });
}
