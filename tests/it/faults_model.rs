//! The model server of `towline-faults` answers as a real Redis does: the same random programs, byte for byte.
//!
//! What a client engine is proved against in virtual time is only worth something if it is what servers do.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use e2e::conn::encode;
use e2e::process::{Server, ServerKind};
use e2e::value::Value;
use e2e::wait;
use towline_faults::model::{AuthFailure, ConnectionId, Model, ModelConfig, Output, OutputEvent};
use towline_sansio::{Instant, Prng};

const CONNECTIONS: usize = 3;

/// A model and a real server that get the same bytes on the same connections.
struct Pair {
    server: Server,
    model: Model,
    streams: Vec<TcpStream>,
    /// What the model has sent on each connection, and was not compared yet.
    modelled: Vec<Vec<u8>>,
    fences: u64,
}

impl Pair {
    fn start(kind: ServerKind, config: ModelConfig, flags: &[&str]) -> Self {
        let server = Server::start(kind, flags).unwrap();
        let mut model = Model::new(config);
        let streams = (0..CONNECTIONS).map(|index| {
            model.connect(Instant::ZERO, ConnectionId(index as u64)).unwrap();
            let stream = TcpStream::connect(server.address()).unwrap();
            stream.set_read_timeout(Some(wait::PATIENCE)).unwrap();
            stream.set_nodelay(true).unwrap();
            stream
        });
        let streams = streams.collect();
        Self { server, model, streams, modelled: vec![Vec::new(); CONNECTIONS], fences: 0 }
    }

    /// Sends bytes to both.
    fn send(&mut self, connection: usize, bytes: &[u8]) {
        self.streams[connection].write_all(bytes).unwrap();
        self.model.bytes(Instant::ZERO, ConnectionId(connection as u64), bytes);
        while let Some(Output { connection, event }) = self.model.poll_output(Instant::ZERO) {
            let OutputEvent::Bytes(bytes) = event else { panic!("the model has closed {connection:?}") };
            self.modelled[usize::try_from(connection.0).unwrap()].extend_from_slice(&bytes);
        }
    }

    /// Compares everything that a connection has got.
    fn compare(&mut self, connection: usize, what: &str) {
        let (modelled, real) = self.until_fence(connection, what);
        assert_eq!(modelled.escape_ascii().to_string(), real.escape_ascii().to_string(), "after {what}");
    }

    /// Forgets what a connection has got: a greeting, in which versions and ids differ.
    fn skip(&mut self, connection: usize) {
        self.until_fence(connection, "a greeting");
    }

    /// What both have sent, up to an echo that nobody else asks for.
    fn until_fence(&mut self, connection: usize, what: &str) -> (Vec<u8>, Vec<u8>) {
        self.fences += 1;
        let fence = format!("fence{}", self.fences);
        let mut ping = Vec::new();
        encode(&["PING", &fence], &mut ping);
        self.send(connection, &ping);
        let (end, mut real) = (format!("{fence}\r\n"), Vec::new());
        while !real.ends_with(end.as_bytes()) {
            let mut chunk = [0; 4096];
            let count = self.streams[connection].read(&mut chunk).unwrap();
            assert!(count > 0, "closed after {what}: {}", real.escape_ascii());
            real.extend_from_slice(&chunk[..count]);
        }
        (std::mem::take(&mut self.modelled[connection]), real)
    }
}

/// One word of a template: `K` a key, `V` a value, `N` a number, `T` a time, `C` a channel, `L` a long word.
fn word(template: &str, prng: &mut Prng) -> String {
    let mut pick = |words: &[&str]| words[prng.below(words.len() as u64) as usize].to_owned();
    match template {
        "K" => pick(&["a", "b", "c", "list"]),
        "V" => pick(&["1", "-7", "x", "id:5", "9223372036854775807", ""]),
        "N" => pick(&["0", "1", "-1", "2", "-100", "x", "9223372036854775807"]),
        // None is so short that it would pass during the test: the model's time stands still.
        "T" => pick(&["0", "-1", "x", "1000"]),
        // Longer than what error texts repeat.
        "L" => "long".repeat(20 + prng.below(30) as usize),
        "C" => pick(&["news", "n?ws", "other"]),
        word => word.to_owned(),
    }
}

const TEMPLATES: &[&str] = &[
    "GET K",
    "SET K V",
    "SET K V NX",
    "SET K V XX GET",
    "SET K V EX 1000",
    "SET K V EX T",
    "SET K V KEEPTTL",
    "SET K V NX XX",
    "MGET K K K",
    "MSET K V K V",
    "MSET K V K",
    "APPEND K V",
    "STRLEN K",
    "INCR K",
    "DECR K",
    "INCRBY K N",
    "DECRBY K N",
    "DEL K K",
    "UNLINK K",
    "EXISTS K K",
    "TYPE K",
    "EXPIRE K 1000",
    "EXPIRE K T",
    "PERSIST K",
    "TTL K",
    "RPUSH K V V",
    "LPUSH K V",
    "LPUSH list V V",
    "RPUSH list V",
    "LPOP K",
    "RPOP K",
    "LPOP K N",
    "RPOP list 2",
    "LLEN K",
    "LRANGE K N N",
    "LRANGE list 0 -1",
    "DBSIZE",
    "FLUSHDB",
    "FLUSHALL",
    "SELECT 1",
    "SELECT 0",
    "SELECT 16",
    "SELECT x",
    "PING",
    "PING V",
    "PING V V",
    "ECHO V",
    "GET",
    "NOPE V V",
    "NOPE L L V",
    "L L",
    "CLIENT L",
    "CLIENT NOPE",
    "CLIENT SETNAME V",
    "CLIENT GETNAME",
    "CLIENT SETINFO lib-name V",
    "CLIENT SETINFO nope V",
    "CLIENT NO-EVICT on",
    "CLIENT NO-EVICT V",
    "CLIENT UNBLOCK 999",
    "CLIENT UNBLOCK V",
    "CLIENT REPLY ON",
    "SUBSCRIBE news C",
    // One pattern, for a server tells of several in no order.
    "PSUBSCRIBE n*",
    "SSUBSCRIBE C C",
    "UNSUBSCRIBE C",
    "UNSUBSCRIBE news other",
    "PUNSUBSCRIBE n* C",
    "PUNSUBSCRIBE",
    "SUNSUBSCRIBE news",
    "RESET",
    "PUBLISH news V",
    "PUBLISH other V",
    "SPUBLISH news V",
    "MULTI|SET K V|INCR K|EXEC",
    "MULTI|GET|SET K V|EXEC",
    "MULTI|SET K V|DISCARD",
    "MULTI|MULTI|EXEC",
    "MULTI|WATCH K|EXEC",
    "MULTI|BLPOP K 0|LRANGE list 0 -1|EXEC",
    "WATCH K K",
    "UNWATCH",
    "EXEC",
    "DISCARD",
    "WATCH K|SET K V|MULTI|GET K|EXEC",
    "BLPOP K V",
    "BLPOP K -1",
    "SCRIPT EXISTS V",
    "EVALSHA V 0",
    "EVALSHA V N K",
    "CONFIG GET databases",
    "HELLO 4",
    "HELLO x",
    "HELLO 3 NOPE",
    "RESET|CLIENT GETNAME",
    "AUTH V",
];

/// Scripts: their bodies have blanks, and their keys are no lists, for errors in scripts name the line.
const SCRIPTS: &[&[&str]] = &[
    &["EVAL", "return redis.call('INCR', KEYS[1])", "1", "counter"],
    &["EVAL", "redis.call('SET', KEYS[1], ARGV[1]) return redis.call('GET', KEYS[1])", "1", "text", "id:9"],
    &["EVAL", "return redis.call('GET', KEYS[1])", "1", "missing"],
    &["EVAL", "return redis.call('LPOP', KEYS[1], '2')", "1", "missing"],
    &["EVAL", "redis.call('DEL', KEYS[1])", "1", "text"],
    &["EVAL", "return 7", "0"],
    &["EVAL", "return ARGV[1]", "0"],
    &["SCRIPT", "LOAD", "return redis.call('INCR', KEYS[1])"],
    &["EVAL", "return 1", "2", "a"],
    &["EVAL", "return 1", "-1"],
    &["SCRIPT", "FLUSH"],
];

/// The commands of one step; most are one command.
fn step(prng: &mut Prng) -> Vec<Vec<String>> {
    if prng.below(10) == 0 {
        let script = SCRIPTS[prng.below(SCRIPTS.len() as u64) as usize];
        return vec![script.iter().map(ToString::to_string).collect()];
    }
    let template = TEMPLATES[prng.below(TEMPLATES.len() as u64) as usize];
    let command = |text: &str, prng: &mut Prng| text.split(' ').map(|text| word(text, prng)).collect();
    template.split('|').map(|text| command(text, prng)).collect()
}

/// Whether the command would wait on a list that is not there, which no fence ends.
fn may_wait(commands: &[Vec<String>]) -> bool {
    commands.len() == 1
        && commands[0][0] == "BLPOP"
        && commands[0][2].parse::<f64>().is_ok_and(|time| time >= 0.0)
}

/// Redis 8.2, for it has all of the commands, and the model's order of a connection's own messages: behind the reply.
fn random_program(seed: u64, proto: &str) {
    let mut prng = Prng::new(seed);
    let mut pair = Pair::start(ServerKind::Redis82, ModelConfig::default(), &[]);
    let mut history = Vec::new();
    for connection in 0..CONNECTIONS {
        let mut hello = Vec::new();
        encode(&["HELLO", proto], &mut hello);
        pair.send(connection, &hello);
        pair.skip(connection);
    }
    for _ in 0..600 {
        let connection = prng.below(CONNECTIONS as u64) as usize;
        let commands = step(&mut prng);
        if may_wait(&commands) {
            continue;
        }
        let mut bytes = Vec::new();
        for command in &commands {
            encode(command, &mut bytes);
        }
        history.push(format!("{connection}: {commands:?}"));
        let recent = history[history.len().saturating_sub(30)..].join("\n");
        let what = format!("seed {seed}, HELLO {proto}:\n{recent}");
        pair.send(connection, &bytes);
        for connection in 0..CONNECTIONS {
            pair.compare(connection, &what);
        }
    }
}

#[test]
fn random_programs_get_the_replies_of_redis() {
    for seed in 0..4 {
        random_program(seed, "2");
        random_program(seed, "3");
    }
}

#[test]
fn waiting_clients_are_served_in_the_order_of_redis() {
    let mut pair = Pair::start(ServerKind::Redis70, ModelConfig::default(), &[]);
    let mut watcher = pair.server.connect().unwrap();
    let mut is_blocked = |count: usize| {
        wait::until(|| {
            let Value::Bulk(info) = watcher.words("INFO clients").unwrap() else { return false };
            String::from_utf8_lossy(&info).contains(&format!("blocked_clients:{count}\r\n"))
        })
    };
    pair.send(0, b"BLPOP x y 0\r\nECHO behind\r\n");
    assert!(is_blocked(1));
    pair.send(1, b"BRPOP y 0\r\n");
    assert!(is_blocked(2));
    pair.send(2, b"MULTI\r\nRPUSH y 1\r\nRPUSH y 2 3\r\nLPOP y\r\nEXEC\r\nLRANGE y 0 -1\r\n");
    for connection in 0..CONNECTIONS {
        pair.compare(connection, "two that wait");
    }
    pair.send(0, b"BLPOP z 0\r\n");
    assert!(is_blocked(1));
    pair.send(2, b"SET z text\r\nDEL z\r\nRPUSH z a\r\n");
    for connection in 0..CONNECTIONS {
        pair.compare(connection, "a wait that outlives another type");
    }
}

#[test]
fn a_failing_auth_in_a_pipeline_is_what_each_server_makes_of_it() {
    for (kind, auth_failure) in [
        (ServerKind::Redis70, AuthFailure::Answered),
        (ServerKind::Valkey91, AuthFailure::Answered),
        (ServerKind::Redis82, AuthFailure::SilentUnlessFirst),
    ] {
        let config = ModelConfig { password: Some("secret".into()), auth_failure, ..ModelConfig::default() };
        let mut pair = Pair::start(kind, config, &["--requirepass", "secret"]);
        pair.send(0, b"ECHO x\r\nAUTH wrong\r\nECHO y\r\nAUTH secret\r\n");
        pair.compare(0, "a failure behind a command");
        pair.send(1, b"AUTH wrong\r\nAUTH secret\r\nAUTH wrong\r\nECHO z\r\n");
        pair.compare(1, "a failure first, and one last");
    }
}
