use clap::{CommandFactory as _, FromArgMatches as _, Parser};

use super::*;

#[derive(Debug, Parser)]
struct Probe {
    #[command(flatten)]
    arguments: CliArgs,
}

fn settings_in(words: &[&str], environment: Environment) -> Result<Settings, String> {
    let command = Probe::command().disable_help_flag(true);
    let matches = command
        .try_get_matches_from(std::iter::once("cli").chain(words.iter().copied()))
        .map_err(|error| error.to_string())?;
    let probe = Probe::from_arg_matches(&matches).map_err(|error| error.to_string())?;
    probe.arguments.resolve(environment, || Ok(b"asked".to_vec())).map_err(|error| error.to_string())
}

fn settings(words: &[&str]) -> Settings {
    settings_in(words, Environment::default()).unwrap()
}

fn refusal(words: &[&str]) -> String {
    settings_in(words, Environment::default()).unwrap_err()
}

#[test]
fn the_command_begins_at_the_first_other_word() {
    let parsed = settings(&["-h", "db1", "-p", "7", "-n", "3", "SET", "k", "-p", "--raw", "-1"]);
    assert_eq!(parsed.target, Target::Tcp { host: "db1".into(), port: 7 });
    assert_eq!(parsed.db, 3);
    let words = ["SET", "k", "-p", "--raw", "-1"].map(|word| word.as_bytes().to_vec());
    assert_eq!(parsed.mode, Mode::Command(words.into()));
    assert_eq!(parsed.style, None);
    assert_eq!(settings(&[]).mode, Mode::Lines);
    assert_eq!(settings(&["-3", "-n", "1", "-3", "-n", "2"]).db, 2);
}

#[test]
fn passwords_come_from_options_then_uri_then_environment() {
    let env = || Environment { password: Some("env".into()) };
    let password = |words: &[&str]| settings_in(words, env()).unwrap().credentials.unwrap().password;
    assert_eq!(password(&[]), b"env");
    assert_eq!(password(&["-a", "flag"]), b"flag");
    assert_eq!(password(&["--pass", "flag", "-u", "redis://:uri@h"]), b"flag");
    assert_eq!(password(&["-u", "redis://:uri@h"]), b"uri");
    assert_eq!(password(&["-a", "flag", "--askpass"]), b"asked");
    let named = settings_in(&["--user", "ann"], env()).unwrap().credentials.unwrap();
    assert_eq!(named.user.as_deref(), Some(&b"ann"[..]));
    assert_eq!(format!("{named:?}"), "Credentials(..)");
    assert!(settings(&["--user", "ann"]).credentials.is_none());
}

#[test]
fn json_speaks_resp3_unless_forbidden() {
    assert_eq!(settings(&["--json"]).protocol, Protocol::Resp3IfPossible);
    assert_eq!(settings(&["--json", "-2"]).protocol, Protocol::Resp2);
    assert_eq!(settings(&["--json", "-3"]).protocol, Protocol::Resp3);
    assert_eq!(settings(&["--csv"]).protocol, Protocol::Resp2);
}

#[test]
fn modes_take_their_options() {
    let scan = settings(&["--scan", "--pattern", "a*", "--count", "5", "--type", "hash"]).mode;
    let options =
        ScanOptions { pattern: Some(b"a*".to_vec()), count: Some(5), key_type: Some("hash".to_owned()) };
    assert_eq!(scan, Mode::Scan(options));
    let quoted = settings(&["--scan", "--quoted-pattern", r#""\x00*""#]).mode;
    assert_eq!(quoted, Mode::Scan(ScanOptions { pattern: Some(b"\0*".to_vec()), ..Default::default() }));
    assert_eq!(settings(&["--pipe"]).mode, Mode::Pipe(Some(Duration::from_secs(30))));
    assert_eq!(settings(&["--pipe", "--pipe-timeout", "0"]).mode, Mode::Pipe(None));
    assert_eq!(settings(&["-r", "-1", "-i", "0.25", "PING"]).repeat, Some(-1));
    assert_eq!(settings(&["-i", "0.25"]).interval, Some(Duration::from_millis(250)));
    assert_eq!(
        settings(&["--quoted-input", "GET", r#""\x00""#]).mode,
        Mode::Command(vec![b"GET".into(), vec![0]])
    );
}

#[test]
fn contradictions_and_foreign_options_are_refused() {
    for (words, expected) in [
        (&["--raw", "--csv"][..], "cannot be used with"),
        (&["--scan", "--stat"], "cannot be used with"),
        (&["--scan", "GET", "k"], "cannot be used with"),
        (&["-2", "-3"], "cannot be used with"),
        (&["-i", "-1", "PING"], "-1"),
        (&["-i", "x"], "not a number"),
        (&["--eval", "f.lua"], "--eval is not supported"),
        (&["--cluster", "info", "h:1"], "--cluster is not supported"),
        (&["--tls-ciphers", "X"], "not supported"),
        (&["--tls", "--cacert", "/nonexistent"], "--cacert '/nonexistent'"),
        (&["-u", "rediss://h", "--cacert", "/nonexistent"], "--cacert '/nonexistent'"),
        (&["--tls", "--insecure", "-s", "/path"], "--tls is for TCP"),
        (&["--tls", "--insecure", "--cert", "x"], "--cert and --key go together"),
        (&["-u", "http://h"], "invalid URI scheme"),
        (&["--quoted-input", "GET", "\"x"], "not one word"),
        (&["--show-pushes", "maybe"], "invalid value"),
        (&["--bogus"], "unexpected argument"),
    ] {
        let text = refusal(words);
        assert!(text.contains(expected), "{words:?}: {text}");
    }
}
