//! `towline faults proxy` in front of a real Redis: faults at exact places, seen from raw sockets.

use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

use e2e::process::{Server, ServerKind, towline_binary};
use e2e::value::Value;
use e2e::wait;

/// A running proxy. Dropping it kills the process.
struct Proxy {
    child: Child,
    lines: BufReader<ChildStdout>,
    address: SocketAddr,
    control: SocketAddr,
}

impl Proxy {
    fn start(upstream: impl std::fmt::Display, arguments: &[&str]) -> Self {
        let mut child = Command::new(towline_binary().unwrap())
            .args(["faults", "proxy", "--listen", "127.0.0.1:0", "--control", "127.0.0.1:0", "--upstream"])
            .arg(upstream.to_string())
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut first = String::new();
        lines.read_line(&mut first).unwrap();
        let address = |name: &str| field(&first, name).parse().unwrap();
        let (address, control) = (address("listen"), address("control"));
        Self { child, lines, address, control }
    }

    fn with_rules(upstream: SocketAddr, rules: &[&str]) -> Self {
        let arguments: Vec<&str> = rules.iter().flat_map(|rule| ["--rule", rule]).collect();
        Self::start(upstream, &arguments)
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(wait::PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        stream
    }

    /// The next line that it prints.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line
    }

    /// One request to the control port: status and body.
    fn http(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.control).unwrap();
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        (status, answer.split_once("\r\n\r\n").unwrap().1.to_owned())
    }

    /// A number that `/stats` shows.
    fn stat(&self, name: &str) -> u64 {
        field(&self.http("GET", "/stats", "").1, name).parse().unwrap()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // Both fail only when the process has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A field of a flat JSON object, without quotes.
fn field<'a>(json: &'a str, name: &str) -> &'a str {
    let (_, rest) = json.split_once(&format!("\"{name}\":")).unwrap_or_else(|| panic!("no {name} in {json}"));
    let rest = rest.strip_prefix('"').unwrap_or(rest);
    &rest[..rest.find(['"', ',', '}']).unwrap()]
}

fn redis() -> Server {
    Server::start(ServerKind::Redis70, &[]).unwrap()
}

fn incr(key: &str) -> String {
    format!("*2\r\n$4\r\nINCR\r\n${}\r\n{key}\r\n", key.len())
}

const ECHO: &[u8] = b"*2\r\n$4\r\nECHO\r\n$5\r\nhello\r\n";
const ECHO_REPLY: &[u8] = b"$5\r\nhello\r\n";

/// Sends an ECHO and reads until the connection ends: what came, and how it ended.
fn echo_to_end(stream: &mut TcpStream) -> (Vec<u8>, Option<ErrorKind>) {
    let sent = stream.write_all(ECHO);
    let mut got = Vec::new();
    let read = stream.read_to_end(&mut got);
    (got, sent.err().or_else(|| read.err()).map(|error| error.kind()))
}

#[test]
fn without_rules_everything_passes() {
    let server = redis();
    let proxy = Proxy::with_rules(server.address(), &[]);
    let mut conn = e2e::conn::Conn::open(proxy.address).unwrap();
    let big = "x".repeat(3 << 20);
    for round in 0..3 {
        let key = format!("k{round}");
        let replies =
            conn.pipeline(&[vec!["SET", &key, &big], vec!["GET", &key], vec!["STRLEN", &key]]).unwrap();
        assert_eq!(replies[1], Value::Bulk(big.clone().into_bytes()));
        assert_eq!(replies[2], Value::Int(3 << 20));
    }
    assert!(proxy.stat("c2s_bytes") > 9 << 20 && proxy.stat("s2c_bytes") > 9 << 20);
    drop(conn);
    assert!(wait::until(|| proxy.stat("open") == 0));
}

#[test]
fn a_cut_of_the_replies_is_exact_at_every_byte() {
    let server = redis();
    let rules: Vec<String> =
        (0..=ECHO_REPLY.len()).map(|at| format!("cut@s2c:{at},nth={}", at + 1)).collect();
    let mut proxy =
        Proxy::with_rules(server.address(), &rules.iter().map(String::as_str).collect::<Vec<_>>());
    for at in 0..=ECHO_REPLY.len() {
        let (got, error) = echo_to_end(&mut proxy.connect());
        assert_eq!(got, &ECHO_REPLY[..at]);
        // The cut before the first byte may come before the request.
        assert!(error.is_none() || at == 0, "{at}: {error:?}");
        let line = proxy.line();
        assert_eq!(field(&line, "event"), "fault", "{line}");
        assert_eq!(field(&line, "offset"), at.to_string());
        assert_eq!(field(&line, "connection"), (at + 1).to_string());
        assert!(line.contains(&format!(r#""rule":"{}"}}"#, rules[at])), "{line}");
    }
}

#[test]
fn a_command_whose_last_byte_is_cut_off_is_not_executed() {
    let server = redis();
    let mut direct = server.connect().unwrap();
    let length = incr("k0").len();
    for at in [1, length - 1, length] {
        let mut proxy = Proxy::with_rules(server.address(), &[&format!("cut@c2s:{at}")]);
        let key = format!("k{}", at % 10);
        let mut stream = proxy.connect();
        stream.write_all(incr(&key).as_bytes()).unwrap();
        assert_eq!(field(&proxy.line(), "offset"), at.to_string());
        let mut got = Vec::new();
        // The reply may be quicker than the cut, if the command is whole.
        stream.read_to_end(&mut got).unwrap();
        assert!(got.is_empty() || at == length);
        // The server has seen the end of the connection when it lists only this one.
        assert!(wait::until(|| {
            let Value::Bulk(list) = direct.words("CLIENT LIST").unwrap() else { return false };
            String::from_utf8_lossy(&list).lines().count() == 1
        }));
        let expected = if at == length { Value::Bulk(b"1".to_vec()) } else { Value::NullBulk };
        assert_eq!(direct.words(&format!("GET {key}")).unwrap(), expected, "cut at {at}");
    }
}

#[test]
fn a_reset_is_a_reset() {
    let server = redis();
    let mut proxy = Proxy::with_rules(server.address(), &["reset@s2c:4"]);
    let (got, error) = echo_to_end(&mut proxy.connect());
    assert_eq!(error, Some(ErrorKind::ConnectionReset));
    assert!(ECHO_REPLY[..4].starts_with(&got));
    assert_eq!(field(&proxy.line(), "fault"), "reset");
}

#[test]
fn a_stall_holds_the_rest_back_for_its_time() {
    let server = redis();
    let mut proxy = Proxy::with_rules(server.address(), &["stall@s2c:4/300ms"]);
    let (mut stream, start) = (proxy.connect(), Instant::now());
    stream.write_all(ECHO).unwrap();
    let mut got = [0; ECHO_REPLY.len()];
    stream.read_exact(&mut got).unwrap();
    assert_eq!(got, ECHO_REPLY);
    assert!(start.elapsed() >= Duration::from_millis(300));
    assert_eq!(field(&proxy.line(), "fault"), "stall");
    // Once over, it is over.
    stream.write_all(ECHO).unwrap();
    stream.read_exact(&mut got).unwrap();
}

#[test]
fn a_stall_for_ever_holds_one_direction_only() {
    let server = redis();
    let mut proxy = Proxy::with_rules(server.address(), &["stall@s2c:0"]);
    let mut stream = proxy.connect();
    stream.write_all(incr("k").as_bytes()).unwrap();
    assert_eq!(field(&proxy.line(), "fault"), "stall");
    let mut direct = server.connect().unwrap();
    assert!(wait::until(|| direct.words("GET k").unwrap() == Value::Bulk(b"1".to_vec())));
    assert_eq!(proxy.http("POST", "/cut", ""), (200, r#"{"cut":1}"#.to_owned()));
    let mut got = Vec::new();
    stream.read_to_end(&mut got).unwrap();
    assert!(got.is_empty(), "the reply never came");
}

#[test]
fn a_half_open_connection_stays_open_and_silent() {
    let server = redis();
    let at = ECHO.len() + 5;
    let mut proxy = Proxy::with_rules(server.address(), &[&format!("halfopen@c2s:{at}")]);
    let mut stream = proxy.connect();
    let mut got = [0; ECHO_REPLY.len()];
    stream.write_all(ECHO).unwrap();
    stream.read_exact(&mut got).unwrap();
    stream.write_all(ECHO).unwrap();
    assert_eq!(field(&proxy.line(), "fault"), "halfopen");
    // The kernel takes what is written, and nobody reads it.
    stream.write_all(ECHO).unwrap();
    assert_eq!(proxy.stat("c2s_bytes"), at as u64);
    assert_eq!(proxy.stat("open"), 1);
    // The client gives up; the server does not learn of it.
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut direct = server.connect().unwrap();
    let Value::Bulk(list) = direct.words("CLIENT LIST").unwrap() else { panic!("no list") };
    assert_eq!(String::from_utf8_lossy(&list).lines().count(), 2);
    assert_eq!(proxy.http("POST", "/cut", r#"{"connection": 1, "how": "reset"}"#).0, 200);
    let mut rest = Vec::new();
    let error = stream.read_to_end(&mut rest).unwrap_err();
    assert_eq!((error.kind(), rest.len()), (ErrorKind::ConnectionReset, 0));
    assert!(wait::until(|| proxy.stat("open") == 0));
}

#[test]
fn a_split_delivers_one_piece_after_the_other() {
    let server = redis();
    let proxy = Proxy::with_rules(server.address(), &["split@s2c:0/1,gap=10ms"]);
    let (mut stream, start) = (proxy.connect(), Instant::now());
    stream.write_all(ECHO).unwrap();
    let mut first = [0; 64];
    let count = stream.read(&mut first).unwrap();
    assert!(count < ECHO_REPLY.len(), "{count} bytes at once");
    let mut rest = vec![0; ECHO_REPLY.len() - count];
    stream.read_exact(&mut rest).unwrap();
    assert_eq!([&first[..count], &rest].concat(), ECHO_REPLY);
    assert!(start.elapsed() >= Duration::from_millis(10) * (ECHO_REPLY.len() as u32 - 1));
}

#[test]
fn garbage_delay_and_swallow_do_what_they_say() {
    let server = redis();
    let rules =
        ["garbage@s2c:1/58,nth=1", "delay@c2s:0/50ms,nth=1", "swallow@c2s:27,nth=2", "cut@c2s:54,nth=2"];
    assert_eq!(ECHO.len(), 25);
    let mut proxy = Proxy::with_rules(server.address(), &rules);
    let (mut stream, start) = (proxy.connect(), Instant::now());
    stream.write_all(ECHO).unwrap();
    let mut got = [0; ECHO_REPLY.len() + 1];
    stream.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"$X5\r\nhello\r\n");
    assert!(start.elapsed() >= Duration::from_millis(50));
    let mut stream = proxy.connect();
    // The last two bytes of the first write are swallowed with all that follow.
    stream.write_all(&[ECHO, ECHO, &ECHO[..4]].concat()).unwrap();
    let mut got = Vec::new();
    stream.read_to_end(&mut got).unwrap();
    assert!(got.is_empty() || got == ECHO_REPLY);
    let faults: Vec<String> = (0..4).map(|_| field(&proxy.line(), "fault").to_owned()).collect();
    assert_eq!(faults, ["delay", "garbage", "swallow", "cut"]);
}

#[test]
fn one_side_alone_can_be_cut() {
    let server = redis();
    let mut proxy = Proxy::with_rules(server.address(), &["cut@s2c:4,side=client"]);
    let (got, error) = echo_to_end(&mut proxy.connect());
    assert_eq!((&got[..], error), (&ECHO_REPLY[..4], None));
    assert_eq!(field(&proxy.line(), "fault"), "cut");
    let mut direct = server.connect().unwrap();
    let Value::Bulk(list) = direct.words("CLIENT LIST").unwrap() else { panic!("no list") };
    assert_eq!(String::from_utf8_lossy(&list).lines().count(), 2, "the server still has its client");
}

#[test]
fn dials_fail_as_told() {
    let server = redis();
    let rules = ["refuse@dial,nth=1", "close@dial,nth=2", "busy@dial,nth=3", "hang@dial,nth=4"];
    let mut proxy = Proxy::with_rules(server.address(), &rules);
    let mut ends = Vec::new();
    for _ in 0..3 {
        let (got, error) = echo_to_end(&mut proxy.connect());
        ends.push((String::from_utf8(got).unwrap(), error.is_some()));
    }
    assert!(ends[0].1, "a refused connection is an error");
    assert_eq!(ends[1].0, "");
    assert_eq!(ends[2].0, "-ERR max number of clients reached\r\n");
    let mut stream = proxy.connect();
    stream.write_all(ECHO).unwrap();
    for fault in ["refuse", "close", "busy", "hang"] {
        assert_eq!(field(&proxy.line(), "fault"), fault);
    }
    assert_eq!(proxy.http("POST", "/cut", r#"{"connection": 4}"#), (200, r#"{"cut":1}"#.to_owned()));
    assert_eq!(stream.read(&mut [0; 8]).unwrap(), 0);
    let mut fifth = proxy.connect();
    fifth.write_all(ECHO).unwrap();
    fifth.read_exact(&mut [0; ECHO_REPLY.len()]).unwrap();
}

#[test]
fn a_seed_repeats_its_places() {
    let server = redis();
    let places = |seed: &str| {
        let mut proxy = Proxy::start(server.address(), &["--seed", seed, "--rule", "cut@s2c:rand:0..11"]);
        let place = |_| {
            echo_to_end(&mut proxy.connect());
            field(&proxy.line(), "offset").to_owned()
        };
        (0..10).map(place).collect::<Vec<_>>()
    };
    assert_eq!(places("7"), places("7"));
    assert_ne!(places("7"), places("8"));
}

#[test]
fn rules_are_read_and_replaced_over_http() {
    let server = redis();
    let proxy = Proxy::start(server.address(), &["--seed", "5"]);
    assert_eq!(proxy.http("GET", "/rules", ""), (200, r#"{"rules":[],"seed":5}"#.to_owned()));
    let rules = r#"["cut@s2c:2"]"#;
    assert_eq!(proxy.http("PUT", "/rules", rules), (200, r#"{"rules":["cut@s2c:2"],"seed":5}"#.to_owned()));
    assert_eq!(echo_to_end(&mut proxy.connect()), (ECHO_REPLY[..2].to_vec(), None));
    for (method, path, body, status, what) in [
        ("PUT", "/rules", r#"["cut@s2c"]"#, 400, "bad place"),
        ("PUT", "/rules", "cut@s2c:2", 400, "JSON array"),
        ("POST", "/cut", r#"{"how": "gently"}"#, 400, "gently"),
        ("GET", "/nothing", "", 404, "/stats"),
        ("DELETE", "/rules", "", 405, ""),
    ] {
        let answer = proxy.http(method, path, body);
        assert_eq!(answer.0, status, "{answer:?}");
        assert!(answer.1.contains(what), "{answer:?}");
    }
    assert_eq!(proxy.http("GET", "/rules", "").1, r#"{"rules":["cut@s2c:2"],"seed":5}"#);
    assert!(proxy.http("GET", "/stats", "").1.contains(r#""faults":{"cut":1}"#));
}

#[test]
fn an_upstream_that_is_gone_is_reported_and_a_name_can_move() {
    let gone = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    let mut proxy = Proxy::with_rules(gone, &[]);
    assert!(echo_to_end(&mut proxy.connect()).1.is_some());
    assert_eq!(field(&proxy.line(), "event"), "unreachable");
    let server = redis();
    let upstream = format!("moving.test:{}", server.port());
    let rule = "dns@moving.test/0s=127.0.0.1";
    let proxy = Proxy::start(upstream, &["--rule", rule]);
    let mut stream = proxy.connect();
    stream.write_all(ECHO).unwrap();
    stream.read_exact(&mut [0; ECHO_REPLY.len()]).unwrap();
}

#[test]
fn both_directions_are_late_and_jitter_varies() {
    let server = redis();
    let proxy = Proxy::with_rules(server.address(), &["delay@both:0/20ms,jitter=5ms"]);
    let mut stream = proxy.connect();
    let mut times = Vec::new();
    for _ in 0..12 {
        let start = Instant::now();
        stream.write_all(ECHO).unwrap();
        stream.read_exact(&mut [0; ECHO_REPLY.len()]).unwrap();
        times.push(start.elapsed());
    }
    let (least, most) = (times.iter().min().unwrap(), times.iter().max().unwrap());
    assert!(*least >= Duration::from_millis(30), "{least:?}");
    assert!(*most - *least >= Duration::from_millis(2), "they vary: {times:?}");
}

#[test]
fn a_rate_makes_a_large_value_slow() {
    let server = redis();
    let proxy = Proxy::with_rules(server.address(), &["rate@s2c:0/200k"]);
    let mut conn = e2e::conn::Conn::open(proxy.address).unwrap();
    let big = "x".repeat(100_000);
    conn.call(&["SET", "k", &big]).unwrap();
    let start = Instant::now();
    assert_eq!(conn.call(&["GET", "k"]).unwrap(), Value::Bulk(big.into_bytes()));
    let took = start.elapsed();
    assert!(took >= Duration::from_millis(450), "100 kB at 200 kB/s took {took:?}");
}

#[test]
fn loss_breaks_connections_at_random_bytes() {
    let server = redis();
    let mut proxy = Proxy::start(server.address(), &["--seed", "3", "--rule", "reset@c2s:mean:2000"]);
    let mut offsets = Vec::new();
    for _ in 0..5 {
        let mut stream = proxy.connect();
        // A connection that is never hit would end only after 100 times the mean.
        while stream.write_all(ECHO).and_then(|()| stream.read_exact(&mut [0; ECHO_REPLY.len()])).is_ok() {}
        let line = proxy.line();
        assert_eq!(field(&line, "fault"), "reset");
        offsets.push(field(&line, "offset").parse::<u64>().unwrap());
    }
    offsets.dedup();
    assert_eq!(offsets.len(), 5, "each connection has its own place: {offsets:?}");
}

#[test]
fn open_connections_get_other_rules_when_asked() {
    let server = redis();
    let mut proxy = Proxy::with_rules(server.address(), &["halfopen@c2s:0"]);
    let mut stream = proxy.connect();
    stream.write_all(ECHO).unwrap();
    assert_eq!(field(&proxy.line(), "fault"), "halfopen");
    // Only connections to come.
    assert_eq!(proxy.http("PUT", "/rules", r#"["delay@both:0/1ms"]"#).0, 200);
    assert!(proxy.line().contains(r#""rules":["delay@both:0/1ms"],"open":false"#));
    assert_eq!(proxy.stat("c2s_bytes"), 0);
    // The cable is whole again.
    assert_eq!(proxy.http("PUT", "/rules?open=true", r#"["stall@c2s:25/300ms"]"#).0, 200);
    assert!(proxy.line().contains(r#""open":true"#));
    let mut got = [0; ECHO_REPLY.len()];
    stream.read_exact(&mut got).unwrap();
    assert_eq!(got, ECHO_REPLY);
    let line = proxy.line();
    assert_eq!((field(&line, "fault"), field(&line, "offset")), ("stall", "25"), "{line}");
    assert!(line.contains("stall@c2s:25/300ms"), "{line}");
    let start = Instant::now();
    stream.write_all(ECHO).unwrap();
    stream.read_exact(&mut got).unwrap();
    assert!(start.elapsed() >= Duration::from_millis(200));
    assert_eq!(proxy.http("PUT", "/rules?ope=true", "[]").0, 400);
}

#[test]
fn a_script_changes_the_network_in_time() {
    let server = redis();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("script.json");
    let script = r#"[{"at":"0s","rules":["delay@s2c:0/1ms"]},{"at":"200ms","rules":["delay@s2c:0/50ms"],"open":true},
        {"at":"400ms","rules":[],"cut":"reset"}]"#;
    std::fs::write(&path, script).unwrap();
    let mut proxy = Proxy::start(server.address(), &["--script", path.to_str().unwrap()]);
    let first = proxy.line();
    assert_eq!(field(&first, "event"), "rules", "{first}");
    let mut stream = proxy.connect();
    let mut slowest = Duration::ZERO;
    loop {
        let start = Instant::now();
        let answered = stream.write_all(ECHO).and_then(|()| stream.read_exact(&mut [0; ECHO_REPLY.len()]));
        match answered {
            Ok(()) => slowest = slowest.max(start.elapsed()),
            Err(error) => {
                assert!(
                    matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe),
                    "{error}"
                );
                break;
            }
        }
    }
    assert!(slowest >= Duration::from_millis(50), "the second step reached the open connection: {slowest:?}");
    let mut last = String::new();
    while !last.contains("script-ended") {
        last = proxy.line();
    }
    assert_eq!(field(&last, "steps"), "3");
    assert!(field(&last, "at_ms").parse::<f64>().unwrap() >= 400.0);
    // Another one over HTTP, which starts at once.
    assert_eq!(proxy.http("GET", "/script", "").1.matches("at").count(), 3);
    let mut stream = proxy.connect();
    stream.write_all(ECHO).unwrap();
    stream.read_exact(&mut [0; ECHO_REPLY.len()]).unwrap();
    let answer = proxy.http("PUT", "/script", r#"[{"at":"50ms","cut":"fin"}]"#);
    assert_eq!(answer, (200, r#"[{"at":"50ms","cut":"fin"}]"#.to_owned()));
    assert_eq!(stream.read(&mut [0; 8]).unwrap(), 0);
    let answer = proxy.http("PUT", "/script", r#"[{"at":"50ms"}]"#);
    assert!(answer.0 == 400 && answer.1.contains("step 1"), "{answer:?}");
}

fn run(arguments: &[&str]) -> Output {
    let mut command = Command::new(towline_binary().unwrap());
    command.args(["faults", "proxy"]).args(arguments).output().unwrap()
}

#[test]
fn bad_flags_are_one_line_and_exit_code_2() {
    for (arguments, what) in [
        (&["--rule", "cut@c2s"][..], "bad place"),
        (&["--rule", "cutt@c2s:1"], "unknown fault"),
        (&["--listen", "here"], "--listen"),
        (&["--upstream", "nowhere"], "no port"),
        (&["--control", "0.0.0.0:8080"], "loopback"),
        (&["--seed", "x"], "--seed"),
        (&["--rule", "dns@other.test/0s=none"], "other.test"),
        (&["--script", "nowhere.json"], "nowhere.json"),
        (&["--script", "/dev/null"], "JSON array"),
        (&["--frobnicate"], "--frobnicate"),
    ] {
        let output = run(arguments);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.contains(what), "{text}");
    }
}

#[test]
fn a_taken_port_is_one_line_and_exit_code_1() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = listener.local_addr().unwrap().to_string();
    for arguments in [["--listen", &taken, "--seed", "1"], ["--listen", "127.0.0.1:0", "--control", &taken]] {
        let output = run(&arguments);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.lines().count() == 1 && text.contains(&taken), "{text}");
    }
}

#[test]
fn sigterm_ends_it_with_a_summary() {
    let server = redis();
    let mut proxy = Proxy::with_rules(server.address(), &["cut@s2c:3"]);
    echo_to_end(&mut proxy.connect());
    proxy.line();
    let pid = rustix::process::Pid::from_raw(i32::try_from(proxy.child.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert!(proxy.child.wait().unwrap().success());
    let line = proxy.line();
    assert_eq!((field(&line, "event"), field(&line, "s2c_bytes")), ("stopped", "3"), "{line}");
}
