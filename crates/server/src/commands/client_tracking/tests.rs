//! Tests of client-side caching.

use crate::testing::{Server, pushed};

#[test]
fn options_are_checked() {
    let mut server = Server::new();
    let overlap = "Prefixes for a single client must not overlap.";
    for (line, reply) in [
        ("TRACKING foo", "-ERR syntax error".to_owned()),
        ("TRACKING on foo", "-ERR syntax error".into()),
        ("TRACKING on redirect", "-ERR syntax error".into()),
        ("TRACKING on redirect x", "-ERR value is not an integer or out of range".into()),
        ("TRACKING on redirect 99", "-ERR The client ID you want redirect to does not exist".into()),
        ("TRACKING on redirect 1 redirect 1", "-ERR A client can only redirect to a single other client".into()),
        ("TRACKING on prefix a", "-ERR PREFIX option requires BCAST mode to be enabled".into()),
        ("TRACKING on bcast optin", "-ERR OPTIN and OPTOUT are not compatible with BCAST".into()),
        ("TRACKING on optin optout", "-ERR You can't specify both OPTIN mode and OPTOUT mode".into()),
        (
            "CACHING yes",
            "-ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled"
                .into(),
        ),
        (
            "TRACKING on bcast prefix ab prefix a",
            format!("-ERR Prefix 'ab' overlaps with another provided prefix 'a'. {overlap}"),
        ),
        (
            "TRACKING on bcast prefix a prefix b prefix b",
            format!("-ERR Prefix 'b' overlaps with another provided prefix 'b'. {overlap}"),
        ),
        ("TRACKING on bcast prefix ab prefix b", "+OK".into()),
        (
            "TRACKING on bcast prefix abc",
            format!("-ERR Prefix 'abc' overlaps with an existing prefix 'ab'. {overlap}"),
        ),
        ("TRACKING on bcast prefix c noloop", "+OK".into()),
        ("TRACKINGINFO", "*6 $5 flags *3 $2 on $5 bcast $6 noloop $8 redirect :0 $8 prefixes *3 $2 ab $1 b $1 c".into()),
        ("GETREDIR", ":0".into()),
        ("TRACKING off bcast", "+OK".into()),
        ("TRACKINGINFO", "*6 $5 flags *1 $3 off $8 redirect :-1 $8 prefixes *0".into()),
        ("GETREDIR", ":-1".into()),
        ("TRACKING on optin", "+OK".into()),
        ("CACHING no", "-ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.".into()),
        ("CACHING foo", "-ERR syntax error".into()),
        ("CACHING yes", "+OK".into()),
        ("TRACKINGINFO", "*6 $5 flags *3 $2 on $5 optin $11 caching-yes $8 redirect :0 $8 prefixes *0".into()),
    ] {
        assert_eq!(server.line(&format!("CLIENT {line}")), reply, "{line}");
    }
    assert!(server.line("CLIENT TRACKING on optout").starts_with("-ERR You can't switch OPTIN/OPTOUT mode"));
    assert!(server.line("CLIENT TRACKING on bcast").starts_with("-ERR You can't switch BCAST mode"));
}

#[test]
fn keys_that_were_read_are_invalidated_once() {
    let mut server = Server::new();
    let mut reader = server.second();
    server.line_as(&mut reader, "HELLO 3");
    server.line_as(&mut reader, "CLIENT TRACKING ON");
    server.line_as(&mut reader, "GET k");
    server.line_as(&mut reader, "SET other 1");
    server.line("SET k 1");
    assert_eq!(pushed(&reader), ">2 $10 invalidate *1 $1 k");
    server.line("SET k 2");
    server.line("SET other 2");
    assert_eq!(pushed(&reader), "");
    // Its own change, too, behind the reply.
    server.line_as(&mut reader, "GET k");
    assert_eq!(server.line_as(&mut reader, "SET k 3"), "+OK");
    assert_eq!(pushed(&reader), ">2 $10 invalidate *1 $1 k");
    // In whichever database.
    server.line_as(&mut reader, "GET k");
    server.line("SELECT 1");
    server.line("SET k 1");
    assert_eq!(pushed(&reader), ">2 $10 invalidate *1 $1 k");
    server.line_as(&mut reader, "GET k");
    server.line_as(&mut reader, "CLIENT TRACKING OFF");
    server.line("SET k 1");
    assert_eq!(pushed(&reader), "");
}

#[test]
fn a_transaction_is_tracked_like_its_commands() {
    let mut server = Server::new().resp3();
    server.line("CLIENT TRACKING ON OPTIN");
    server.line("CLIENT CACHING YES");
    for line in ["MULTI", "GET k", "GET j"] {
        server.line(line);
    }
    server.line("EXEC");
    server.line("GET i");
    for line in ["MULTI", "SET k 2", "SET j 3", "SET i 4"] {
        server.line(line);
    }
    assert_eq!(server.line("EXEC"), "*3 +OK +OK +OK");
    assert_eq!(server.pushed(), ">2 $10 invalidate *1 $1 k >2 $10 invalidate *1 $1 j");
}

#[test]
fn opting_in_and_out_is_for_one_command() {
    let mut server = Server::new().resp3();
    server.line("CLIENT TRACKING ON OPTOUT NOLOOP");
    let mut other = server.second();
    server.line("CLIENT CACHING NO");
    server.line("GET a");
    server.line("GET b");
    for key in ["a", "b"] {
        server.line_as(&mut other, &format!("SET {key} 1"));
    }
    assert_eq!(server.pushed(), ">2 $10 invalidate *1 $1 b");
    server.line("GET b");
    server.line("SET b 2");
    assert_eq!(server.pushed(), "", "NOLOOP");
}

#[test]
fn prefixes_are_broadcast() {
    let mut server = Server::new();
    let (mut all, mut some) = (server.second(), server.second());
    server.line_as(&mut all, "HELLO 3");
    server.line_as(&mut some, "HELLO 3");
    server.line_as(&mut all, "CLIENT TRACKING ON BCAST");
    server.line_as(&mut some, "CLIENT TRACKING ON BCAST PREFIX a: PREFIX b: NOLOOP");
    for line in ["MULTI", "SET a:1 x", "SET c:1 x", "SET a:1 y", "SET b:1 x", "SET a x"] {
        server.line(line);
    }
    server.line("EXEC");
    assert_eq!(pushed(&all), ">2 $10 invalidate *4 $1 a $3 a:1 $3 b:1 $3 c:1");
    assert_eq!(pushed(&some), ">2 $10 invalidate *1 $3 a:1 >2 $10 invalidate *1 $3 b:1");
    server.line_as(&mut some, "SET a:1 z");
    assert_eq!(pushed(&all), ">2 $10 invalidate *1 $3 a:1");
    assert_eq!(pushed(&some), "", "NOLOOP");
    for session in [&mut all, &mut some] {
        crate::farewell::session_end(&mut server.local, session, server.now_ms);
    }
    assert!(!server.local.shared.tracking.any_broadcast());
    server.line("SET a:1 x");
    assert_eq!(pushed(&all), "");
}

#[test]
fn invalidations_are_redirected() {
    let mut server = Server::new();
    let mut listener = server.second();
    server.line_as(&mut listener, "SUBSCRIBE __redis__:invalidate");
    assert_eq!(server.line("CLIENT TRACKING ON REDIRECT 2"), "+OK");
    assert_eq!(server.line("CLIENT GETREDIR"), ":2");
    server.line("GET k");
    server.line("SET k 1");
    assert_eq!(pushed(&listener), "*3 $7 message $20 __redis__:invalidate *1 $1 k");
    assert_eq!(server.pushed(), "");
    server.line("HELLO 3");
    server.line("GET k");
    crate::farewell::session_end(&mut server.local, &mut listener, server.now_ms);
    assert_eq!(server.line("SET k 2"), "+OK");
    assert_eq!(server.pushed(), ">2 $21 tracking-redir-broken :2");
    assert!(server.line("CLIENT TRACKINGINFO").contains("~2 $2 on $15 broken_redirect $8 redirect :2"));
    assert!(server.line("CLIENT INFO").contains(" flags=tR "));
}

#[test]
fn an_emptied_database_invalidates_everything() {
    let mut server = Server::new().resp3();
    let (mut resp2, mut target) = (server.second(), server.second());
    server.line("CLIENT TRACKING ON BCAST PREFIX x");
    server.line_as(&mut target, "SUBSCRIBE __redis__:invalidate");
    server.line_as(&mut resp2, "CLIENT TRACKING ON REDIRECT 3");
    server.line("FLUSHDB");
    assert_eq!(server.pushed(), ">2 $10 invalidate _");
    assert_eq!(pushed(&target), "*3 $7 message $20 __redis__:invalidate $-1");
    assert_eq!(pushed(&resp2), "");
}

#[test]
fn a_key_that_expires_is_invalidated() {
    let mut server = Server::new().resp3();
    let mut other = server.second();
    server.line("CLIENT TRACKING ON");
    server.line("SET k 1 PX 10");
    server.line("GET k");
    server.advance(20);
    server.line_as(&mut other, "GET k");
    assert_eq!(server.pushed(), ">2 $10 invalidate *1 $1 k");
}

#[test]
fn the_table_forgets_keys_beyond_its_limit_and_says_so() {
    let mut server = Server::new();
    let mut reader = server.second();
    server.line_as(&mut reader, "HELLO 3");
    server.line_as(&mut reader, "CLIENT TRACKING ON");
    let totals = |server: &mut Server| {
        let text = server.line("INFO stats");
        let number = |name: &str| {
            let at = text.find(name).unwrap() + name.len();
            text[at..].split(' ').next().unwrap().parse::<u32>().unwrap()
        };
        (number("tracking_total_keys:"), number("tracking_total_items:"))
    };
    server.line("CLIENT TRACKING ON");
    server.line_as(&mut reader, "MGET a b c");
    server.line("GET a");
    server.line("CLIENT TRACKING OFF");
    assert_eq!(totals(&mut server), (3, 4));
    server.line("SET a v");
    assert_eq!(totals(&mut server), (2, 2));
    assert_eq!(pushed(&reader), ">2 $10 invalidate *1 $1 a");
    server.line("CONFIG SET tracking-table-max-keys 3");
    server.line_as(&mut reader, "GET d");
    assert_eq!((totals(&mut server), &*pushed(&reader)), ((3, 3), ""));
    for key in ["e", "f", "g"] {
        server.line_as(&mut reader, &format!("GET {key}"));
        assert!(pushed(&reader).starts_with(">2 $10 invalidate *1 $1 "), "{key} takes another one's place");
    }
    assert_eq!(totals(&mut server), (3, 3));
    server.line("CONFIG SET tracking-table-max-keys 1");
    crate::tracking::enforce_limit(&mut server.local, server.now_ms);
    assert_eq!(totals(&mut server), (1, 1));
    server.line("CONFIG SET tracking-table-max-keys 0");
    server.line_as(&mut reader, "MGET h i j k");
    assert_eq!(totals(&mut server).0, 5);
    server.line("MSET a 1 b 1 c 1 d 1 e 1 f 1 g 1 h 1 i 1 j 1 k 1");
    assert_eq!(totals(&mut server), (0, 0));
}
