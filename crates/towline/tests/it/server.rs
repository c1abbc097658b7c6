//! `towline server` as a process: start, stop, signals, files, and what is said when it cannot start.

use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// Longer than anything here takes, so that a failure is not a hang.
const PATIENCE: Duration = Duration::from_secs(30);

fn towline(flags: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_towline"));
    // What a test starts here would share the directory, and save into it.
    command.arg("server").args(flags).env("TOWLINE_SAVE", "").stdin(Stdio::null());
    command
}

/// Runs a server that is to fail, and returns what it says: one line.
fn refused(flags: &[&str]) -> String {
    let Output { status, stdout, stderr } = towline(flags).output().unwrap();
    let said = String::from_utf8(stderr).unwrap();
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(stdout.is_empty() && said.lines().count() == 1 && said.starts_with("towline: "), "{said}");
    said
}

/// A running server, killed when dropped.
struct Running {
    child: Child,
    log: std::io::Lines<BufReader<std::process::ChildStderr>>,
    port: u16,
}

impl Running {
    /// Starts a server on a port that is free, and waits until it says that it is ready.
    fn start(flags: &[&str]) -> (Self, String) {
        for _ in 0..5 {
            let port = free_port();
            let mut command = towline(&["--port", &port.to_string(), "--workers", "1"]);
            let mut child = command.args(flags).stderr(Stdio::piped()).spawn().unwrap();
            let log = BufReader::new(child.stderr.take().unwrap()).lines();
            let mut running = Self { child, log, port };
            let line = running.line();
            // Another process may have taken the port.
            if !line.contains("cannot listen") {
                return (running, line);
            }
        }
        panic!("no port is free");
    }

    /// The next line of the log.
    fn line(&mut self) -> String {
        self.log.next().expect("the log ended").unwrap()
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    fn connect(&self) -> TcpStream {
        connect(self.port)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only when the process has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

fn ask(stream: &mut TcpStream, line: &str, expected: &str) {
    write!(stream, "{line}\r\n").unwrap();
    let mut reply = vec![0; expected.len()];
    stream.read_exact(&mut reply).unwrap();
    assert_eq!(String::from_utf8_lossy(&reply), expected);
}

#[test]
fn the_start_is_one_line_and_sigterm_and_sigint_end_it_gracefully() {
    for (signal, name) in [(Signal::TERM, "SIGTERM"), (Signal::INT, "SIGINT")] {
        let (mut running, ready) = Running::start(&[]);
        let pid = running.child.id();
        for part in ["ready", &format!("pid {pid}"), &format!("port {}", running.port), "1 worker"] {
            assert!(ready.contains(part), "{part} is not in {ready}");
        }
        let mut client = running.connect();
        ask(&mut client, "PING", "+PONG\r\n");
        running.signal(signal);
        assert!(running.line().contains(name));
        assert!(running.line().contains("stopped"));
        assert_eq!(client.read(&mut [0; 1]).unwrap(), 0);
        assert_eq!(running.child.wait().unwrap().code(), Some(0));
    }
}

#[test]
fn shutdown_ends_it_with_success() {
    let (mut running, _) = Running::start(&[]);
    let mut client = running.connect();
    client.write_all(b"SHUTDOWN NOSAVE\r\n").unwrap();
    let mut said = Vec::new();
    client.read_to_end(&mut said).unwrap();
    assert!(said.is_empty(), "{said:?}");
    assert_eq!(running.child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_pid_file_is_there_while_it_runs() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("towline.pid");
    let (mut running, _) = Running::start(&["--pidfile", path.to_str().unwrap()]);
    // It is written after the start is logged, and before signals are looked at.
    running.signal(Signal::HUP);
    assert!(running.line().contains("SIGHUP"));
    let pid = std::fs::read_to_string(&path).unwrap();
    assert_eq!(pid.trim(), running.child.id().to_string());
    running.signal(Signal::TERM);
    running.child.wait().unwrap();
    assert!(!path.exists());
}

#[test]
fn a_log_file_is_reopened_by_sighup_and_the_level_follows_config_set() {
    let dir = tempfile::tempdir().unwrap();
    let (path, old) = (dir.path().join("log"), dir.path().join("old"));
    let port = free_port().to_string();
    let flags = ["--port", &port, "--workers", "1", "--logfile", path.to_str().unwrap()];
    let mut child = towline(&flags).spawn().unwrap();
    let read = |path: &std::path::Path| std::fs::read_to_string(path).unwrap_or_default();
    let wait_for = |path: &std::path::Path, text: &str| {
        let started = std::time::Instant::now();
        while !read(path).contains(text) {
            assert!(started.elapsed() < PATIENCE, "{text} is not in {}", read(path));
            std::thread::yield_now();
        }
    };
    wait_for(&path, "ready");
    std::fs::rename(&path, &old).unwrap();
    let pid = Pid::from_child(&child);
    kill_process(pid, Signal::HUP).unwrap();
    wait_for(&path, "SIGHUP");
    assert!(!read(&old).contains("SIGHUP"));
    let mut client = connect(port.parse().unwrap());
    ask(&mut client, "CONFIG SET loglevel nothing", "+OK\r\n");
    ask(&mut client, "DEBUG LOG one", "+OK\r\n");
    // The level is taken over by another thread than the one that answers.
    ask(&mut client, "CONFIG SET loglevel warning", "+OK\r\n");
    let started = std::time::Instant::now();
    while !read(&path).contains("two") {
        assert!(started.elapsed() < PATIENCE);
        ask(&mut client, "DEBUG LOG two", "+OK\r\n");
    }
    kill_process(pid, Signal::TERM).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(!read(&path).contains("stopped"), "a notice is below a warning");
}

#[test]
fn parameters_without_effect_are_named_in_the_log() {
    let (mut running, first) = Running::start(&["--io-threads", "4"]);
    assert!(first.contains("WARN") && first.contains("'io-threads' is accepted without effect"), "{first}");
    assert!(running.line().contains("ready"));
}

#[test]
fn what_cannot_start_says_why_in_one_line() {
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let said = refused(&["--port", &port, "--bind", "127.0.0.1"]);
    assert!(said.contains(&port) && said.contains("choose another with --port"), "{said}");

    let said = refused(&["--porrt", "1"]);
    assert!(said.contains("unknown parameter 'porrt'") && said.contains("did you mean 'port'"), "{said}");
    let said = refused(&["/nonexistent/towline.conf"]);
    assert!(said.contains("/nonexistent/towline.conf: cannot read the file"), "{said}");
    let said = refused(&["--daemonize", "yes"]);
    assert!(said.contains("daemonize") && said.contains("service manager"), "{said}");
    let said = refused(&["--logfile", "/nonexistent/log"]);
    assert!(said.contains("logfile '/nonexistent/log'"), "{said}");
    let said = refused(&["--port", "0"]);
    assert!(said.contains("nothing to listen on"), "{said}");
}

#[test]
fn help_is_printed_and_no_server_started() {
    for flag in ["--help", "-h"] {
        let Output { status, stdout, .. } = towline(&[flag]).output().unwrap();
        assert!(status.success());
        assert!(String::from_utf8(stdout).unwrap().contains("--tls-port"));
    }
}

#[cfg(feature = "tls")]
mod tls {
    use super::*;
    use std::path::Path;

    /// A certificate for localhost that is its own authority, and its key.
    fn identity(dir: &Path) -> (String, String) {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let (cert, key) = (dir.join("server.crt"), dir.join("server.key"));
        std::fs::write(&cert, made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        (cert.to_str().unwrap().to_owned(), key.to_str().unwrap().to_owned())
    }

    #[test]
    fn certificates_that_cannot_be_used_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let (cert, key) = identity(dir.path());
        let start = |cert: &str, key: &str| {
            let port = free_port().to_string();
            let flags = ["--port", "0", "--tls-port", &port, "--tls-auth-clients", "no"];
            refused(&[&flags[..], &["--tls-cert-file", cert, "--tls-key-file", key]].concat())
        };
        let said = start("/nonexistent/server.crt", &key);
        assert!(said.contains("tls-cert-file") && said.contains("/nonexistent/server.crt"), "{said}");
        let said = start(&cert, &cert);
        assert!(said.contains("tls-key-file") && said.contains("no private key"), "{said}");
        let said = refused(&["--tls-port", "1"]);
        assert!(said.contains("tls-port needs tls-cert-file"), "{said}");
    }

    #[test]
    fn cli_speaks_tls_with_the_server() {
        let dir = tempfile::tempdir().unwrap();
        let (cert, key) = identity(dir.path());
        let tls_port = free_port().to_string();
        let flags = ["--tls-port", &tls_port, "--tls-cert-file", &cert, "--tls-key-file", &key];
        let mutual = ["--tls-ca-cert-file", &cert, "--tls-auth-clients", "yes"];
        let (_running, _) = Running::start(&[&flags[..], &mutual].concat());
        let cli = |words: &[&str], input: &[u8]| {
            let mut child = Command::new(env!("CARGO_BIN_EXE_towline"))
                .arg("cli")
                .args(words)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            let mut stdin = child.stdin.take().unwrap();
            let input = input.to_vec();
            // It may end without having read all of it.
            let writer = std::thread::spawn(move || _ = stdin.write_all(&input));
            let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
            writer.join().unwrap();
            (status.success(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
        };
        let flags = ["-h", "localhost", "-p", &tls_port, "--tls", "--cacert", &cert];
        let flags = [&flags[..], &["--cert", &cert, "--key", &key]].concat();
        assert_eq!(
            cli(&[&flags[..], &["SET", "key", "value"]].concat(), b""),
            (true, "OK\n".into(), String::new())
        );
        let uri = format!("rediss://localhost:{tls_port}");
        let by_uri = ["-u", &uri, "--cacert", &cert, "--cert", &cert, "--key", &key];
        assert_eq!(cli(&by_uri, b"GET key\nECHO two\n").1, "value\ntwo\n");

        // More than the socket takes at once, in both directions.
        let value = "x".repeat(1 << 20);
        let set = format!("*3\r\n$3\r\nSET\r\n$3\r\nbig\r\n${}\r\n{value}\r\n", value.len());
        let line = format!("{set}*2\r\n$3\r\nGET\r\n$3\r\nbig\r\n");
        let (is_ok, shown, said) = cli(&[&flags[..], &["--pipe"]].concat(), line.repeat(20).as_bytes());
        assert!(is_ok && shown.contains("errors: 0, replies: 40"), "{shown}{said}");
        assert_eq!(cli(&[&flags[..], &["GET", "big"]].concat(), b"").1.len(), value.len() + 1);

        let (is_ok, _, said) =
            cli(&["-h", "localhost", "-p", &tls_port, "--tls", "--cacert", &cert, "PING"], b"");
        assert!(!is_ok && said.contains("CertificateRequired"), "{said}");
        let untrusting = ["-h", "127.0.0.1", "-p", &tls_port, "--tls", "--cacert", &cert, "PING"];
        let (is_ok, _, said) = cli(&untrusting, b"");
        assert!(!is_ok && said.contains("certificate"), "{said}");
    }

    #[test]
    fn bench_speaks_tls_with_the_server() {
        let dir = tempfile::tempdir().unwrap();
        let (cert, key) = identity(dir.path());
        let tls_port = free_port().to_string();
        let flags = ["--tls-port", &tls_port, "--tls-cert-file", &cert, "--tls-key-file", &key];
        let mutual = ["--tls-ca-cert-file", &cert, "--tls-auth-clients", "optional"];
        let (_running, ready) = Running::start(&[&flags[..], &mutual].concat());
        assert!(ready.contains(&format!("tls-port {tls_port}")), "{ready}");
        let bench = |host: &str, more: &[&str]| {
            Command::new(env!("CARGO_BIN_EXE_towline"))
                .args([
                    "bench",
                    "-h",
                    host,
                    "-p",
                    &tls_port,
                    "--timeout",
                    "20",
                    "--json",
                    "-n",
                    "2000",
                    "-c",
                    "5",
                ])
                .args(["-P", "16", "-d", "10000", "-w", "set,get", "--tls"])
                .args(more)
                .env_remove("REDISCLI_AUTH")
                .output()
                .unwrap()
        };
        let Output { status, stdout, stderr } = bench("localhost", &["--cacert", &cert]);
        let (text, said) = (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap());
        assert!(status.success() && text.lines().count() == 2, "{text}{said}");
        assert!(bench("127.0.0.1", &["--insecure"]).status.success());
        assert!(bench("127.0.0.1", &["--cacert", &cert, "--sni", "localhost"]).status.success());
        let identity = ["--cacert", &cert, "--cert", &cert, "--key", &key];
        assert!(bench("localhost", &identity).status.success());

        let Output { status, stderr, .. } = bench("127.0.0.1", &["--cacert", &cert]);
        let said = String::from_utf8(stderr).unwrap();
        assert!(!status.success() && said.lines().count() == 1 && said.contains("certificate"), "{said}");
    }
}
