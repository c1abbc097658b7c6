use super::*;

fn parse_all(mut buf: &[u8], limits: &RequestLimits) -> (Vec<Vec<Vec<u8>>>, Option<RequestError>) {
    let (mut parser, mut args, mut commands) = (RequestParser::new(), Vec::new(), Vec::new());
    loop {
        let first = args.len();
        let (consumed, owned) = match parser.parse(buf, limits, &mut args) {
            Ok(Progress::Complete { consumed } | Progress::Empty { consumed }) => (consumed, Vec::new()),
            Ok(Progress::Inline { consumed, owned }) => (consumed, owned),
            Ok(Progress::Incomplete | Progress::Big { .. }) => {
                assert_eq!(args.len(), first);
                return (commands, None);
            }
            Err(error) => {
                assert_eq!(args.len(), first);
                return (commands, Some(error));
            }
        };
        if args.len() > first {
            commands.push(args[first..].iter().map(|arg| arg.bytes(buf, &owned).to_vec()).collect());
        }
        buf = &buf[consumed..];
    }
}

#[test]
fn a_parser_is_small() {
    assert!(size_of::<RequestParser>() <= 32);
    assert_eq!(size_of::<ArgRange>(), 8);
}

#[test]
fn the_room_that_an_argument_needs_is_known_and_bounded() {
    let (mut parser, mut args, limits) = (RequestParser::new(), Vec::new(), RequestLimits::default());
    let head = b"*2\r\n$3\r\nSET\r\n$100\r\n";
    assert_eq!(parser.bytes_missing(0), 0);
    assert_eq!(parser.parse(head, &limits, &mut args), Ok(Progress::Incomplete));
    assert_eq!(parser.bytes_missing(head.len()), 102);
    let mut parser = RequestParser::new();
    let head = b"*1\r\n$500000000\r\n";
    let big = Progress::Big { start: head.len(), len: 500_000_000 };
    assert_eq!(parser.parse(head, &limits, &mut args), Ok(big));
    assert_eq!(parser.bytes_missing(head.len()), 0);
}

#[test]
fn a_pipeline_is_cut_into_its_commands() {
    let stream =
        b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n\r\n*0\r\n*-1\r\nPING\r\n*1\r\n$0\r\n\r\nset k \"a\\x00b\"\n";
    let (commands, error) = parse_all(stream, &RequestLimits::default());
    assert_eq!(error, None);
    let expected: [&[&[u8]]; 4] = [&[b"GET", b"k"], &[b"PING"], &[b""], &[b"set", b"k", b"a\0b"]];
    assert_eq!(commands, expected);
}
