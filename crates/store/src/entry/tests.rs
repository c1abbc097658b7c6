use super::*;
use proptest::prelude::*;

fn text(entry: &Entry) -> Vec<u8> {
    entry.as_str().unwrap().to_vec()
}

#[test]
fn a_hundred_bytes_under_a_key_of_sixteen_take_one_block_of_128() {
    assert_eq!(Entry::string(&[b'k'; 16], &[b'v'; 100], None).mem_bytes(), 128);
}

#[test]
fn encodings_have_redis_names() {
    for (value, name) in [
        (&b"12"[..], "int"),
        (b"-9223372036854775808", "int"),
        (b"012", "embstr"),
        (b"", "embstr"),
        (&[b'x'; 44], "embstr"),
        (&[b'x'; 45], "raw"),
        (&[b'x'; 20_000], "raw"),
    ] {
        assert_eq!(Entry::string(b"k", value, None).encoding(), name);
    }
    let mut appended = Entry::string(b"k", b"12", None);
    appended.change_string(|value| value.push(b'3'));
    assert_eq!((text(&appended), appended.encoding()), (b"123".to_vec(), "raw"));
    assert!(appended.set_string(b"ab"));
    assert_eq!(appended.encoding(), "embstr");
}

#[test]
fn a_shared_value_that_is_being_sent_is_copied_before_it_changes() {
    let mut entry = Entry::string(b"k", &[1; 20_000], None);
    let Some(Str::Shared(sent)) = entry.as_str() else { panic!("not shared") };
    let sent = sent.clone();
    entry.string_bytes_mut().unwrap()[0] = 2;
    assert_eq!((sent[0], text(&entry)[0]), (1, 2));
}

proptest! {
    #[test]
    fn strings_survive_every_change(ops in prop::collection::vec((0u8..6, prop::collection::vec(any::<u8>(), 0..300), any::<i64>()), 1..60)) {
        let mut entry = Entry::string(b"the key", b"", None);
        let (mut model, mut expiry) = (Vec::new(), None);
        for (op, value, number) in ops {
            match op {
                0 => { entry.set_string(&value); model = value; }
                1 => { entry.set_int(number); model = number.to_string().into_bytes(); }
                2 => { entry.change_string(|text| text.extend_from_slice(&value)); model.extend(&value); }
                3 => { expiry = (number % 2 == 0).then_some(number as u64); entry.set_expires_at_ms(expiry); }
                4 => if let Some(last) = entry.string_bytes_mut().unwrap().last_mut() { *last = 7; *model.last_mut().unwrap() = 7; },
                _ => { let at = entry.expires_at_ms(); entry = Entry::value(b"the key", entry.into_value(), at); }
            }
            entry.set_access(0xff_1234);
            prop_assert_eq!(text(&entry), model.clone());
            prop_assert_eq!((entry.key(), entry.expires_at_ms(), entry.access()), (&b"the key"[..], expiry, 0xff_1234));
        }
    }
}
