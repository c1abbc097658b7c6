//! Numbers' texts, as observed on Redis 8.2 and Valkey 9.1 (`ZADD` then `ZSCORE`; `SET` then `INCRBYFLOAT`).

use proptest::prelude::*;
use towline_resp::double::{format_double, format_long_double};
use towline_resp::long_double::LongDouble;

#[test]
fn doubles_have_redis_texts() {
    let cases = [
        (3.0, "3"),
        (0.1, "0.1"),
        (0.3, "0.3"),
        (-0.0, "-0"),
        (0.0, "0"),
        (-3.5, "-3.5"),
        (1e15, "1000000000000000"),
        (1e18, "1000000000000000000"),
        (123456789012345680.0, "123456789012345680"),
        (4611686018427387904.0, "4611686018427387904"),
        (9223372036854775808.0, "9223372036854776000"),
        (1e19, "1e+19"),
        (1e20, "1e+20"),
        (1.23e20, "1.23e+20"),
        (123456789012345680000.0, "123456789012345680000"),
        (12345678901234567000000.0, "12345678901234568000000"),
        (1e21, "1e+21"),
        // Not the shortest digits: Grisu2 does not use the interval's limits.
        (-1.25e22, "-12499999999999999000000"),
        (1e100, "1e+100"),
        (1.5e300, "1.5e+300"),
        (f64::MAX, "1.7976931348623157e+308"),
        (0.0001, "0.0001"),
        (0.00001, "0.00001"),
        (0.000002, "0.000002"),
        (1e-7, "1e-7"),
        (-1e-7, "-1e-7"),
        (1.234e-5, "1.234e-5"),
        (1.23456789e-5, "1.23456789e-5"),
        (0.000123, "0.000123"),
        (1.5e-10, "1.5e-10"),
        (5e-324, "5e-324"),
        (f64::MIN_POSITIVE, "2.2250738585072014e-308"),
        (12345678.9, "12345678.9"),
        (123_456_789.123_456_79, "1.2345678912345679e+8"),
        (std::f64::consts::PI, "3.141592653589793"),
        (f64::INFINITY, "inf"),
        (f64::NEG_INFINITY, "-inf"),
        (f64::NAN, "nan"),
    ];
    for (value, text) in cases {
        assert_eq!(format_double(value).as_str(), text);
        assert_eq!(format_double(value).as_ref(), text.as_bytes());
    }
}

#[test]
fn increments_have_redis_texts() {
    let cases = [
        ("10.5", "0.1", Some("10.6")),
        ("5.0e3", "200", Some("5200")),
        ("0", "12345678.9", Some("12345678.8999999999996362")),
        ("0", "123456789.123456789", Some("123456789.12345678899873747")),
        ("0", "1.23456789012345678901", Some("1.23456789012345679")),
        ("0", "1e-17", Some("0.00000000000000001")),
        ("0", "5.0e-18", Some("0")),
        ("0", "5e-324", Some("0")),
        ("0", "-0.0", Some("0")),
        ("0", "-1e-7", Some("-0.0000001")),
        ("0", "1e22", Some("10000000000000000000000")),
        ("0", "12345678901234567000000", Some("12345678901234567000064")),
        (
            "0",
            "1e100",
            Some(
                "9999999999999999999669353532207342619498699019828496079271391541752018669482644324418977840117055488",
            ),
        ),
        (
            "4686958969350492589",
            "-4411771516204661099069584830401198036494",
            Some("-4411771516204661098958630503826658951168"),
        ),
        ("18446744073709551615", "1", Some("18446744073709551616")),
        ("1", "-1", Some("0")),
        ("-5.", ".5", Some("-4.5")),
        ("-352339786.5", "+6.7904021024880703347E-4484", Some("-352339786.5")),
        ("inf", "1", Some("inf")),
        ("inf", "-inf", Some("nan")),
        ("nan", "1", None),
        ("", "1", None),
        ("1x", "1", None),
        (" 1", "1", None),
        ("1e", "1", None),
        (".", "1", None),
        ("1.2.3", "1", None),
        ("--1", "1", None),
        ("1e99999", "1", None),
        ("1e-99999", "1", None),
        ("0e99999", "1", Some("1")),
        ("1.18973149535723176509e4932", "1", None),
    ];
    for (value, increment, expected) in cases {
        let sum = LongDouble::parse(value.as_bytes())
            .zip(LongDouble::parse(increment.as_bytes()))
            .map(|(value, increment)| value + increment);
        assert_eq!(sum.map(|sum| sum.to_string()).as_deref(), expected, "{value} + {increment}");
        assert_eq!(sum.is_some_and(LongDouble::is_finite), expected.is_some_and(|text| !text.contains('n')));
    }
}

#[test]
fn the_largest_long_double_is_read_and_doubles_to_infinity() {
    let largest = LongDouble::parse(b"1.18973149535723176502e4932").unwrap();
    assert!(largest.is_finite());
    assert_eq!(largest.to_string().len(), 4933);
    assert!(!(largest + largest).is_finite());
    assert_eq!(LongDouble::parse(&[b'1'; 5120]), None);
}

#[test]
fn a_double_in_plain_decimals() {
    let cases =
        [(10.6, "10.6"), (3.0, "3"), (1e21, "1000000000000000000000"), (1e-7, "0.0000001"), (1e-30, "0")];
    for (value, text) in cases {
        assert_eq!(format_long_double(value), text);
    }
    assert_eq!(format_long_double(-0.0), "0");
    assert_eq!(format_long_double(-1e-30), "0");
    assert_eq!(format_long_double(f64::INFINITY), "inf");
}

proptest! {
    #[test]
    fn a_doubles_text_reads_back_as_that_double(bits in any::<u64>()) {
        let value = f64::from_bits(bits);
        prop_assume!(!value.is_nan());
        let text = format_double(value);
        prop_assert_eq!(text.as_str().parse::<f64>().unwrap().to_bits(), bits);
        // A sign, 17 digits and seven zeros are the most: -1.0000000028615242e+23 is one that has them.
        prop_assert!(text.as_bytes().len() <= 25);
    }

    #[test]
    fn whole_numbers_add_exactly(a in any::<i64>(), b in any::<i64>()) {
        let sum = LongDouble::parse(a.to_string().as_bytes()).unwrap() + LongDouble::parse(b.to_string().as_bytes()).unwrap();
        let exact = i128::from(a) + i128::from(b);
        prop_assert_eq!(sum.to_string(), exact.to_string());
    }

    #[test]
    fn any_bytes_are_read_or_refused(text in prop::collection::vec(prop::sample::select(b"0123456789.eE+-infx".to_vec()), 0..40)) {
        if let Some(value) = LongDouble::parse(&text) {
            let shown = value.to_string();
            let again = LongDouble::parse(shown.as_bytes());
            prop_assert!(!value.is_finite() || again.is_some(), "{}", shown);
        }
    }
}
