//! Random programs compared with the real servers, a modest number in every run. The binary `differential` does the
//! long runs.

use e2e::diff::{self, Settings, Topic};
use e2e::process::ServerKind;

/// Commands for each topic and peer: seconds, not minutes.
const COUNT: u64 = 3_000;

/// Fixed, so that a failure is there again tomorrow.
const SEED: u64 = 20_261_130;

fn agrees(topic: &str, peer: ServerKind) {
    let under_test = ServerKind::under_test().unwrap();
    if under_test == peer {
        return;
    }
    let summary = diff::run(&Settings {
        topic: Topic::from_name(topic).unwrap(),
        seed: SEED,
        count: COUNT,
        sides: [under_test, peer],
        findings_max: 5,
    })
    .unwrap();
    assert!(summary.findings.is_empty(), "\n{}", summary.findings.join("\n\n"));
}

macro_rules! topics {
    ($($name:ident),* $(,)?) => {$(
        mod $name {
            use super::{ServerKind, agrees};

            #[test]
            fn agrees_with_redis_70() {
                agrees(stringify!($name), ServerKind::Redis70);
            }

            #[test]
            fn agrees_with_redis_82() {
                agrees(stringify!($name), ServerKind::Redis82);
            }

            #[test]
            fn agrees_with_valkey_91() {
                agrees(stringify!($name), ServerKind::Valkey91);
            }
        }
    )*};
}

topics!(
    strings,
    bitmaps,
    lists,
    hashes,
    fieldttl,
    sets,
    zsets,
    keys,
    sort,
    hyperloglog,
    geo,
    transactions,
    server,
);
