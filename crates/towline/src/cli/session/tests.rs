//! Sessions against a server that plays a script: it checks each command it gets and sends the reply beside it.

use std::cell::RefCell;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::rc::Rc;
use std::thread::JoinHandle;

use bytes::BytesMut;
use towline_resp::frame::Decoder;

use super::*;
use crate::cli::options::{Mode, StdinArgument};
use crate::cli::render::Delimiters;
use crate::cli::target::Credentials;

/// For each connection in turn: the commands to expect, each with the bytes to answer. The connection ends with its
/// script.
type Script = Vec<Vec<(String, String)>>;

fn line(command: &str, reply: &str) -> (String, String) {
    (command.to_owned(), reply.to_owned())
}

/// Plays `script` on `listener`; the handle's panic is the test's.
fn play(listener: TcpListener, script: Script) -> JoinHandle<()> {
    std::thread::spawn(move || {
        for connection in script {
            let (mut stream, _) = listener.accept().unwrap();
            let (mut decoder, mut input, mut scratch) = (Decoder::default(), BytesMut::new(), [0; 4096]);
            for (expected, reply) in connection {
                let command = loop {
                    if let Some(frame) = decoder.decode(&mut input).unwrap() {
                        break frame;
                    }
                    let count = stream.read(&mut scratch).unwrap();
                    assert!(count > 0, "the client hung up instead of sending {expected}");
                    input.extend_from_slice(&scratch[..count]);
                };
                let Frame::Array(words) = command else { panic!("no command: {command:?}") };
                let words: Vec<_> = words
                    .iter()
                    .map(|word| match word {
                        Frame::Bulk(text) => String::from_utf8_lossy(text).into_owned(),
                        other => panic!("no argument: {other:?}"),
                    })
                    .collect();
                assert_eq!(words.join(" "), expected);
                stream.write_all(reply.as_bytes()).unwrap();
            }
        }
    })
}

fn listener() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

fn settings(port: u16) -> Settings {
    Settings {
        tls: None,
        target: Target::Tcp { host: "127.0.0.1".to_owned(), port },
        credentials: None,
        db: 0,
        protocol: Protocol::Resp2,
        is_cluster: false,
        style: None,
        delimiters: Delimiters::default(),
        shows_pushes: None,
        repeat: None,
        interval: None,
        stdin_argument: StdinArgument::None,
        fails_on_error: false,
        is_verbose: false,
        mode: Mode::Lines,
    }
}

fn session(settings: &Settings) -> (Session, Rc<RefCell<Vec<u8>>>) {
    let (output, written) = Output::in_memory();
    (Session::new(settings, output), written)
}

fn run(session: &mut Session, text: &str) -> Result<Verdict, CliError> {
    let args: Vec<Vec<u8>> = text.split(' ').map(|word| word.as_bytes().to_vec()).collect();
    session.run(&args)
}

fn taken(written: &Rc<RefCell<Vec<u8>>>) -> String {
    String::from_utf8(written.take()).unwrap()
}

#[test]
fn a_new_connection_is_brought_into_the_old_ones_state() {
    let (listener, port) = listener();
    let hello = "*0\r\n";
    let server = play(
        listener,
        vec![
            vec![
                line("AUTH ann pw", "+OK\r\n"),
                line("SELECT 2", "+OK\r\n"),
                line("HELLO 3", hello),
                line("SELECT 5", "+OK\r\n"),
                line("MULTI", "+OK\r\n"),
                line("GET k", ""),
            ],
            vec![
                line("AUTH ann pw", "+OK\r\n"),
                line("SELECT 5", "+OK\r\n"),
                line("HELLO 3", hello),
                line("PING", "+PONG\r\n"),
            ],
        ],
    );
    let credentials = Credentials { user: Some(b"ann".to_vec()), password: b"pw".to_vec() };
    let (mut session, written) = session(&Settings {
        credentials: Some(credentials),
        db: 2,
        protocol: Protocol::Resp3,
        ..settings(port)
    });
    run(&mut session, "SELECT 5").unwrap();
    run(&mut session, "MULTI").unwrap();
    assert_eq!(session.prompt(), format!("127.0.0.1:{port}[5](TX)> "));
    // The server hangs up instead of answering: whether GET ran is unknown, so it is not sent again.
    assert!(matches!(run(&mut session, "GET k"), Err(CliError::Closed)));
    assert_eq!(session.prompt(), "not connected> ");
    run(&mut session, "PING").unwrap();
    assert_eq!(session.prompt(), format!("127.0.0.1:{port}[5]> "));
    server.join().unwrap();
    assert_eq!(taken(&written), "OK\nOK\nPONG\n");
}

#[test]
fn an_idle_connection_that_has_ended_is_replaced_before_the_command() {
    let (listener, port) = listener();
    let server = play(listener, vec![vec![line("PING", "+PONG\r\n")], vec![line("INCR n", ":1\r\n")]]);
    let (mut session, written) = session(&settings(port));
    run(&mut session, "PING").unwrap();
    // The end of the first script reaches this side before the second connection is accepted; waiting for it needs
    // no clock: the socket becomes readable.
    session.connect().unwrap().wait(false, None).unwrap();
    assert_eq!(run(&mut session, "INCR n").unwrap(), Verdict::Accepted);
    server.join().unwrap();
    assert_eq!(taken(&written), "PONG\n(integer) 1\n");
}

#[test]
fn redirections_are_followed_in_a_cluster_only() {
    let ((first, first_port), (second, second_port)) = (listener(), listener());
    let moved = format!("-MOVED 1 127.0.0.1:{second_port}\r\n");
    let ask = format!("-ASK 2 :{first_port}\r\n");
    let first = play(
        first,
        vec![
            vec![line("GET a", &moved)],
            vec![line("ASKING", "+OK\r\n"), line("GET b", "$1\r\nv\r\n")],
            vec![line("GET a", &moved)],
        ],
    );
    let second = play(second, vec![vec![line("GET a", "$-1\r\n"), line("GET b", &ask)]]);
    let (mut cluster, written) = session(&Settings { is_cluster: true, ..settings(first_port) });
    cluster.is_interactive = true;
    run(&mut cluster, "GET a").unwrap();
    run(&mut cluster, "GET b").unwrap();
    assert_eq!(
        taken(&written),
        format!(
            "-> Redirected to slot [1] located at 127.0.0.1:{second_port}\n(nil)\n\
             -> Redirected to slot [2] located at 127.0.0.1:{first_port}\n\"v\"\n"
        )
    );
    drop(cluster);
    let (mut single, written) = session(&settings(first_port));
    assert_eq!(run(&mut single, "GET a").unwrap(), Verdict::Refused);
    assert_eq!(taken(&written), format!("(error) MOVED 1 127.0.0.1:{second_port}\n"));
    first.join().unwrap();
    second.join().unwrap();
}

#[test]
fn a_redirection_in_circles_ends() {
    let (listener, port) = listener();
    let moved = format!("-MOVED 1 127.0.0.1:{port}\r\n");
    let script = (0..=REDIRECTS_MAX).map(|_| vec![line("GET a", &moved)]).chain([vec![]]);
    let server = play(listener, script.collect());
    let (mut session, _) = session(&Settings { is_cluster: true, ..settings(port) });
    let error = run(&mut session, "GET a").unwrap_err();
    assert!(error.to_string().contains("more than 16 redirections"), "{error}");
    server.join().unwrap();
}

#[test]
fn pushes_are_no_replies() {
    let (listener, port) = listener();
    let invalidate = ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\na\r\n";
    let confirm = |channel: &str| format!(">3\r\n$11\r\nunsubscribe\r\n$1\r\n{channel}\r\n:0\r\n");
    let server = play(
        listener,
        vec![vec![
            line("GET a", &format!("{invalidate}$1\r\nv\r\n")),
            line("UNSUBSCRIBE x y", &format!("{}{invalidate}{}", confirm("x"), confirm("y"))),
            line("CLIENT REPLY SKIP", ""),
            line("PING", ""),
            line("PING", "+PONG\r\n"),
        ]],
    );
    let (mut session, written) = session(&settings(port));
    run(&mut session, "GET a").unwrap();
    assert_eq!(taken(&written), "-> invalidate: 'a'\n\"v\"\n");
    run(&mut session, "UNSUBSCRIBE x y").unwrap();
    let lines = taken(&written);
    assert!(lines.contains("2) \"y\"") && lines.contains("-> invalidate"), "{lines}");
    for command in ["CLIENT REPLY SKIP", "PING", "PING"] {
        run(&mut session, command).unwrap();
    }
    assert_eq!(taken(&written), "PONG\n");
    server.join().unwrap();
}

#[test]
fn subscriptions_stream_until_the_end() {
    let (listener, port) = listener();
    let message = |kind: &str, last: &str| format!("*3\r\n${}\r\n{kind}\r\n$1\r\nc\r\n{last}", kind.len());
    let stream = format!("{}{}", message("subscribe", ":1\r\n"), message("message", "$2\r\nhi\r\n"));
    let server =
        play(listener, vec![vec![line("SUBSCRIBE", "-ERR wrong number\r\n"), line("SUBSCRIBE c", &stream)]]);
    let (mut session, written) = session(&settings(port));
    assert_eq!(run(&mut session, "SUBSCRIBE").unwrap(), Verdict::Refused);
    assert!(matches!(run(&mut session, "SUBSCRIBE c"), Err(CliError::Closed)));
    server.join().unwrap();
    assert_eq!(
        taken(&written),
        "(error) ERR wrong number\n1) \"subscribe\"\n2) \"c\"\n3) (integer) 1\n1) \"message\"\n2) \"c\"\n3) \"hi\"\n"
    );
}

#[test]
fn what_is_not_resp_is_named() {
    let (listener, port) = listener();
    let server = play(listener, vec![vec![line("PING", "HTTP/1.1 400 Bad Request\r\n\r\n")]]);
    let (mut session, _) = session(&settings(port));
    let error = run(&mut session, "PING").unwrap_err();
    assert!(error.to_string().starts_with("Protocol error: unknown frame type byte 0x48"), "{error}");
    server.join().unwrap();
}
