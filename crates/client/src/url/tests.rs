use super::*;
use crate::primary_options::SentinelTls;
use proptest::prelude::*;
use std::task::{Context, Poll, Waker};

#[track_caller]
fn parsed(url: &str) -> ConnectOptions {
    let options: ConnectOptions = url.parse().unwrap();
    options.validate().unwrap();
    options
}

#[track_caller]
fn refused(url: &str) -> UrlError {
    url.parse::<ConnectOptions>().unwrap_err()
}

fn known(options: &ConnectOptions) -> Option<Credentials> {
    let mut asked = options.provider()?.credentials();
    match asked.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(found) => found.ok(),
        Poll::Pending => None,
    }
}

#[track_caller]
fn is(url: &str, host: &str, port: u16, credentials: Option<Credentials>, database: u32) {
    let options = parsed(url);
    assert_eq!(options.target(), &Target::tcp(host, port));
    assert_eq!(known(&options), credentials);
    assert_eq!(options.handshake(None, Duration::MAX, None).database, database);
}

#[test]
fn every_form_is_read() {
    let user = |user: &str, password: &'static str| Some(Credentials::user(user, password));
    let password = |password: &'static str| Some(Credentials::password(password));
    is("redis://db", "db", 6379, None, 0);
    is("REDIS://db/", "db", 6379, None, 0);
    is("valkey://db:7000/3", "db", 7000, None, 3);
    is("redis://db:", "db", 6379, None, 0);
    is("redis://app:secret@db:1/2", "db", 1, user("app", "secret"), 2);
    is("redis://:secret@db", "db", 6379, password("secret"), 0);
    is("redis://app:@db", "db", 6379, user("app", ""), 0);
    is("redis://:@db", "db", 6379, None, 0);
    is("redis://@db", "db", 6379, None, 0);
    is("redis://a%40b:p%2Fa%3Fs%25s@db", "db", 6379, user("a@b", "p/a?s%s"), 0);
    is("redis://:p@ss:word@db", "db", 6379, password("p@ss:word"), 0);
    is("redis://:a+b@db", "db", 6379, password("a+b"), 0);
    is("redis://[::1]", "::1", 6379, None, 0);
    is("redis://:x@[fe80::1%eth0]:7000/1", "fe80::1%eth0", 7000, password("x"), 1);
    is("redis://db?db=4", "db", 6379, None, 4);
    is("redis://db/4?db=4&", "db", 6379, None, 4);
    is("redis://db?user=app&pass=s%26cret", "db", 6379, user("app", "s&cret"), 0);
    is("redis://db?pass=secret", "db", 6379, password("secret"), 0);
    let raw = known(&parsed("redis://:%ff@db")).unwrap();
    assert_eq!(raw, Credentials::password(&b"\xff"[..]));
}

#[test]
fn lanes_are_counted() {
    assert_eq!(parsed("redis://db?lanes=4").lane_count().count(), 4);
    assert_eq!(parsed("redis://a,b/?cluster=true&lanes=32").lane_count().count(), 32);
    assert_eq!(parsed("unix:///tmp/s").lane_count().count(), 1);
}

#[test]
fn unix_sockets_are_read() {
    for url in ["unix:///run/redis.sock", "redis+unix:///run/redis.sock", "valkey+unix:///run/redis.sock"] {
        assert_eq!(parsed(url).target(), &Target::unix("/run/redis.sock"));
    }
    let options = parsed("unix:///a%20b?db=2&user=app&pass=s@cret");
    assert_eq!(options.target(), &Target::unix("/a b"));
    assert_eq!(known(&options), Some(Credentials::user("app", "s@cret")));
    assert_eq!(options.handshake(None, Duration::MAX, None).database, 2);
    assert_eq!(parsed("unix://relative.sock").target(), &Target::unix("relative.sock"));
}

#[test]
fn options_are_read() {
    let options = parsed(
        "redis://db?protocol=resp2&client_name=app&command_timeout=250ms&connect_timeout=1m&backlog=fail-fast",
    );
    let handshake = options.handshake(None, Duration::MAX, None);
    assert_eq!(handshake.protocol, ProtocolChoice::Resp2);
    assert_eq!(handshake.client_name.as_deref(), Some("app"));
    assert_eq!(options.default_command_timeout(), Duration::from_millis(250));
    assert_eq!(options.dial_timeout(), Duration::from_secs(60));
    assert!(format!("{options:?}").contains("FailFast"));
    assert_eq!(parsed("redis://db?command_timeout=none").default_command_timeout(), Duration::MAX);
    for (text, protocol) in [
        ("3", ProtocolChoice::Resp3),
        ("RESP3", ProtocolChoice::Resp3),
        ("auto", ProtocolChoice::Resp3OrResp2),
    ] {
        let options = parsed(&format!("redis://db?protocol={text}"));
        assert_eq!(options.handshake(None, Duration::MAX, None).protocol, protocol);
    }
}

#[test]
fn tls_is_read() {
    assert_eq!(parsed("redis://db").tls_options(), None);
    assert_eq!(parsed("rediss://db").tls_options(), Some(&TlsOptions::new()));
    let insecure = TlsOptions::new().danger_accept_any_certificate(true);
    assert_eq!(parsed("valkeys://db#insecure").tls_options(), Some(&insecure));
    let full = TlsOptions::new().server_name("name").ca_file("/ca").client_files("/cert", "/key");
    let url = "rediss://db/1?server_name=name&ca_file=/ca&cert_file=%2Fcert&key_file=/key";
    assert_eq!(parsed(url).tls_options(), Some(&full));
}

#[test]
fn each_part_has_its_error() {
    let encoding = |part| UrlError::Encoding { part };
    let unknown = |name: Option<&str>| UrlError::UnknownOption { name: name.map(Into::into) };
    for (url, error) in [
        ("", UrlError::Scheme),
        ("db:6379", UrlError::Scheme),
        ("http://db", UrlError::Scheme),
        ("redis://", UrlError::NoHost),
        ("redis://:6379", UrlError::NoHost),
        ("redis:///1", UrlError::NoHost),
        ("redis://[::1", UrlError::Ipv6),
        ("redis://[db]", UrlError::Ipv6),
        ("redis://[::1]7000", UrlError::Ipv6),
        ("redis://::1", UrlError::Colons),
        ("redis://db:x", UrlError::Port),
        ("redis://db:0", UrlError::Port),
        ("redis://db:+1", UrlError::Port),
        ("redis://db:65536", UrlError::Port),
        ("redis://db/x", UrlError::Database),
        ("redis://db/+1", UrlError::Database),
        ("redis://db/1/", UrlError::Database),
        ("redis://db/4294967296", UrlError::Database),
        ("redis://db?db=", UrlError::Database),
        ("redis://db/1?db=2", UrlError::TwoDatabases),
        ("redis://app@db", UrlError::UserOnly),
        ("redis://app:a@db?pass=b", UrlError::Credentials),
        ("redis://db?user=app", UrlError::Credentials),
        ("redis://:%4@db", encoding("password")),
        ("redis://%ff:x@db", encoding("user")),
        ("redis://d%b", encoding("host")),
        ("redis://db?client_name=%", encoding("option `client_name`")),
        ("redis://db#insecure", UrlError::Fragment),
        ("rediss://db#secure", UrlError::Fragment),
        ("unix://", UrlError::NoPath),
        ("unix://?db=1", UrlError::NoPath),
        ("redis://db?timeout=5s", unknown(Some("timeout"))),
        ("redis://db?what", unknown(None)),
        ("redis://db?db=1&db=1", UrlError::Twice { name: "db" }),
        ("redis://db?ca_file=/ca", UrlError::TlsOption { name: "ca_file" }),
        ("unix:///s?server_name=x", UrlError::TlsOption { name: "server_name" }),
        ("rediss://db?cert_file=/c", UrlError::HalfIdentity),
    ] {
        assert_eq!(refused(url), error, "{url}");
    }
    for (option, values) in [
        ("protocol", &["", "4", "resp"][..]),
        ("backlog", &["never"]),
        ("lanes", &["0", "33", "+4", "256", ""]),
        (
            "command_timeout",
            &["5", "s", "", "-1s", "1.5s", "5h", "99999999999999999999s", "18446744073709551615m"],
        ),
    ] {
        for value in values {
            let error = refused(&format!("redis://db?{option}={value}"));
            assert!(matches!(error, UrlError::Value { name, .. } if name == option), "{value}: {error}");
        }
    }
}

#[test]
fn passwords_that_are_not_encoded_are_recognised() {
    for url in [
        "redis://app:hunt/er2@db",
        "redis://app:hunt?er2@db",
        "redis://app:hunt#er2@db",
        "redis://:hunt/er2@db/1?db=1",
    ] {
        assert_eq!(refused(url), UrlError::StrayAt, "{url}");
    }
}

proptest! {
    #[test]
    fn any_user_and_password_come_back(user in ".{1,20}", password in any::<Vec<u8>>()) {
        let encode = |bytes: &[u8]| bytes.iter().map(|byte| format!("%{byte:02X}")).collect::<String>();
        let url = format!("redis://{}:{}@db", encode(user.as_bytes()), encode(&password));
        prop_assert_eq!(known(&parsed(&url)), Some(Credentials::user(user, password)));
    }

    #[test]
    fn no_error_shows_a_password_and_nothing_panics(
        before in "[a-z0-9:/?#@%&=\\[\\]]{0,12}", after in "[a-z0-9:/?#@%&=\\[\\]]{0,12}", is_tls in any::<bool>(),
    ) {
        // Upper case does not occur in any message.
        let scheme = if is_tls { "rediss" } else { "redis" };
        let url = format!("{scheme}://{before}QXZW{after}");
        if let Err(error) = url.parse::<ConnectOptions>() {
            prop_assert!(!format!("{error} {error:?}").contains("QXZW"), "{url}: {error}");
        }
    }
}

#[test]
fn a_cluster_may_be_read_from_replicas() {
    let url = "redis://a/?cluster=true&read_from=nearest&zone=eu%2D1a&replica_lag_max=65536";
    let options = parsed(url);
    let reads = ClusterOptions::new().read_from(ReadFrom::Nearest).zone("eu-1a").replica_lag_max(65536);
    assert_eq!(options.cluster_options(), Some(&reads));
    for (_, name) in ReadFrom::NAMES {
        parsed(&format!("redis-cluster://a?read_from={name}"));
    }
    assert_eq!(refused("redis://a?read_from=any"), UrlError::NoCluster);
    assert_eq!(refused("redis://a?zone=eu-1a"), UrlError::NoCluster);
    let bad = |name| UrlError::Value { name, expected: "a number of bytes" };
    assert_eq!(refused("redis-cluster://a?replica_lag_max=1s"), bad("replica_lag_max"));
    assert!(matches!(
        refused("redis-cluster://a?read_from=slave"),
        UrlError::Value { name: "read_from", .. }
    ));
}

#[test]
fn a_cluster_is_one_or_more_of_its_nodes() {
    let seeds = |url: &str| {
        let options: ConnectOptions = url.parse().unwrap();
        let further = options.cluster_options().map(|cluster| {
            cluster.further_seeds().iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        });
        (options.target().to_string(), further)
    };
    let some = |text: &str| Some(text.to_owned());
    for (url, first, further) in [
        ("redis://a:1", "a:1", None),
        ("redis://a:1/?cluster=true", "a:1", some("")),
        ("redis://a:1,b,[::1]:3/?cluster=true", "a:1", some("b:6379 [::1]:3")),
        ("redis-cluster://user:pass@a:1,b:2", "a:1", some("b:2")),
        ("redis+cluster://a", "a:6379", some("")),
        ("valkeys-cluster://a/0?split=false", "a:6379", some("")),
        ("redis-cluster://a?cluster=false", "a:6379", None),
    ] {
        assert_eq!(seeds(url), (first.to_owned(), further), "{url}");
    }
    let refused = |url: &str| url.parse::<ConnectOptions>().unwrap_err();
    assert_eq!(refused("redis://a,b"), UrlError::NoCluster);
    assert_eq!(refused("redis://a?split=false"), UrlError::NoCluster);
    assert_eq!(refused("redis://a,/?cluster=true"), UrlError::NoHost);
    assert_eq!(refused("unix-cluster:///tmp/s"), UrlError::Scheme);
    assert!(matches!(refused("redis://a?cluster=yes"), UrlError::Value { name: "cluster", .. }));
}

#[test]
fn sentinels_are_named_as_other_clients_name_them() {
    let found = |url: &str| {
        let options: ConnectOptions = url.parse().unwrap_or_else(|error| panic!("{url}: {error}"));
        let sentinel = options.sentinel_options().unwrap();
        let further: Vec<_> = sentinel.further_sentinels().iter().map(ToString::to_string).collect();
        let database = options.handshake(None, Duration::from_secs(1), None).database;
        let tls = if options.tls_options().is_some() { "tls" } else { "plain" };
        let who = if sentinel.provider().is_some() { "known" } else { "unknown" };
        let further = further.join(" ");
        format!("{} {} [{further}] {database} {tls} {who}", sentinel.name(), options.target())
    };
    for (url, expected) in [
        ("redis-sentinel://a/cache", "cache a:26379 [] 0 plain unknown"),
        ("redis+sentinel://a:1,b,[::1]:3/cache/7", "cache a:1 [b:26379 [::1]:3] 7 plain unknown"),
        ("rediss-sentinel://a/cache?db=2", "cache a:26379 [] 2 tls unknown"),
        ("valkeys+sentinel://u:p@a/my%20cache/1?sentinel_password=x", "my cache a:26379 [] 1 tls known"),
        (
            "valkey-sentinel://a/cache?sentinel_username=u&sentinel_password=x",
            "cache a:26379 [] 0 plain known",
        ),
        (
            "redis-sentinel://u:p@a:1/3?sentinelServiceName=cache&node=b:2&node=c&sentinelUsername=u&sentinelPassword=x",
            "cache a:1 [b:2 c:26379] 3 plain known",
        ),
        ("redis-sentinel://a:6379?sentinelServiceName=cache", "cache a:6379 [] 0 plain unknown"),
    ] {
        assert_eq!(found(url), expected, "{url}");
    }
    let refused = |url: &str| url.parse::<ConnectOptions>().unwrap_err();
    for url in ["redis-sentinel://a", "redis-sentinel://a/", "redis-sentinel://a//1"] {
        assert_eq!(refused(url), UrlError::NoPrimaryName, "{url}");
    }
    assert!(refused("redis-sentinel://a").to_string().contains("redis-sentinel://host:26379/name"));
    assert_eq!(refused("redis-sentinel://a/cache/x"), UrlError::Database);
    assert_eq!(refused("redis-sentinel://a/cache/1/2"), UrlError::Database);
    assert_eq!(refused("redis-sentinel://a/cache?cluster=true"), UrlError::TwoTopologies);
    assert_eq!(refused("redis-sentinel://a/cache?sentinel_username=u"), UrlError::SentinelCredentials);
    assert_eq!(
        refused("redis://a?sentinelServiceName=cache"),
        UrlError::NoSentinel { name: "sentinelServiceName" }
    );
    assert_eq!(refused("redis-cluster://a?node=b"), UrlError::NoSentinel { name: "node" });
    assert_eq!(refused("unix-sentinel:///tmp/s"), UrlError::Scheme);
    assert_eq!(refused("redis-sentinel://a/x?sentinel_tls=1"), {
        UrlError::Value { name: "sentinel_tls", expected: "true or false" }
    });
}

/// The authorities and `#insecure` of the servers hold for the sentinels too.
#[test]
fn sentinels_with_tls_are_as_the_servers_unless_only_they_have_it() {
    let choice = |url: &str| parsed(url).sentinel_options().unwrap().tls_choice().clone();
    assert_eq!(choice("rediss-sentinel://a/name?sentinel_tls=true#insecure"), SentinelTls::AsServers);
    assert_eq!(choice("rediss-sentinel://a/name#insecure"), SentinelTls::AsServers);
    assert_eq!(choice("rediss-sentinel://a/name?sentinel_tls=false"), SentinelTls::Plain);
    let own = SentinelTls::Own(Box::new(TlsOptions::new()));
    assert_eq!(choice("redis-sentinel://a/name?sentinel_tls=true"), own);
}

#[test]
fn replicated_servers_are_several_hosts() {
    let options: ConnectOptions = "redis://a,b:2/3?replicated=true".parse().unwrap();
    let replicated = options.replicated_options().unwrap();
    assert_eq!(replicated.further_servers(), [Target::tcp("b", 2)]);
    assert!(options.cluster_options().is_none());
    let refused = "redis://a,b?replicated=true&cluster=true".parse::<ConnectOptions>().unwrap_err();
    assert_eq!(refused, UrlError::TwoTopologies);
}
