//! The handshake against replies as servers send them.

use std::time::Duration;

use bytes::BytesMut;
use towline_resp::frame::Decoder;

use super::*;

const TOKEN: u64 = 0xabc;
const TRACE: &str = "$24\r\ntowline-0000000000000abc\r\n";
const HELLO_3: &str = "%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n8.2.3\r\n$5\r\nproto\r\n:3\r\n\
                       $2\r\nid\r\n:4\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\n\
                       modules\r\n*0\r\n";
const NOAUTH: &str = "-NOAUTH Authentication required.\r\n";
const NOAUTH_HELLO: &str = "-NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> \
     <pass> option can be used\r\n";
const WRONGPASS: &str = "-WRONGPASS invalid username-password pair or user is disabled.\r\n";

fn with_password() -> HandshakeConfig {
    HandshakeConfig { credentials: Some(Credentials::password("secret")), ..HandshakeConfig::default() }
}

fn start(config: &HandshakeConfig) -> (Handshake, String) {
    let mut out = Vec::new();
    let handshake = Handshake::start(config, Instant::ZERO, TOKEN, &mut out);
    (handshake, String::from_utf8(out).unwrap())
}

fn frames(replies: &str) -> Vec<Frame> {
    let (mut decoder, mut buf) = (Decoder::default(), BytesMut::from(replies.as_bytes()));
    let mut frames = Vec::new();
    while let Some(frame) = decoder.decode(&mut buf).unwrap() {
        frames.push(frame);
    }
    assert!(buf.is_empty());
    frames
}

/// What the handshake says after the replies, and how many of them it needed for that.
fn run(config: &HandshakeConfig, replies: &str) -> (usize, Progress) {
    let (mut handshake, _) = start(config);
    let frames = frames(replies);
    let mut count = 0;
    for frame in frames {
        count += 1;
        match handshake.on_frame(frame) {
            Progress::NeedMore => {}
            end => return (count, end),
        }
    }
    (count, Progress::NeedMore)
}

fn failure(config: &HandshakeConfig, replies: &str) -> (usize, HandshakeError) {
    match run(config, replies) {
        (count, Progress::Failed(error)) => (count, error),
        other => panic!("no failure: {other:?}"),
    }
}

fn ready(config: &HandshakeConfig, replies: &str) -> Ready {
    match run(config, replies) {
        (_, Progress::Ready(ready)) => *ready,
        other => panic!("not ready: {other:?}"),
    }
}

#[test]
fn the_batch_has_auth_first_and_the_tracer_last() {
    let config = HandshakeConfig {
        credentials: Some(Credentials::user("app", "secret")),
        database: 3,
        is_read_only: true,
        client_name: Some("billing".into()),
        library_version: Some("1.0".into()),
        extra: vec![ExtraCommand { args: vec!["CLIENT".into(), "NO-EVICT".into()], is_required: false }],
        ..HandshakeConfig::default()
    };
    let (_, batch) = start(&config);
    let commands: Vec<String> = frames(&batch)
        .into_iter()
        .map(|frame| match frame {
            Frame::Array(args) => args
                .iter()
                .map(|arg| String::from_utf8_lossy(text(arg).unwrap()).into_owned())
                .collect::<Vec<_>>()
                .join(" "),
            other => panic!("no command: {other:?}"),
        })
        .collect();
    assert_eq!(
        commands,
        [
            "AUTH app secret",
            "HELLO 3",
            "SELECT 3",
            "READONLY",
            "CLIENT SETNAME billing",
            "CLIENT SETINFO LIB-NAME towline",
            "CLIENT SETINFO LIB-VER 1.0",
            "CLIENT ID",
            "CLIENT NO-EVICT",
            "PING towline-0000000000000abc",
        ]
    );
}

#[test]
fn a_modern_server_ends_in_resp3() {
    let ready = ready(&with_password(), &format!("+OK\r\n{HELLO_3}+OK\r\n+OK\r\n:4\r\n{TRACE}"));
    assert_eq!(ready.protocol, Proto::Resp3);
    assert_eq!(ready.client_id, Some(4));
    assert_eq!(ready.server.name.as_deref(), Some("redis"));
    assert_eq!(ready.server.version.as_deref(), Some("8.2.3"));
    assert_eq!(ready.server.mode, ServerMode::Standalone);
    assert_eq!(ready.server.role.as_deref(), Some("master"));
    assert_eq!(ready.refused, []);
}

#[test]
fn a_server_that_must_be_a_primary_is_asked_what_it_is() {
    let config = HandshakeConfig { is_primary_required: true, ..HandshakeConfig::default() };
    let (_, batch) = start(&config);
    assert!(batch.contains("ROLE"), "{batch}");
    let master = "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n";
    let slave = "*5\r\n$5\r\nslave\r\n$9\r\n127.0.0.1\r\n:6379\r\n$9\r\nconnected\r\n:14\r\n";
    let sentinel = "*2\r\n$8\r\nsentinel\r\n*0\r\n";
    let hidden = "-NOPERM this user has no permissions to run the 'role' command\r\n";
    let replies = |hello: &str, role: &str| format!("{hello}{role}+OK\r\n+OK\r\n:4\r\n{TRACE}");
    let refused = |hello: &str, role: &str| match failure(&config, &replies(hello, role)).1 {
        HandshakeError::NotPrimary { role } => role.into_string(),
        other => panic!("{other}"),
    };
    assert_eq!(ready(&config, &replies(HELLO_3, master)).server.role.as_deref(), Some("master"));
    assert_eq!(refused(HELLO_3, slave), "slave");
    assert_eq!(refused(HELLO_3, sentinel), "sentinel");
    // Who may not ask goes by what HELLO told, or hopes.
    ready(&config, &replies(HELLO_3, hidden));
    let replica = HELLO_3.replace("$6\r\nmaster", "$7\r\nreplica");
    assert_eq!(refused(&replica, hidden), "replica");
    ready(&config, &replies("-ERR unknown command\r\n", hidden));
    assert!(failure(&config, &replies(HELLO_3, slave)).1.is_retryable());
    assert!(matches!(failure(&config, &replies(HELLO_3, ":1\r\n")).1, HandshakeError::Desync));
    // Nobody else asks.
    assert!(!start(&HandshakeConfig::default()).1.contains("ROLE"));
    ready(&HandshakeConfig::default(), &format!("{replica}+OK\r\n+OK\r\n:4\r\n{TRACE}"));
}

#[test]
fn an_old_server_ends_in_resp2_unless_resp3_is_a_must() {
    let replies = format!(
        "-ERR unknown command `HELLO`, with args beginning with: `3`, \r\n-ERR Unknown subcommand\r\n-ERR Unknown \
         subcommand\r\n:9\r\n{TRACE}"
    );
    let old = ready(&HandshakeConfig::default(), &replies);
    assert_eq!((old.protocol, old.client_id), (Proto::Resp2, Some(9)));
    assert_eq!(
        old.refused.iter().map(|(step, _)| *step).collect::<Vec<_>>(),
        [Step::Hello, Step::SetInfo, Step::SetInfo]
    );

    let strict = HandshakeConfig { protocol: ProtocolChoice::Resp3, ..HandshakeConfig::default() };
    let (count, error) = failure(&strict, &replies);
    assert!(matches!(error, HandshakeError::ProtocolRefused(_)) && count == 1 && !error.is_retryable());
}

#[test]
fn announcements_of_maintenance_are_asked_for_in_the_form_that_was_chosen() {
    let asking = |moving_endpoint_type, is_required| HandshakeConfig {
        maintenance: Some(MaintenanceRequest { moving_endpoint_type, is_required }),
        ..HandshakeConfig::default()
    };
    let wire = |args: &[&str]| {
        let mut out = Vec::new();
        encode_command(args, &mut out);
        String::from_utf8(out).unwrap()
    };
    let long = wire(&["CLIENT", "MAINT_NOTIFICATIONS", "ON", "moving-endpoint-type", "external-ip"]);
    assert!(start(&asking(Some("external-ip"), false)).1.contains(&long));
    assert!(start(&asking(None, false)).1.contains(&wire(&["CLIENT", "MAINT_NOTIFICATIONS", "ON"])));
    let resp2 = HandshakeConfig { protocol: ProtocolChoice::Resp2, ..asking(None, false) };
    assert!(!start(&resp2).1.contains("MAINT_NOTIFICATIONS"), "RESP2 has no room for them");

    let replies = |hello: &str, asked: &str| format!("{hello}+OK\r\n+OK\r\n:4\r\n{asked}{TRACE}");
    let refusal = "-ERR unknown subcommand 'MAINT_NOTIFICATIONS'. Try CLIENT HELP.\r\n";
    assert!(ready(&asking(None, false), &replies(HELLO_3, "+OK\r\n")).has_maintenance);
    let without = ready(&asking(None, false), &replies(HELLO_3, refusal));
    assert!(!without.has_maintenance && without.refused[0].0 == Step::Maintenance);
    let (_, error) = failure(&asking(None, true), &replies(HELLO_3, refusal));
    assert!(!error.is_retryable(), "{error}");
    // A server that agrees and speaks RESP2 cannot announce anything.
    let old = replies("-ERR unknown command 'HELLO'\r\n", "+OK\r\n");
    assert_eq!(failure(&asking(None, true), &old).1, HandshakeError::NoMaintenance);
}

#[test]
fn resp2_by_choice_still_learns_about_the_server() {
    let config = HandshakeConfig { protocol: ProtocolChoice::Resp2, ..HandshakeConfig::default() };
    let hello = "*6\r\n$6\r\nserver\r\n$6\r\nvalkey\r\n$5\r\nproto\r\n:2\r\n$4\r\nmode\r\n$7\r\ncluster\r\n";
    let ready = ready(&config, &format!("{hello}+OK\r\n+OK\r\n:4\r\n{TRACE}"));
    assert_eq!(ready.protocol, Proto::Resp2);
    assert_eq!(ready.server.mode, ServerMode::Cluster);
}

#[test]
fn pushes_and_attributes_in_between_are_skipped() {
    let replies = format!(
        ">2\r\n+invalidate\r\n_\r\n{HELLO_3}>1\r\n+x\r\n+OK\r\n+OK\r\n|1\r\n+ttl\r\n:1\r\n:4\r\n{TRACE}"
    );
    assert_eq!(ready(&HandshakeConfig::default(), &replies).client_id, Some(4));
}

#[test]
fn wrong_credentials_fail_at_the_first_reply() {
    let texts = [
        WRONGPASS,
        "-ERR invalid password\r\n",
        "-ERR AUTH <password> called without any password configured for the default user.\r\n",
        "-ERR Client sent AUTH, but no password is set\r\n",
    ];
    for text in texts {
        let (count, error) = failure(&with_password(), &format!("{text}{NOAUTH_HELLO}{NOAUTH}"));
        assert!(matches!(error, HandshakeError::WrongPassword(_)), "{text}: {error:?}");
        assert!(count == 1 && !error.is_retryable() && error.is_about_credentials());
    }
}

#[test]
fn an_unanswered_auth_is_found_at_once_not_by_the_timeout() {
    // What Redis 8.2 sends when AUTH is refused and is not the first command that it reads.
    let replies = format!("{NOAUTH_HELLO}{NOAUTH}{NOAUTH}{NOAUTH}{NOAUTH}");
    assert_eq!(failure(&with_password(), &replies), (1, HandshakeError::AuthUnanswered));
    // The same where the default user needs no password.
    let replies = format!("{HELLO_3}+OK\r\n+OK\r\n:4\r\n{TRACE}");
    assert_eq!(failure(&with_password(), &replies), (1, HandshakeError::AuthUnanswered));
    assert!(!HandshakeError::AuthUnanswered.is_retryable());
}

#[test]
fn a_server_that_wants_credentials_says_so() {
    let (count, error) = failure(&HandshakeConfig::default(), &format!("{NOAUTH_HELLO}{NOAUTH}"));
    assert!(matches!(error, HandshakeError::AuthRequired(_)) && count == 1);
    let proxy = HandshakeConfig { peer: Peer::Proxy, ..HandshakeConfig::default() };
    let (_, error) = failure(&proxy, NOAUTH);
    assert!(matches!(error, HandshakeError::AuthRequired(_)));
}

#[test]
fn a_missing_database_names_it() {
    let config = HandshakeConfig { database: 99, ..HandshakeConfig::default() };
    let (_, error) = failure(&config, &format!("{HELLO_3}-ERR DB index is out of range\r\n"));
    assert!(matches!(error, HandshakeError::NoSuchDatabase { database: 99, .. }));
    let text = "-NOPERM User app has no permissions to run the 'select' command\r\n";
    let (_, error) = failure(&config, &format!("{HELLO_3}{text}"));
    assert!(matches!(error, HandshakeError::NoPermission(_)));
}

#[test]
fn a_server_that_does_not_serve_yet_is_retryable() {
    let start = format!("{HELLO_3}+OK\r\n+OK\r\n:4\r\n");
    for text in
        ["LOADING Redis is loading the dataset in memory", "MASTERDOWN Link is down", "BUSY Redis is busy"]
    {
        let (_, error) = failure(&HandshakeConfig::default(), &format!("{start}-{text}\r\n"));
        assert!(matches!(error, HandshakeError::Busy(_)) && error.is_retryable(), "{error:?}");
    }
    for config in [HandshakeConfig::default(), with_password()] {
        let (count, error) = failure(&config, "-ERR max number of clients reached\r\n");
        assert!(matches!(error, HandshakeError::TooManyClients(_)) && error.is_retryable() && count == 1);
        let (_, error) = failure(&config, "-DENIED Redis is running in protected mode\r\n");
        assert!(matches!(error, HandshakeError::Refused { .. }) && !error.is_retryable());
    }
}

#[test]
fn a_missing_reply_anywhere_is_a_desync() {
    let replies = [HELLO_3, "+OK\r\n", "+OK\r\n", ":4\r\n", TRACE];
    for missing in 0..4 {
        let mut replies = replies.to_vec();
        replies.remove(missing);
        let (_, error) = failure(&HandshakeConfig::default(), &replies.concat());
        assert!(
            error == HandshakeError::Desync && error.is_retryable(),
            "without reply {missing}: {error:?}"
        );
    }
    let with_extra = HandshakeConfig {
        extra: vec![ExtraCommand { args: vec!["GET".into(), "x".into()], is_required: false }],
        ..HandshakeConfig::default()
    };
    assert_eq!(failure(&with_extra, &replies.concat()), (5, HandshakeError::Desync));
    let other_token = TRACE.replace("abc", "abd");
    let (_, error) = failure(&HandshakeConfig::default(), &(replies[..4].concat() + &other_token));
    assert_eq!(error, HandshakeError::Desync);
}

#[test]
fn a_user_with_few_permissions_may_still_connect() {
    let noperm =
        |command: &str| format!("-NOPERM User app has no permissions to run the '{command}' command\r\n");
    let start = [HELLO_3.to_owned(), noperm("client|setinfo"), noperm("client|setinfo"), noperm("client|id")]
        .concat();
    let limited = ready(&HandshakeConfig::default(), &(start.clone() + &noperm("ping")));
    assert_eq!((limited.client_id, limited.refused.len()), (None, 3));
    let (_, error) = failure(&HandshakeConfig::default(), &(start + &noperm("echo")));
    assert_eq!(error, HandshakeError::Desync, "a refusal of another command proves a missing reply");
}

#[test]
fn a_proxy_gets_nothing_that_it_may_not_know() {
    let config = HandshakeConfig { peer: Peer::Proxy, ..with_password() };
    let (_, batch) = start(&config);
    assert_eq!(batch, "*2\r\n$4\r\nAUTH\r\n$6\r\nsecret\r\n*1\r\n$4\r\nPING\r\n");
    assert_eq!(ready(&config, "+OK\r\n+PONG\r\n").protocol, Proto::Resp2);
    assert_eq!(failure(&config, "+PONG\r\n"), (1, HandshakeError::AuthUnanswered));
}

#[test]
fn an_extra_command_may_be_a_must() {
    let extra = |is_required| HandshakeConfig {
        extra: vec![ExtraCommand {
            args: vec!["CLIENT".into(), "TRACKING".into(), "ON".into()],
            is_required,
        }],
        ..HandshakeConfig::default()
    };
    let replies = format!("{HELLO_3}+OK\r\n+OK\r\n:4\r\n-ERR syntax error\r\n{TRACE}");
    assert_eq!(ready(&extra(false), &replies).refused.len(), 1);
    let (_, error) = failure(&extra(true), &replies);
    assert!(matches!(error, HandshakeError::Refused { step: Step::Extra(0), .. }));
}

#[test]
fn the_timeout_names_the_step_that_has_no_reply() {
    let (mut handshake, _) = start(&HandshakeConfig::default());
    assert_eq!(handshake.poll_timeout(), Instant::ZERO + Duration::from_secs(5));
    handshake.on_frame(frames(HELLO_3).remove(0));
    assert_eq!(handshake.handle_timeout(Instant::ZERO + Duration::from_secs(4)), None);
    assert_eq!(
        handshake.handle_timeout(Instant::ZERO + Duration::from_secs(5)),
        Some(HandshakeError::Timeout { step: Step::SetInfo })
    );
}

#[test]
fn the_password_is_in_no_debug_output() {
    let config = with_password();
    let (handshake, _) = start(&config);
    let reauth = ReAuth::start(&Credentials::user("app", "secret"), TOKEN, &mut Vec::new());
    assert!(!format!("{config:?} {handshake:?} {reauth:?}").contains("secret"));
}

#[test]
fn new_credentials_on_a_connection_in_use() {
    let run = |replies: &str| {
        let mut out = Vec::new();
        let mut reauth = ReAuth::start(&Credentials::password("new"), TOKEN, &mut out);
        assert!(out.starts_with(b"*2\r\n$4\r\nAUTH\r\n$3\r\nnew\r\n*2\r\n$4\r\nPING\r\n"));
        frames(replies).into_iter().map(|frame| reauth.on_frame(frame)).last().unwrap()
    };
    assert_eq!(run("+OK\r\n"), ReAuthProgress::NeedMore);
    assert_eq!(run(&format!("+OK\r\n{TRACE}")), ReAuthProgress::Done);
    assert_eq!(run("+OK\r\n-LOADING Redis is loading\r\n"), ReAuthProgress::Done);
    assert!(matches!(
        run(&format!("{WRONGPASS}{TRACE}")),
        ReAuthProgress::Refused(HandshakeError::WrongPassword(_))
    ));
    assert_eq!(run(TRACE), ReAuthProgress::Broken(HandshakeError::AuthUnanswered));
    assert_eq!(run("+OK\r\n+OK\r\n"), ReAuthProgress::Broken(HandshakeError::Desync));
}

#[test]
fn no_sequence_of_replies_hangs_or_panics() {
    // Every step answered by every kind of reply: there is always an end after as many replies as commands.
    let kinds = [
        "+OK\r\n",
        ":1\r\n",
        "*0\r\n",
        "_\r\n",
        "-ERR x\r\n",
        "-NOPERM 'ping'\r\n",
        TRACE,
        "%0\r\n",
        "#t\r\n",
    ];
    let config = HandshakeConfig { library_name: None, library_version: None, ..with_password() };
    let steps = start(&config).0.steps.len();
    let total = kinds.len().pow(u32::try_from(steps).unwrap());
    for mut number in 0..total {
        let mut replies = String::new();
        for _ in 0..steps {
            replies.push_str(kinds[number % kinds.len()]);
            number /= kinds.len();
        }
        assert_ne!(run(&config, &replies).1, Progress::NeedMore, "{replies:?}");
    }
}
