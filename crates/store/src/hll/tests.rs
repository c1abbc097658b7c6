use proptest::prelude::*;

use super::*;

/// The CRC-32 of zip files: stands for the bytes of a value in the tables below.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| crc >> 1 ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 })
    })
}

fn add_series(value: &mut Vec<u8>, prefix: &str, range: std::ops::Range<u32>) {
    for number in range {
        let element = format!("{prefix}{number}");
        add(value, [element.as_bytes()], SPARSE_BYTES_MAX_DEFAULT).expect("a valid value");
    }
}

/// Prefix of the elements, how many were added one by one, then what Redis 7.0.15 answered: length and CRC-32 of the
/// string, and `PFCOUNT` (which writes the cache and so is part of the next row's bytes).
#[rustfmt::skip]
const SERIES: &[(&str, u32, usize, u32, u64)] = &[
    ("e", 1, 21, 0x9424_155a, 1), ("e", 2, 24, 0xbb20_1b1c, 2), ("e", 3, 27, 0x913b_7e2b, 3),
    ("e", 10, 48, 0x46e3_c6d9, 10), ("e", 50, 157, 0x5e5b_0bb9, 50), ("e", 100, 285, 0xac66_89cb, 100),
    ("e", 333, 769, 0x9056_07a4, 334), ("e", 500, 1068, 0xd0fb_0293, 506), ("e", 900, 1729, 0x62c3_3799, 906),
    ("e", 1000, 1906, 0x3c8f_85d7, 1008), ("e", 1500, 2719, 0x2343_a710, 1509), ("e", 1700, 12304, 0x5024_c76d, 1700),
    ("e", 2000, 12304, 0x3680_cc3b, 2000), ("e", 3000, 12304, 0x66b9_c065, 2979),
    ("e", 10000, 12304, 0x4463_e897, 9973), ("e", 20000, 12304, 0xf4ce_ae57, 19901),
    ("user:", 1, 21, 0x3ab9_058d, 1), ("user:", 2, 24, 0xaf4e_bfed, 2), ("user:", 3, 27, 0xa727_84c4, 3),
    ("user:", 10, 46, 0xd415_0bd0, 10), ("user:", 50, 153, 0x5774_ac08, 50), ("user:", 100, 283, 0x5f52_00ad, 100),
    ("user:", 333, 748, 0x5a0f_c02c, 332), ("user:", 500, 1042, 0xeab4_e969, 499),
    ("user:", 900, 1736, 0xb704_2e43, 905), ("user:", 1000, 1910, 0x62a8_4374, 1007),
    ("user:", 1500, 2742, 0x2519_f572, 1516), ("user:", 1700, 12304, 0xbee6_f2af, 1714),
    ("user:", 2000, 12304, 0x164c_7fe2, 2008), ("user:", 3000, 12304, 0xbd77_fe38, 2996),
    ("", 1, 21, 0xb679_a116, 1), ("", 2, 24, 0x322e_e816, 2), ("", 3, 27, 0x2b77_07b7, 3),
    ("", 10, 48, 0x52f4_5c3c, 10), ("", 50, 160, 0x0daf_c544, 50), ("", 100, 287, 0x5230_734b, 100),
    ("", 333, 757, 0x896a_9f7c, 334), ("", 500, 1061, 0x2774_4c2d, 503), ("", 900, 1750, 0xe131_cfb2, 902),
    ("", 1000, 1923, 0x3ece_442e, 1001),
];

#[test]
fn values_equal_those_of_the_real_server_byte_for_byte() {
    let (mut value, mut added) = (empty(), 0);
    for &(prefix, total, len, crc, estimate) in SERIES {
        if total == 1 {
            (value, added) = (empty(), 0);
        }
        add_series(&mut value, prefix, added..total);
        added = total;
        assert_eq!((value.len(), crc32(&value)), (len, crc), "{prefix}{total}");
        assert_eq!(count(&value), Ok(estimate), "{prefix}{total}");
        assert_eq!(count_union([value.as_slice()]), Ok(estimate), "{prefix}{total}");
        cache_count(&mut value, estimate).expect("a valid value");
        assert_eq!(cached_count(&value), Ok(Some(estimate)));
    }
}

#[test]
fn small_values_equal_those_of_the_real_server() {
    assert_eq!(empty(), b"HYLL\x01\0\0\0\0\0\0\0\0\0\0\x80\x7f\xff");
    let mut value = empty();
    assert_eq!(add(&mut value, [b"x".as_slice()], 3000), Ok(true));
    assert_eq!(value, b"HYLL\x01\0\0\0\0\0\0\0\0\0\0\x80\x7f\xf5\x84\x08");
    assert_eq!(add(&mut value, [b"x".as_slice()], 3000), Ok(false));
    assert_eq!(cached_count(&value), Ok(None));
    cache_count(&mut value, 1).expect("a valid value");
    assert_eq!(value, b"HYLL\x01\0\0\0\x01\0\0\0\0\0\0\0\x7f\xf5\x84\x08");
    assert_eq!(count(&empty()), Ok(0));
}

/// Lengths, CRC-32 and counts seen on Redis 7.0.15 after `PFMERGE`.
#[test]
fn merges_equal_those_of_the_real_server() {
    let [mut first, mut second, mut third] = [empty(), empty(), empty()];
    add_series(&mut first, "a", 0..300);
    add_series(&mut second, "b", 0..500);
    add_series(&mut third, "c", 0..5000);
    assert_eq!((first.len(), crc32(&first)), (689, 0x9a69_130c));
    let merged = |target: &[u8], sources: &[&[u8]]| {
        let mut target = target.to_vec();
        merge(&mut target, sources.iter().copied(), SPARSE_BYTES_MAX_DEFAULT).expect("valid values");
        target
    };
    let facts =
        |value: &[u8]| (value.len(), crc32(value), count_union([first.as_slice(), value]).expect("valid"));
    let both = merged(&empty(), &[&first, &second]);
    assert_eq!(facts(&both), (1556, 0xfbb9_a258, 802));
    assert_eq!(facts(&merged(&empty(), &[&first, &third])), (12304, 0x8164_7bf1, 5289));
    assert_eq!(facts(&merged(&both, &[&third])), (12304, 0x97e5_042d, 5796));
    assert_eq!(facts(&merged(&empty(), &[&second, &second])), (1052, 0x61c7_e897, 802));
    assert_eq!(merged(&empty(), &[]), empty());
}

#[test]
fn bad_headers_are_told_from_damaged_registers() {
    let header =
        |encoding: u8, rest: &[u8]| [b"HYLL", [encoding].as_slice(), &[0; 10], &[STALE], rest].concat();
    for value in
        [b"".to_vec(), b"HYLL".to_vec(), b"HYLX\x01".repeat(8), header(2, b""), header(0, &[0; 12287])]
    {
        assert_eq!(check(&value), Err(HllError::NotHll));
        assert_eq!(count(&value), Err(HllError::NotHll));
        assert_eq!(merge(&mut empty(), [value.as_slice()], 3000), Err(HllError::NotHll));
    }
    for runs in [b"".as_slice(), b"\x7f", b"\x7f\xff\x00", b"\x7f\xff\x7f", b"\x00"] {
        let value = header(1, runs);
        assert_eq!(count(&value), Err(HllError::Corrupted), "{runs:?}");
        assert_eq!(count_union([value.as_slice()]), Err(HllError::Corrupted));
        assert_eq!(merge(&mut value.clone(), [], 3000), Err(HllError::Corrupted));
    }
    assert_eq!(add(&mut header(1, b"\x00"), [b"x".as_slice()], 3000), Err(HllError::Corrupted));
    // Enough runs for the register but too many in total: Redis notices only when it has to read all of them.
    assert_eq!(add(&mut header(1, b"\x7f\xff\x00"), [b"q".as_slice()], 3000), Ok(true));
}

#[test]
fn a_run_that_the_sparse_form_cannot_hold_makes_the_value_dense() {
    let mut value = empty();
    assert_eq!(raise(&mut value, 5, 33, 3000), Ok(true));
    assert_eq!(value.len(), DENSE_BYTES);
    assert_eq!(raise(&mut value, 5, 33, 3000), Ok(false));
}

proptest! {
    #[test]
    fn any_bytes_give_an_error_or_a_number(
        encoding in 0_u8..3,
        rest in proptest::collection::vec(prop_oneof![any::<u8>(), 0x40_u8..=0x7f, Just(0xff)], 0..600),
        elements in proptest::collection::vec(any::<u16>(), 0..20),
    ) {
        let mut value = [b"HYLL", [encoding].as_slice(), &rest].concat();
        let elements: Vec<_> = elements.iter().map(|element| element.to_le_bytes()).collect();
        let _ = count(&value);
        let _ = cached_count(&value);
        let _ = merge(&mut empty(), [value.as_slice()], 100);
        let _ = add(&mut value, elements.iter().map(<[u8; 2]>::as_slice), 100);
        let _ = merge(&mut value, [], 100);
    }

    #[test]
    fn sparse_and_dense_hold_the_same_registers(
        elements in proptest::collection::vec(any::<u16>(), 0..400),
        bytes_max in 20_usize..1500,
    ) {
        let elements: Vec<_> = elements.iter().map(|element| element.to_le_bytes()).collect();
        let (mut sparse, mut dense) = (empty(), empty());
        add(&mut sparse, elements.iter().map(<[u8; 2]>::as_slice), bytes_max).expect("valid");
        add(&mut dense, elements.iter().map(<[u8; 2]>::as_slice), 0).expect("valid");
        let [mut left, mut right] = [[0; REGISTER_COUNT]; 2];
        merge_registers(&sparse, &mut left).expect("valid");
        merge_registers(&dense, &mut right).expect("valid");
        prop_assert!(left == right);
        prop_assert_eq!(count(&sparse), count(&dense));
    }
}

#[test]
fn inspection_agrees_with_the_registers() {
    let mut value = empty();
    assert_eq!((encoding_name(&value), runs_text(&value)), (Ok("sparse"), Ok(Some("Z:16384".to_owned()))));
    add(&mut value, [b"a".as_slice(), b"b"], SPARSE_BYTES_MAX_DEFAULT).unwrap();
    let before = registers(&value).unwrap();
    assert_eq!(before.iter().filter(|register| **register != 0).count(), 2);
    assert_eq!((to_dense(&mut value), to_dense(&mut value)), (Ok(true), Ok(false)));
    assert_eq!((encoding_name(&value), runs_text(&value)), (Ok("dense"), Ok(None)));
    assert_eq!(registers(&value).unwrap(), before);
    assert_eq!(registers(b"no"), Err(HllError::NotHll));
}
