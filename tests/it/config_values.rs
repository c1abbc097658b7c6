//! Every parameter that Redis has too takes and refuses the same values, with the same words.

use e2e::conn::Conn;
use e2e::process::{Server, ServerKind};
use std::collections::BTreeMap;

/// Values that are wrong for most parameters, and right for some.
const VALUES: &[&str] = &[
    "",
    "yes",
    "NO",
    "foo",
    "0",
    "-1",
    "1",
    "101",
    "70000",
    "2147483648",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "1mb",
    "1xb",
    "50%",
    "101%",
    "1.5",
    "a b",
    "1 2 3",
    " 1",
    "everysec",
    "nosave",
    "{foo}",
    "0755",
];

/// Parameters that are not compared, with the reason.
const OTHER: &[(&str, &str)] = &[
    ("port", "the test would cut itself off"),
    ("tls-port", "it cannot be changed at run time"),
    ("bind", "the test would cut itself off"),
    ("maxclients", "Redis checks it against the number of files that the process may open"),
    ("requirepass", "the test would lock itself out"),
    ("dir", "the test would lose its directory"),
    ("dbfilename", "an empty name is refused, as in Valkey 9"),
    ("activedefrag", "the reason for the refusal is another"),
    ("loglevel", "Redis 7.2 added a level"),
    ("tls-cert-file", "a file that cannot be read is refused at once"),
    ("tls-key-file", "a file that cannot be read is refused at once"),
    ("tls-ca-cert-file", "a file that cannot be read is refused at once"),
    ("tls-ca-cert-dir", "not supported"),
    ("tls-key-file-pass", "not supported"),
    ("tls-client-key-file-pass", "not supported"),
    ("cluster-announce-ip", "what would forge a line of CLUSTER NODES is refused"),
    ("tls-cluster", "without effect, so that nothing is loaded"),
    ("tls-replication", "without effect, so that nothing is loaded"),
];

/// What the server says to every value of every parameter of `names`, and what is in force afterwards.
fn outcomes(
    connection: &mut Conn,
    names: &[&String],
) -> anyhow::Result<BTreeMap<(String, String), [String; 2]>> {
    let mut outcomes = BTreeMap::new();
    for name in names {
        let before = connection.call(&["CONFIG", "GET", name])?;
        let before = before.items().and_then(|items| items.get(1)?.bytes()).unwrap_or_default().to_vec();
        let commands = VALUES.iter().flat_map(|value| {
            let set =
                |value: &[u8]| [b"CONFIG", &b"SET"[..], name.as_bytes(), value].map(<[u8]>::to_vec).to_vec();
            let get = [b"CONFIG", &b"GET"[..], name.as_bytes()].map(<[u8]>::to_vec).to_vec();
            [set(value.as_bytes()), get, set(&before)]
        });
        let replies = connection.pipeline(&commands.collect::<Vec<_>>())?;
        for (value, replies) in VALUES.iter().zip(replies.chunks_exact(3)) {
            let [said, shown] = [&replies[0], &replies[1]].map(ToString::to_string);
            // A default that differs is no difference between values.
            let shown = if said.starts_with('-') { String::new() } else { shown };
            outcomes.insert(((*name).clone(), (*value).to_owned()), [said, shown]);
        }
    }
    Ok(outcomes)
}

fn names(connection: &mut Conn) -> anyhow::Result<Vec<String>> {
    let all = connection.call(&["CONFIG", "GET", "*"])?;
    let names = all.items().unwrap_or_default().chunks(2).filter_map(|pair| pair[0].bytes());
    Ok(names.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
}

#[test]
fn parameters_take_and_refuse_the_values_that_redis_takes_and_refuses() {
    let ours = Server::under_test(&[]).unwrap();
    let theirs = Server::start(ServerKind::Redis70, &[]).unwrap();
    let (mut ours, mut theirs) = (ours.connect().unwrap(), theirs.connect().unwrap());
    let ours_known = names(&mut ours).unwrap();
    let theirs_known = names(&mut theirs).unwrap();
    let compared: Vec<&String> = theirs_known
        .iter()
        .filter(|name| ours_known.contains(name) && OTHER.iter().all(|(other, _)| other != name))
        .collect();
    assert!(compared.len() > 150, "only {} parameters are compared", compared.len());
    let missing: Vec<&String> = theirs_known.iter().filter(|name| !ours_known.contains(name)).collect();
    assert!(missing.is_empty(), "unknown here: {missing:?}");
    let (ours, theirs) = (outcomes(&mut ours, &compared).unwrap(), outcomes(&mut theirs, &compared).unwrap());
    let differences: Vec<String> = ours
        .iter()
        .filter(|(case, said)| theirs.get(*case) != Some(said))
        .map(|(case, said)| format!("{case:?}: {said:?}, there {:?}", theirs.get(case)))
        .collect();
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
}
