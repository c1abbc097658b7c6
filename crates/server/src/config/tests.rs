use super::rewrite::RewriteError;
use super::*;
use std::fs;
use std::path::Path;

fn load(env: &[(&str, &str)], flags: &[&str]) -> Result<Config, ConfigError> {
    let env = env.iter().map(|&(name, value)| (name.to_owned(), value.to_owned()));
    Config::load(None, env, flags.iter().map(|&flag| flag.to_owned()))
}

fn value(config: &Config, name: &str) -> String {
    String::from_utf8((find(name.as_bytes()).unwrap().get)(config)).unwrap()
}

struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("towline-config-{name}-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        Self(dir)
    }

    fn file(&self, content: &str) -> PathBuf {
        let path = self.0.join("towline.conf");
        fs::write(&path, content).unwrap();
        path
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn load_file(path: &Path) -> Result<Config, ConfigError> {
    Config::load(Some(path), [], [])
}

#[test]
fn names_are_distinct_and_every_default_can_be_set_again() {
    let mut seen = std::collections::BTreeSet::new();
    let defaults = Config::default();
    for param in PARAMS {
        assert!(seen.insert(param.name), "{}", param.name);
        assert!(param.alias.is_none_or(|alias| seen.insert(alias)), "{}", param.name);
        let mut config = Config::default();
        let default = (param.get)(&defaults);
        assert_eq!(param.set_text(&mut config, &default), Ok(()), "{}", param.name);
        assert_eq!((param.get)(&config), default, "{}", param.name);
    }
    assert!(defaults.kept.is_empty());
}

#[test]
fn flags_beat_the_environment_which_beats_the_file() {
    let dir = Dir::new("precedence");
    let file = dir.file("port 1\nhz 50\nmaxmemory 1mb\n");
    let env = [("TOWLINE_HZ", "60"), ("TOWLINE_MAXMEMORY", "2mb"), ("PORT", "9")];
    let env = env.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let config = Config::load(Some(&file), env, ["--maxmemory", "3mb"].map(String::from)).unwrap();
    assert_eq!((config.port, config.hz, config.maxmemory), (1, 60, 3 << 20));
    assert_eq!(config.file, Some(file));
}

#[test]
fn flags_take_several_words_and_equal_signs() {
    let config = load(
        &[],
        &["--bind", "127.0.0.1", "-::1", "--port=7000", "--save", "", "--slowlog-log-slower-than", "-1"],
    );
    let config = config.unwrap();
    assert_eq!(config.bind, ["127.0.0.1", "-::1"]);
    assert_eq!((config.port, config.slowlog_log_slower_than), (7000, -1));
    assert_eq!(load(&[], &["--bind", "127.0.0.1 ::1"]).unwrap().bind, ["127.0.0.1", "::1"]);
    assert_eq!(load(&[], &["7000"]).unwrap_err(), ConfigError::UnexpectedArgument("7000".into()));
}

#[test]
fn save_points_replace_the_defaults_and_add_up() {
    let dir = Dir::new("saves");
    let points = |content: &str, flags: &[&str]| {
        let file = dir.file(content);
        let flags = flags.iter().map(|&flag| flag.to_owned());
        let config = Config::load(Some(&file), [], flags).unwrap();
        config.persistence.save.iter().map(|point| (point.seconds, point.changes)).collect::<Vec<_>>()
    };
    assert_eq!(points("", &[]), [(3600, 1), (300, 100), (60, 10_000)]);
    assert_eq!(points("save 900 1\nhz 20\nsave 300 10 60 5\n", &[]), [(900, 1), (300, 10), (60, 5)]);
    assert_eq!(points("save 900 1\nsave \"\"\n", &[]), []);
    assert_eq!(points("save \"\"\nsave 5 0\n", &[]), [(5, 0)]);
    assert_eq!(points("save 900 1\n", &["--save", "7", "8"]), [(7, 8)]);
    assert_eq!(points("save 900 1\n", &["--save", ""]), []);
}

#[test]
fn errors_say_where_and_what() {
    let dir = Dir::new("errors");
    let error = |content: &str| {
        let text = load_file(&dir.file(content)).unwrap_err().to_string();
        text.rsplit_once('/').unwrap().1.to_owned()
    };
    assert_eq!(
        error("\n# c\nmaxmemry 1gb\n"),
        "towline.conf:3: unknown parameter 'maxmemry'; did you mean 'maxmemory'?"
    );
    assert_eq!(error("frobnicate yes"), "towline.conf:1: unknown parameter 'frobnicate'");
    assert_eq!(
        error("port 70000"),
        "towline.conf:1: invalid value for 'port': argument must be between 0 and 65535 inclusive"
    );
    assert_eq!(error("port"), "towline.conf:1: invalid value for 'port': wrong number of arguments");
    assert_eq!(error("dir \"/tmp"), "towline.conf:1: unbalanced quotes");
    assert_eq!(error("save 60"), "towline.conf:1: invalid value for 'save': Invalid save parameters");
    assert_eq!(
        error("appenddirname a/b"),
        "towline.conf:1: invalid value for 'appenddirname': appenddirname can't be a path, just a name"
    );
    assert_eq!(
        error("user default on"),
        "towline.conf:1: 'user' is not supported: ACL users are not there yet"
    );
    let missing = dir.0.join("missing.conf");
    assert!(load_file(&missing).unwrap_err().to_string().contains("cannot read the file: No such file"));
    assert_eq!(
        load(&[("TOWLINE_PORTS", "1")], &[]).unwrap_err().to_string(),
        "environment variable TOWLINE_PORTS: unknown parameter 'ports'; did you mean 'port'?"
    );
    assert_eq!(load(&[], &["--prot", "1"]).unwrap_err().to_string(), "--prot: unknown parameter 'prot'");
}

#[test]
fn variables_that_kubernetes_makes_for_a_service_are_ignored() {
    let env = [
        ("TOWLINE_PORT", "tcp://10.0.0.1:6379"),
        ("TOWLINE_SERVICE_HOST", "10.0.0.1"),
        ("TOWLINE_PORT_6379_TCP", "x"),
    ];
    assert_eq!(load(&env, &[]).unwrap().port, 6379);
}

#[test]
fn parameters_that_do_not_go_together_are_refused() {
    assert!(load(&[], &["--port", "0"]).unwrap_err().to_string().starts_with("nothing to listen on"));
    assert!(load(&[], &["--tls-port", "1"]).unwrap_err().to_string().contains("tls-cert-file"));
}

#[test]
fn files_include_others_but_no_cycle() {
    let dir = Dir::new("include");
    let other = dir.0.join("other.conf");
    fs::write(&other, "hz 20\n").unwrap();
    assert_eq!(load_file(&dir.file(&format!("include {}\n", other.display()))).unwrap().hz, 20);
    let cycle = dir.0.join("towline.conf");
    let error = load_file(&dir.file(&format!("include {}\n", cycle.display()))).unwrap_err();
    assert!(matches!(error, ConfigError::IncludedTooDeep { .. }));
}

#[test]
fn words_are_quoted_and_unquoted() {
    let split = |line: &str| {
        split_words(line.as_bytes())
            .map(|words| words.into_iter().map(|word| String::from_utf8(word).unwrap()).collect::<Vec<_>>())
    };
    assert_eq!(split(r#"a "b c\x41\n" 'd\'e' """#).unwrap(), ["a", "b cA\n", "d'e", ""]);
    assert_eq!(split(r#""a"b"#), None);
    assert_eq!(split("'a"), None);
    for word in ["", "plain", "two words", "quo\"te\\", "\n\r\t\u{1}", "#x"] {
        assert_eq!(split(&text::quote(word.as_bytes())).unwrap(), [word]);
    }
}

#[test]
fn sizes_have_units() {
    for (text, bytes) in [
        ("10", 10),
        ("1k", 1000),
        ("1KB", 1024),
        ("2mb", 2 << 20),
        ("1g", 1_000_000_000),
        ("0", 0),
        ("", 0),
        ("kb", 0),
    ] {
        assert_eq!(text::size(text.as_bytes()), Some(bytes), "{text}");
    }
    for text in ["-1", "1 kb", "1tb", "99999999999gb", "1.5gb"] {
        assert_eq!(text::size(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn output_limits_are_set_class_by_class() {
    let config = load(
        &[],
        &[
            "--client-output-buffer-limit",
            "replica 1mb 2kb 3",
            "--client-output-buffer-limit",
            "pubsub",
            "1",
            "2",
            "3",
        ],
    );
    assert_eq!(
        value(&config.unwrap(), "client-output-buffer-limit"),
        "normal 0 0 0 slave 1048576 2048 3 pubsub 1 2 3"
    );
}

#[test]
fn a_rewrite_keeps_comments_and_order_and_adds_what_is_new() {
    let dir = Dir::new("rewrite");
    let file = dir.file("# head\nport 1\n\n# hash\nhash-max-ziplist-entries 5\nclient-output-buffer-limit pubsub 1 2 3\nhz 10\ninclude x\n");
    let mut config = Config { file: Some(file.clone()), port: 1, hz: 10, maxmemory: 99, ..Config::default() };
    config.encoding.hash_max_listpack_entries = 7;
    config.requirepass = b"a b".to_vec();
    rewrite(&config).unwrap();
    let expected = "# head\nport 1\n\n# hash\nhash-max-listpack-entries 7\nclient-output-buffer-limit normal 0 0 0\nhz 10\ninclude x\n\
        # Generated by CONFIG REWRITE\nrequirepass \"a b\"\nclient-output-buffer-limit slave 268435456 67108864 60\n\
        client-output-buffer-limit pubsub 33554432 8388608 60\nmaxmemory 99\n";
    assert_eq!(fs::read_to_string(&file).unwrap(), expected);
    rewrite(&config).unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), expected, "a second rewrite changes nothing");
    assert_eq!(fs::read_dir(&dir.0).unwrap().count(), 1, "nothing is left behind");
    assert!(matches!(rewrite(&Config::default()), Err(RewriteError::NoFile)));
}

#[test]
fn what_has_no_effect_is_noted() {
    let config = load(&[], &["--io-threads", "4", "--activerehashing", "yes"]).unwrap();
    let notes = config.notes();
    assert_eq!(notes.len(), 1);
    assert!(notes[0].starts_with("'io-threads' is accepted without effect: each worker"), "{notes:?}");
    assert_eq!(value(&config, "lua-time-limit"), "5000");
}
