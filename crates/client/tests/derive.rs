//! Own types in replies and arguments: hashes as structs, words as enums.

use std::borrow::Cow;
use towline_client::{Args, Frame, FromReply, ReplyError, ToArg, ToArgs};

fn texts(value: impl ToArgs) -> Vec<String> {
    let mut args = Args::default();
    value.write_args(&mut args);
    assert_eq!(args.iter().count(), args.len());
    args.iter().map(|arg| String::from_utf8_lossy(arg).into_owned()).collect()
}

fn bulk(text: &str) -> Frame {
    Frame::Bulk(text.to_owned().into())
}

/// The three shapes in which servers send the fields of a hash.
fn shapes(words: &[&str]) -> [Frame; 3] {
    let pairs = || words.chunks(2).map(|pair| (bulk(pair[0]), bulk(pair[1])));
    [
        Frame::Map(pairs().collect()),
        Frame::Array(words.iter().map(|word| bulk(word)).collect()),
        Frame::Array(pairs().map(|(name, value)| Frame::Array(vec![name, value])).collect()),
    ]
}

fn flat(words: &[&str]) -> Frame {
    Frame::Array(words.iter().map(|word| bulk(word)).collect())
}

#[derive(Debug, Clone, Copy, PartialEq, FromReply, ToArgs)]
#[towline(rename_all = "kebab-case")]
enum Plan {
    FreeTrial,
    #[towline(rename = "gold")]
    Paid,
}

#[derive(Debug, Clone, PartialEq, Eq, FromReply, ToArgs)]
struct Id(u64);

fn unknown() -> String {
    "unknown".to_owned()
}

#[derive(Debug, PartialEq, FromReply, ToArgs)]
#[towline(rename_all = "camelCase")]
struct User {
    user_id: Id,
    #[towline(rename = "mail")]
    email_address: Option<String>,
    plan: Plan,
    #[towline(default)]
    visits: u32,
    #[towline(default = "unknown")]
    city: String,
    #[towline(skip)]
    is_cached: bool,
    r#type: String,
}

fn user() -> User {
    User {
        user_id: Id(7),
        email_address: None,
        plan: Plan::FreeTrial,
        visits: 0,
        city: unknown(),
        is_cached: false,
        r#type: "person".into(),
    }
}

#[test]
fn a_hash_is_a_struct_whatever_its_shape() {
    let words = [
        "userId", "7", "mail", "a@b.c", "plan", "gold", "visits", "3", "city", "Ulm", "type", "x", "more",
        "1",
    ];
    for frame in shapes(&words) {
        let found = User::from_reply(frame).unwrap();
        let expected = User {
            email_address: Some("a@b.c".into()),
            plan: Plan::Paid,
            visits: 3,
            city: "Ulm".into(),
            r#type: "x".into(),
            ..user()
        };
        assert_eq!(found, expected);
    }
    for frame in shapes(&["plan", "free-trial", "type", "person", "userId", "7"]) {
        assert_eq!(User::from_reply(frame).unwrap(), user());
    }
}

#[test]
fn a_struct_is_the_fields_that_it_has() {
    let mut written = user();
    written.is_cached = true;
    assert_eq!(
        texts(&written),
        ["userId", "7", "plan", "free-trial", "visits", "0", "city", "unknown", "type", "person"]
    );
    written.email_address = Some(String::new());
    assert_eq!(texts(&written)[2..4], ["mail", ""]);
    assert_eq!(
        User::from_reply(flat(&texts(&written).iter().map(String::as_str).collect::<Vec<_>>()))
            .unwrap()
            .email_address,
        Some(String::new())
    );
}

#[test]
fn what_a_missing_key_answers_is_none() {
    for frame in [Frame::Map(Vec::new()), Frame::Array(Vec::new()), Frame::Null] {
        assert_eq!(Option::<User>::from_reply(frame.clone()).unwrap(), None);
        assert!(Option::<Box<User>>::from_reply(frame.clone()).unwrap().is_none());
        let error = User::from_reply(frame).unwrap_err().to_string();
        assert_eq!(
            error,
            "the reply.userId is absent, expected an integer from 0 to 18446744073709551615; an `Option` takes null"
        );
    }
    // An empty list is a list.
    assert_eq!(Option::<Vec<u8>>::from_reply(Frame::Array(Vec::new())).unwrap(), Some(Vec::new()));
}

#[test]
fn errors_name_the_place() {
    let mut words = vec!["userId", "seven", "plan", "gold", "type", "x"];
    let error = Vec::<User>::from_reply(Frame::Array(vec![flat(&words)])).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the reply[0].userId is a text of 5 bytes that is not an integer from 0 to 18446744073709551615"
    );
    words[1] = "7";
    words[3] = "silver";
    let error = User::from_reply(flat(&words)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the reply.plan is a text of 6 bytes that is not one of `free-trial`, `gold`"
    );
    let refused = Frame::Array(vec![bulk("type"), Frame::Error("ERR no".into())]);
    assert!(matches!(User::from_reply(refused), Err(ReplyError::Field { .. } | ReplyError::Server(_))));
    let error = User::from_reply(Frame::Error("WRONGTYPE no".into())).unwrap_err();
    assert_eq!(error.server_error().unwrap().code(), "WRONGTYPE");
    assert!(Plan::from_reply(Frame::Null).is_err());
    assert_eq!(Option::<Plan>::from_reply(Frame::Null).unwrap(), None);
}

#[derive(Debug, PartialEq, FromReply, ToArgs)]
struct Pair<T>(String, T);

#[derive(Debug, PartialEq, FromReply, ToArgs)]
struct Pairs<T>(Vec<Pair<T>>);

#[derive(ToArgs)]
struct Borrowed<'a, T: ?Sized> {
    name: &'a str,
    value: &'a T,
    long: Cow<'a, str>,
}

#[derive(Debug, PartialEq, FromReply, ToArgs)]
struct Generic<T, U: Clone = u8>
where
    U: PartialEq,
{
    first: T,
    second: Option<U>,
}

#[test]
fn tuples_newtypes_and_generic_types_are_derived_too() {
    let pair = Pair::<i64>::from_reply(flat(&["a", "1"])).unwrap();
    assert_eq!(pair, Pair("a".into(), 1));
    assert_eq!(texts(pair), ["a", "1"]);
    let error = Pair::<i64>::from_reply(flat(&["a", "b"])).unwrap_err().to_string();
    assert_eq!(error, "the reply[1] is a text of 1 bytes that is not an integer");
    let error = Pair::<i64>::from_reply(flat(&["a"])).unwrap_err().to_string();
    assert_eq!(error, "the reply has 1 elements, expected an array with an element for each field");
    let nested = Frame::Array(vec![flat(&["a", "1"]), flat(&["b", "2"])]);
    let pairs = Pairs::<u8>::from_reply(nested).unwrap();
    assert_eq!(texts(pairs), ["a", "1", "b", "2"]);
    assert_eq!(
        texts(Borrowed { name: "n", value: "v", long: "l".into() }),
        ["name", "n", "value", "v", "long", "l"]
    );
    let generic = Generic::<Id>::from_reply(flat(&["first", "5"])).unwrap();
    assert_eq!(generic, Generic { first: Id(5), second: None });
    assert_eq!(texts(generic), ["first", "5"]);
}

#[test]
fn newtypes_and_words_are_one_argument() {
    fn is_one<T: ToArg>(_: T) {}
    is_one(Id(1));
    is_one(Plan::Paid);
    is_one(Some(&Plan::Paid));
}

mod elsewhere {
    pub(super) use towline_client as renamed;
}

#[derive(Debug, PartialEq, FromReply, ToArgs)]
#[towline(crate = "elsewhere::renamed", rename_all = "UPPERCASE")]
struct Renamed {
    value: i8,
}

#[test]
fn the_crate_may_have_another_name() {
    assert_eq!(texts(Renamed { value: -1 }), ["VALUE", "-1"]);
    assert_eq!(Renamed::from_reply(flat(&["VALUE", "-1"])).unwrap(), Renamed { value: -1 });
}
