//! The model server's promises, over bytes.

mod maintenance;

use std::time::Duration;

use bytes::Bytes;
use towline_resp::frame::{Frame, encode_command};
use towline_sansio::Instant;

use super::*;

const A: ConnectionId = ConnectionId(1);
const B: ConnectionId = ConnectionId(2);

/// A server with two connections, and the time.
struct Rig {
    model: Model,
    now: Instant,
}

impl Rig {
    fn new(config: ModelConfig) -> Self {
        let (mut model, now) = (Model::new(config), Instant::ZERO);
        model.connect(now, A).unwrap();
        model.connect(now, B).unwrap();
        Self { model, now }
    }

    /// Sends commands, words separated by blanks, in one piece.
    fn send(&mut self, connection: ConnectionId, commands: &[&str]) {
        let mut bytes = Vec::new();
        for command in commands {
            encode_command(&command.split(' ').collect::<Vec<_>>(), &mut bytes);
        }
        self.model.bytes(self.now, connection, &bytes);
    }

    /// Everything that has left, `connection:bytes` or `connection:close`; neighbours of one connection are joined.
    fn take(&mut self) -> String {
        let (mut text, mut last) = (String::new(), None);
        while let Some(Output { connection, event }) = self.model.poll_output(self.now) {
            if last.replace(connection) != Some(connection) {
                text += &format!("{}:", connection.0);
            }
            text += &match event {
                OutputEvent::Bytes(bytes) => String::from_utf8_lossy(&bytes).replace("\r\n", " "),
                OutputEvent::Close => "close ".to_owned(),
            };
        }
        text.trim_end().to_owned()
    }

    fn call(&mut self, connection: ConnectionId, commands: &[&str]) -> String {
        self.send(connection, commands);
        self.take()
    }

    /// Lets time pass, one timeout after the other.
    fn pass(&mut self, duration: Duration) -> String {
        let (end, mut text) = (self.now + duration, String::new());
        while let Some(at) = self.model.poll_timeout().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.model.handle_timeout(self.now);
            text += &self.take();
        }
        self.now = end;
        text
    }

    fn names(&self) -> Vec<String> {
        let name = |entry: &Entry| String::from_utf8_lossy(&entry.args[0]).into_owned();
        self.model.ledger().entries().iter().map(name).collect()
    }
}

fn rig() -> Rig {
    Rig::new(ModelConfig::default())
}

#[test]
fn prepared_replies_answer_what_begins_with_their_words() {
    let mut rig = Rig::new(ModelConfig::default());
    rig.model.answer("json.get", Frame::Null);
    rig.model.answer("JSON.GET doc", Frame::Integer(7));
    rig.model.answer("client id", Frame::Boolean(true));
    assert_eq!(rig.call(A, &["JSON.GET doc $", "Json.Get other", "JSON.GET"]), "1::7 $-1 $-1");
    assert_eq!(rig.call(A, &["CLIENT ID"]), "1::1");
    assert_eq!(rig.call(A, &["MULTI", "JSON.GET doc", "EXEC"]).split(' ').next(), Some("1:+OK"));
    assert!(rig.model.ledger().entries().iter().all(|entry| entry.args[0] != "JSON.GET"));
}

#[test]
fn strings_and_lists_answer_as_redis_does() {
    let mut rig = rig();
    let commands =
        ["SET k 5", "INCR k", "INCRBY k 10", "APPEND k x", "GET k", "INCR k", "DEL k none", "GET k"];
    assert_eq!(
        rig.call(A, &commands),
        "1:+OK :6 :16 :3 $3 16x -ERR value is not an integer or out of range :1 $-1"
    );
    let commands =
        ["RPUSH l a b", "LPUSH l c", "LRANGE l 0 -1", "LPOP l", "RPOP l 5", "EXISTS l", "LPOP l 1"];
    assert_eq!(rig.call(A, &commands), "1::2 :3 *3 $1 c $1 a $1 b $1 c *2 $1 b $1 a :0 *-1");
    let commands = ["RPUSH l a", "GET l", "SET l v NX", "SET l v XX GET", "SET l v XX", "GET l", "NOPE 1"];
    assert_eq!(
        rig.call(A, &commands),
        "1::1 -WRONGTYPE Operation against a key holding the wrong kind of value $-1 -WRONGTYPE Operation against a \
         key holding the wrong kind of value +OK $1 v -ERR unknown command 'NOPE', with args beginning with: '1'"
    );
}

#[test]
fn extreme_indexes_find_nothing_and_harm_nothing() {
    let mut rig = rig();
    rig.call(A, &["RPUSH l a b"]);
    let (low, high) = (i64::MIN, i64::MAX);
    let commands =
        [format!("LRANGE l {high} {low}"), format!("LRANGE l {low} {high}"), format!("LPOP l {high}")];
    let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
    assert_eq!(rig.call(A, &commands), "1:*0 *2 $1 a $1 b *2 $1 a $1 b");
}

#[test]
fn a_refused_exec_discards_its_transaction() {
    let mut rig = rig();
    rig.call(A, &["MULTI", "SET k id:1"]);
    rig.model.trouble(Trouble::new(Wrong::Refuse(Refusal::Text("ERR no".into()))));
    assert_eq!(
        rig.call(A, &["EXEC", "EXEC"]),
        "1:-EXECABORT Transaction discarded because of: no -ERR EXEC without MULTI"
    );
    assert_eq!(rig.model.ledger().execution_count(1), 0);
}

#[test]
fn keys_expire_in_virtual_time() {
    let mut rig = rig();
    assert_eq!(
        rig.call(A, &["SET k v EX 2", "TTL k", "SET j v", "TTL j", "TTL none"]),
        "1:+OK :2 +OK :-1 :-2"
    );
    rig.pass(Duration::from_millis(1999));
    assert_eq!(rig.call(A, &["PTTL k", "EXISTS k"]), "1::1 :1");
    rig.pass(Duration::from_millis(1));
    assert_eq!(rig.call(A, &["EXISTS k", "EXPIRE j 0", "EXISTS j"]), "1::0 :1 :0");
}

#[test]
fn every_execution_is_in_the_ledger_once_and_refusals_are_not() {
    let mut rig = rig();
    rig.call(A, &["SET a id:1", "GET", "NOPE", "INCR a", "SET b id:2"]);
    rig.model.trouble(Trouble::new(Wrong::Refuse(Refusal::ReadOnly)));
    rig.call(A, &["GET a", "SET a id:3", "SET a id:4"]);
    assert_eq!(rig.names(), ["SET", "INCR", "SET", "GET", "SET"]);
    let ledger = rig.model.ledger();
    assert_eq!(ledger.ids().collect::<Vec<_>>(), [(1, 1), (2, 1), (4, 1)]);
    assert!(ledger.entries()[1].failed, "INCR of a text changes nothing");
    let order: Vec<_> = ledger.order_of(b"a").map(|entry| entry.sequence).collect();
    assert_eq!(order, [0, 1, 3, 4]);
}

#[test]
fn transactions_commit_are_refused_or_find_their_watch_broken() {
    let mut rig = rig();
    assert_eq!(
        rig.call(A, &["MULTI", "SET k id:1", "INCR k", "GET k", "EXEC"]),
        "1:+OK +QUEUED +QUEUED +QUEUED *3 +OK -ERR value is not an integer or out of range $4 id:1"
    );
    let entries = rig.model.ledger().entries();
    let exec = entries.last().unwrap();
    assert_eq!((exec.args[0].as_ref(), exec.transaction), (b"EXEC".as_slice(), None));
    assert!(entries[1..4].iter().all(|entry| entry.transaction == Some(exec.sequence)));
    assert_eq!(
        rig.call(A, &["MULTI", "NOPE", "SET k id:2", "EXEC", "EXEC"]),
        "1:+OK -ERR unknown command 'NOPE', with args beginning with: +QUEUED -EXECABORT Transaction discarded because of \
         previous errors. -ERR EXEC without MULTI"
            .replace(": +Q", ":  +Q")
    );
    rig.call(A, &["WATCH k", "MULTI", "SET k id:3"]);
    rig.call(B, &["SET k other"]);
    assert_eq!(rig.call(A, &["EXEC", "GET k"]), "1:*-1 $5 other");
    assert_eq!(rig.call(A, &["WATCH k", "MULTI", "SET k id:4", "EXEC"]), "1:+OK +OK +QUEUED *1 +OK");
    let counts: Vec<_> = (1..=4).map(|id| rig.model.ledger().execution_count(id)).collect();
    assert_eq!(counts, [1, 0, 0, 1]);
}

#[test]
fn blocking_pops_are_served_in_order_time_out_and_can_be_unblocked() {
    let mut rig = rig();
    assert_eq!(rig.call(A, &["BLPOP l m 1", "PING"]), "");
    assert_eq!(rig.call(B, &["BLPOP l 0"]), "");
    let c = ConnectionId(3);
    rig.model.connect(rig.now, c).unwrap();
    assert_eq!(rig.call(c, &["RPUSH l x"]), "3::1 1:*2 $1 l $1 x +PONG");
    assert_eq!(rig.call(A, &["BLPOP l 0.5"]), "");
    assert_eq!(rig.pass(Duration::from_millis(499)), "");
    assert_eq!(rig.pass(Duration::from_millis(1)), "1:*-1");
    assert_eq!(
        rig.call(A, &["CLIENT UNBLOCK 2 ERROR", "CLIENT UNBLOCK 2"]),
        "2:-UNBLOCKED client unblocked via CLIENT UNBLOCK 1::1 :0"
    );
    rig.send(B, &["BLPOP l 0"]);
    rig.model.disconnect(rig.now, B);
    assert_eq!(
        rig.call(A, &["RPUSH l y", "LRANGE l 0 -1", "MULTI", "BLPOP n 0", "EXEC"]),
        "1::1 *1 $1 y +OK +QUEUED *1 *-1"
    );
    assert_eq!(
        rig.names().iter().filter(|name| *name == "BLPOP").count(),
        4,
        "the lost wait is no execution"
    );
}

#[test]
fn subscriptions_push_and_confine_resp2() {
    let mut rig = rig();
    assert_eq!(
        rig.call(A, &["SUBSCRIBE c d", "PSUBSCRIBE n*", "GET k", "PING"]),
        "1:*3 $9 subscribe $1 c :1 *3 $9 subscribe $1 d :2 *3 $10 psubscribe $2 n* :3 -ERR Can't execute 'get': only \
         (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context *2 $4 pong $0"
            .replace("$0", "$0 ")
            .trim_end()
    );
    assert_eq!(
        rig.call(B, &["PUBLISH c hi", "PUBLISH news x", "SPUBLISH c x"]),
        "1:*3 $7 message $1 c $2 hi 2::1 1:*4 $8 pmessage $2 n* $4 news $1 x 2::1 :0"
    );
    assert_eq!(
        rig.call(A, &["UNSUBSCRIBE", "PUNSUBSCRIBE n*", "UNSUBSCRIBE", "GET k"]),
        "1:*3 $11 unsubscribe $1 c :2 *3 $11 unsubscribe $1 d :1 *3 $12 punsubscribe $2 n* :0 *3 $11 unsubscribe $-1 :0 $-1"
    );
    rig.call(B, &["HELLO 3"]);
    assert_eq!(
        rig.call(B, &["SSUBSCRIBE s", "GET k", "SPUBLISH s m"]),
        "2:>3 $10 ssubscribe $1 s :1 _ :1 >3 $8 smessage $1 s $1 m"
    );
}

#[test]
fn scripts_are_loaded_run_and_forgotten_by_a_restart() {
    let mut rig = rig();
    let body = "return redis.call('INCR', KEYS[1])";
    let mut load = Vec::new();
    encode_command(&["SCRIPT", "LOAD", body], &mut load);
    rig.model.bytes(rig.now, A, &load);
    let digest = sha1_hex(body.as_bytes());
    assert_eq!(rig.take(), format!("1:$40 {digest}"));
    let run = format!("EVALSHA {digest} 1 k id:5");
    assert_eq!(rig.call(A, &[&run, &run, &format!("SCRIPT EXISTS {digest} x")]), "1::1 :2 *2 :1 :0");
    assert_eq!(rig.model.ledger().execution_count(5), 2);
    assert_eq!(rig.model.ledger().order_of(b"k").count(), 2);
    rig.model.restart(rig.now, Keep::Data);
    assert_eq!(rig.take(), "1:close 2:close");
    rig.model.connect(rig.now, ConnectionId(4)).unwrap();
    assert_eq!(
        rig.call(ConnectionId(4), &[&run, "GET k"]),
        "4:-NOSCRIPT No matching script. Please use EVAL. $1 2"
    );
    assert_eq!(rig.model.ledger().entries().last().unwrap().generation, 1);
}

#[test]
fn a_handshake_authenticates_and_names() {
    let config = ModelConfig { password: Some("secret".into()), ..ModelConfig::default() };
    let mut rig = Rig::new(config);
    assert_eq!(rig.call(A, &["GET k"]), "1:-NOAUTH Authentication required.");
    let text = rig.call(A, &["HELLO 3 AUTH default secret SETNAME me", "CLIENT GETNAME", "CLIENT ID"]);
    assert!(text.starts_with("1:%7 $6 server $5 redis $7 version"), "{text}");
    assert!(text.ends_with("$2 me :1"), "{text}");
    assert!(rig.call(B, &["HELLO 4"]).starts_with("2:-NOPROTO"));
    let wrong = "-WRONGPASS invalid username-password pair or user is disabled.";
    assert_eq!(
        rig.call(B, &["AUTH no", "AUTH secret", "AUTH no", "PING"]),
        format!("2:{wrong} +OK {wrong} +PONG")
    );
}

#[test]
fn a_failing_auth_behind_others_is_silent_if_told_so() {
    let mut rig = Rig::new(ModelConfig {
        password: Some("secret".into()),
        auth_failure: AuthFailure::SilentUnlessFirst,
        ..ModelConfig::default()
    });
    let wrong = "-WRONGPASS invalid username-password pair or user is disabled.";
    let noauth = "-NOAUTH Authentication required.";
    assert_eq!(rig.call(A, &["PING", "AUTH no", "ECHO x"]), format!("1:{noauth} {noauth}"));
    assert_eq!(rig.call(A, &["AUTH no", "AUTH no", "ECHO x"]), format!("1:{wrong} {noauth}"));
}

#[test]
fn reply_modes_silence() {
    let mut rig = rig();
    let commands =
        ["CLIENT REPLY SKIP", "PING", "ECHO a", "CLIENT REPLY OFF", "ECHO b", "CLIENT REPLY ON", "ECHO c"];
    assert_eq!(rig.call(A, &commands), "1:$1 a +OK $1 c");
    assert_eq!(rig.names().len(), commands.len(), "silent commands are executed");
}

#[test]
fn replies_wait_for_the_latency_and_for_a_busy_server() {
    let mut rig = Rig::new(ModelConfig { latency: Duration::from_millis(5), ..ModelConfig::default() });
    assert_eq!(rig.call(A, &["PING"]), "");
    rig.model.set_latency(Duration::ZERO);
    assert_eq!(rig.call(A, &["ECHO x"]), "", "replies keep their order");
    assert_eq!(rig.pass(Duration::from_millis(5)), "1:+PONG $1 x");
    rig.model.busy(rig.now, Duration::from_millis(10));
    rig.send(B, &["SET k id:1"]);
    rig.send(A, &["GET k"]);
    assert_eq!(rig.model.ledger().execution_count(1), 0);
    assert_eq!(rig.pass(Duration::from_millis(10)), "2:+OK 1:$4 id:1");
    assert_eq!(rig.call(A, &["DEBUG SLEEP 0.01", "PING"]), "");
    assert_eq!(rig.pass(Duration::from_millis(10)), "1:+OK +PONG");
    assert_eq!(rig.model.poll_timeout(), None);
}

#[test]
fn troubles_hit_the_commands_they_name() {
    let mut rig = rig();
    rig.model.trouble(Trouble::new(Wrong::Swallow).on(A).after(1));
    rig.model.trouble(Trouble::new(Wrong::Refuse(Refusal::Loading)).on(B).times(2));
    assert_eq!(rig.call(A, &["ECHO 1", "ECHO 2", "ECHO 3"]), "1:$1 1 $1 3");
    let loading = "-LOADING Redis is loading the dataset in memory";
    assert_eq!(
        rig.call(B, &["CLIENT ID", "PING", "PING", "PING"]),
        format!("2::2 {loading} {loading} +PONG")
    );
    let push = Frame::Push(vec![Frame::Bulk(Bytes::from_static(b"MOVING")), Frame::Integer(1)]);
    rig.call(A, &["HELLO 3"]);
    rig.model.trouble(Trouble::new(Wrong::Precede(push.clone())));
    assert_eq!(rig.call(A, &["PING"]), "1:>2 $6 MOVING :1 +PONG");
    assert!(rig.model.push(rig.now, A, &push) && !rig.model.push(rig.now, ConnectionId(9), &push));
    assert_eq!(rig.take(), "1:>2 $6 MOVING :1");
    rig.model.trouble(Trouble::new(Wrong::CloseAfter));
    assert_eq!(rig.call(A, &["SET k id:1", "SET k id:2"]), "1:close");
    rig.model.trouble(Trouble::new(Wrong::CloseBefore).after(1));
    assert_eq!(rig.call(B, &["SET k id:3", "SET k id:4"]), "2:+OK close");
    let counts: Vec<_> = (1..=4).map(|id| rig.model.ledger().execution_count(id)).collect();
    assert_eq!(counts, [1, 0, 1, 0]);
}

#[test]
fn a_swallowed_wait_stays_swallowed() {
    let mut rig = rig();
    rig.model.trouble(Trouble::new(Wrong::Swallow).on(A));
    rig.send(A, &["BLPOP l 0", "PING"]);
    assert_eq!(rig.call(B, &["RPUSH l x"]), "2::1 1:+PONG");
}

#[test]
fn tracking_tells_of_changes_once() {
    let mut rig = rig();
    rig.call(A, &["HELLO 3", "CLIENT TRACKING ON", "GET k"]);
    assert_eq!(rig.call(B, &["SET k 1", "SET k 2", "SET j 1"]), "1:>2 $10 invalidate *1 $1 k 2:+OK +OK +OK");
    rig.call(A, &["CLIENT TRACKING OFF", "CLIENT TRACKING ON BCAST PREFIX p NOLOOP"]);
    assert_eq!(rig.call(B, &["SET p1 1", "SET q 1"]), "1:>2 $10 invalidate *1 $2 p1 2:+OK +OK");
    assert_eq!(rig.call(A, &["SET p1 2"]), "1:+OK");
}

#[test]
fn connections_end_in_every_way() {
    let mut rig = rig();
    assert_eq!(rig.call(A, &["QUIT", "PING"]), "1:+OK close");
    rig.model.connect(rig.now, A).unwrap();
    assert_eq!(rig.model.connect(rig.now, A), Err(ConnectError::InUse(A)));
    assert_eq!(rig.call(B, &["CLIENT KILL ID 3"]), "1:close 2::1");
    rig.model.bytes(rig.now, B, b"*x\r\n");
    assert_eq!(rig.take(), "2:-ERR Protocol error: invalid multibulk length close");
    rig.model.refuse_connections(true);
    assert_eq!(rig.model.connect(rig.now, A), Err(ConnectError::Refused));
    assert_eq!(rig.model.connections().count(), 0);
}

#[test]
fn bounds_end_what_reaches_them() {
    let limits = ModelLimits {
        connections_max: 2,
        input_bytes_max: 100,
        output_bytes_max: 100,
        queued_max: 1,
        ledger_entries_max: 3,
        ..ModelLimits::default()
    };
    let mut rig = Rig::new(ModelConfig { limits, ..ModelConfig::default() });
    assert_eq!(rig.model.connect(rig.now, ConnectionId(3)), Err(ConnectError::Full));
    assert_eq!(
        rig.call(A, &["MULTI", "PING", "PING", "EXEC"]),
        "1:+OK +QUEUED +QUEUED -EXECABORT Transaction discarded because of previous errors."
    );
    assert_eq!(rig.call(A, &["PING", "PING"]), "1:+PONG -OOM the model server's ledger is full");
    rig.model.bytes(rig.now, A, &[b'x'; 101]);
    assert_eq!(rig.take(), "1:close");
    let long = "x".repeat(90);
    rig.model.bytes(rig.now, B, format!("NOPE {long}\r\n").as_bytes());
    assert_eq!(rig.take(), "2:close");
}

#[test]
fn reset_and_select_change_the_connection() {
    let mut rig = rig();
    assert_eq!(
        rig.call(A, &["SET k 0", "SELECT 3", "GET k", "SELECT 16", "RESET", "GET k"]),
        "1:+OK +OK $-1 -ERR DB index is out of range +RESET $1 0"
    );
    assert_eq!(rig.call(A, &["CONFIG GET databases"]), "1:*2 $9 databases $2 16");
    assert!(rig.call(A, &["INFO"]).contains("role:master"));
}
