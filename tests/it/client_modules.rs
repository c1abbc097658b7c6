//! Commands of modules. Vector sets run on Redis 8.2, which has them built in; the other modules are not installed where
//! these tests run: their keys, arguments and replies are tested in `crates/spec` and `crates/client`.

use std::collections::HashMap;
use std::pin::Pin;

use bytes::Bytes;
use e2e::process::{Server, ServerKind};
use towline_client::commands::{Commands, Fp32, TypedCommands, batch};
use towline_client::transport::Target;
use towline_client::{Client, ConnectOptions, Error, ProtocolChoice};

fn on(kind: ServerKind, test: impl Fn(Client) -> Pin<Box<dyn Future<Output = Result<(), Error>>>>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let server = Server::start(kind, &[]).unwrap();
    for protocol in [ProtocolChoice::Resp2, ProtocolChoice::Resp3] {
        let options = ConnectOptions::new(Target::tcp("127.0.0.1", server.port())).protocol(protocol);
        runtime.block_on(async {
            let client = Client::open(options).await.unwrap();
            TypedCommands::flushall(&client).await.unwrap();
            let outcome = test(client).await;
            assert!(outcome.is_ok(), "{} with {protocol:?}: {outcome:?}", kind.name());
        });
    }
}

#[test]
fn vector_sets_have_their_own_types() {
    on(ServerKind::Redis82, |client| {
        Box::pin(async move {
            let con = &client;
            assert!(TypedCommands::vadd(con, "v", Fp32(&[1.0, 0.0]), "east").await?);
            assert!(TypedCommands::vadd(con, "v", ("VALUES", 2, [0, 1]), "north").await?);
            assert!(!TypedCommands::vadd(con, "v", Fp32(&[0.0, 1.0]), "north").await?);
            let attributes = ("NOQUANT", "SETATTR", r#"{"far":true}"#);
            assert!(TypedCommands::vadd_with(con, "w", Fp32(&[0.6, 0.8]), "a", attributes).await?);
            assert_eq!((TypedCommands::vcard(con, "v").await?, TypedCommands::vdim(con, "v").await?), (2, 2));
            let nearest = TypedCommands::vsim(con, "v", Fp32(&[0.1, 0.9])).await?;
            assert_eq!(nearest, [Bytes::from_static(b"north"), Bytes::from_static(b"east")]);
            let options = ("WITHSCORES", "COUNT", 1);
            let scores: HashMap<String, f64> =
                Commands::vsim_with(con, "v", ("ELE", "east"), options).await?;
            assert!(scores.len() == 1 && scores["east"] > 0.99, "{scores:?}");
            let vector = TypedCommands::vemb(con, "w", "a").await?.unwrap();
            assert!((vector[0] - 0.6).abs() < 0.01 && (vector[1] - 0.8).abs() < 0.01, "{vector:?}");
            assert_eq!(TypedCommands::vemb(con, "w", "none").await?, None);
            let attribute = TypedCommands::vgetattr(con, "w", "a").await?;
            assert_eq!(attribute.as_deref(), Some(&br#"{"far":true}"#[..]));
            assert!(TypedCommands::vsetattr(con, "w", "a", "").await?);
            assert_eq!(TypedCommands::vgetattr(con, "w", "a").await?, None);
            let info: HashMap<String, towline_client::Frame> = Commands::vinfo(con, "v").await?;
            assert!(info.contains_key("vector-dim"), "{info:?}");
            assert!(TypedCommands::vismember(con, "v", "east").await?);
            assert!(TypedCommands::vrandmember(con, "v").await?.is_some());
            let (was_there, is_there) = batch().vrem("v", "east").vrem("v", "east").query(con).await?;
            assert_eq!((was_there, is_there), (true, false));
            Ok(())
        })
    });
}

/// A server without the module says so; nobody waits, and nothing shifts.
#[test]
fn a_module_that_is_not_there_is_an_error_of_its_command() {
    for kind in [ServerKind::Towline, ServerKind::Redis70] {
        on(kind, |client| {
            Box::pin(async move {
                let con = &client;
                let errors = [
                    TypedCommands::json_get(con, "doc", "$.a").await.unwrap_err(),
                    TypedCommands::ft_search(con, "index", "*").await.unwrap_err(),
                    TypedCommands::ts_range(con, "series", "-", "+").await.unwrap_err(),
                    TypedCommands::bf_add(con, "filter", "item").await.unwrap_err(),
                ];
                for error in errors {
                    assert!(error.to_string().contains("unknown command"), "{error}");
                }
                assert_eq!(TypedCommands::incr(con, "n").await?, 1);
                TypedCommands::flushall(con).await
            })
        });
    }
}

#[derive(Debug, Clone, PartialEq, towline_client::FromReply, towline_client::ToArgs)]
struct User {
    id: u64,
    mail: Option<String>,
    plan: Plan,
}

#[derive(Debug, Clone, Copy, PartialEq, towline_client::FromReply, towline_client::ToArgs)]
#[towline(rename_all = "lowercase")]
enum Plan {
    Free,
    Paid,
}

#[test]
fn a_derived_struct_is_a_hash_on_every_server() {
    for kind in ServerKind::ALL {
        on(kind, |client| {
            Box::pin(async move {
                let con = &client;
                let user = User { id: 7, mail: None, plan: Plan::Free };
                assert_eq!(TypedCommands::hset(con, "user:7", &user).await?, 2);
                let found: Option<User> = Commands::hgetall(con, "user:7").await?;
                assert_eq!(found, Some(user));
                assert_eq!(Commands::hgetall::<Option<User>>(con, "user:8").await?, None);
                let plan: Plan = Commands::hget(con, "user:7", "plan").await?;
                assert_eq!(plan, Plan::Free);
                TypedCommands::hset(con, "user:7", ("plan", Plan::Paid, "id", "x")).await?;
                let error = Commands::hgetall::<User>(con, "user:7").await.unwrap_err();
                assert!(error.to_string().contains("the reply.id is a text of 1 bytes"), "{error}");
                Ok(())
            })
        });
    }
}
