//! redis-cli as a client: one-shot, piped, bulk load, scans.

use e2e::peers::Peer;
use e2e::process::Server;
use std::io::Write;
use std::process::{Command, Stdio};

/// Runs redis-cli against `server` with `input` on its standard input; what it printed.
fn cli(server: &Server, arguments: &[&str], input: &[u8]) -> String {
    let mut child = Command::new(Peer::RedisCli.path().unwrap())
        .args(["-h", "127.0.0.1", "-p", &server.port().to_string()])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn one_shot_commands_print_their_replies() {
    let server = Server::under_test(&[]).unwrap();
    for (arguments, expected) in [
        (&["SET", "greeting", "hello world"][..], "OK\n"),
        (&["GET", "greeting"], "hello world\n"),
        (&["--no-raw", "GET", "greeting"], "\"hello world\"\n"),
        (&["--no-raw", "GET", "missing"], "(nil)\n"),
        (&["--no-raw", "RPUSH", "l", "a", "b"], "(integer) 2\n"),
        (&["--no-raw", "LRANGE", "l", "0", "-1"], "1) \"a\"\n2) \"b\"\n"),
        (&["-3", "--no-raw", "HSET", "h", "f", "v"], "(integer) 1\n"),
        (&["-3", "--no-raw", "HGETALL", "h"], "1# \"f\" => \"v\"\n"),
        (&["--json", "HGETALL", "h"], "{\"f\":\"v\"}\n"),
        (&["--csv", "LRANGE", "l", "0", "-1"], "\"a\",\"b\"\n"),
        (&["-n", "1", "GET", "greeting"], "\n"),
        (&["-r", "3", "INCR", "n"], "1\n2\n3\n"),
        (&["NOSUCH"], "ERR unknown command 'NOSUCH', with args beginning with: \n\n"),
    ] {
        assert_eq!(cli(&server, arguments, b""), expected, "{arguments:?}");
    }
    assert_eq!(cli(&server, &["-x", "SET", "binary"], b"a\0b\xff"), "OK\n");
    assert_eq!(cli(&server, &["STRLEN", "binary"], b""), "4\n");
}

#[test]
fn piped_commands_run_line_by_line() {
    let server = Server::under_test(&[]).unwrap();
    let input = b"SET a 1\nINCR a\nGET a\nMULTI\nINCR a\nEXEC\n";
    let text = cli(&server, &[], input);
    assert!(text == "OK\n2\n2\nOK\nQUEUED\n3\n", "{text}");
}

#[test]
fn pipe_mode_loads_in_bulk() {
    let server = Server::under_test(&[]).unwrap();
    let mut input = Vec::new();
    for number in 0..20_000 {
        e2e::conn::encode(&["SET", &format!("key:{number}"), "value"], &mut input);
    }
    input.extend_from_slice(b"NOSUCH\r\n");
    let text = cli(&server, &["--pipe"], &input);
    assert!(text.contains("errors: 1, replies: 20001"), "{text}");
    assert_eq!(cli(&server, &["DBSIZE"], b""), "20000\n");
}

#[test]
fn scans_find_everything() {
    let server = Server::under_test(&[]).unwrap();
    let mut conn = server.connect().unwrap();
    for number in 0..500 {
        conn.words(&format!("SET key:{number} v")).unwrap();
        conn.words(&format!("RPUSH list:{} x", number % 10)).unwrap();
    }
    conn.words(&format!("SET biggest {}", "x".repeat(1000))).unwrap();
    assert_eq!(cli(&server, &["--scan"], b"").lines().count(), 511);
    assert_eq!(cli(&server, &["--scan", "--pattern", "key:*"], b"").lines().count(), 500);
    let big = cli(&server, &["--bigkeys"], b"");
    assert!(big.contains("Sampled 511 keys in the keyspace!"), "{big}");
    assert!(big.contains("Biggest string found '\"biggest\"' has 1000 bytes"), "{big}");
    assert!(big.contains("has 50 items"), "{big}");
    let memory = cli(&server, &["--memkeys"], b"");
    assert!(memory.contains("Sampled 511 keys in the keyspace!"), "{memory}");
}

#[test]
fn redis_benchmark_runs_its_default_workloads() {
    let server = Server::under_test(&[]).unwrap();
    // It stands beside redis-cli.
    let program = Peer::RedisCli.path().unwrap().with_file_name("redis-benchmark");
    let output = Command::new(program)
        .args([
            "-h",
            "127.0.0.1",
            "-p",
            &server.port().to_string(),
            "-n",
            "2000",
            "-c",
            "20",
            "-P",
            "8",
            "-q",
        ])
        .args(["-t", "ping,set,get,incr,lpush,rpush,lpop,rpop,sadd,hset,spop,zadd,zpopmin,lrange_100,mset"])
        .output()
        .unwrap();
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{text}");
    assert!(text.contains("MSET"), "{text}");
    assert!(!text.contains("Error"), "{text}");
}
