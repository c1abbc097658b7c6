//! The frame decoder: any split of any stream gives the same frames and the same error, and an encoded frame decodes to
//! itself.
#![no_main]

use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;
use towline_resp::Proto;
use towline_resp::frame::{Decoder, Frame, FrameError, FrameLimits};

/// Small, so that the bounds are met.
const LIMITS: FrameLimits =
    FrameLimits { bulk_bytes_max: 4096, line_bytes_max: 1024, elements_max: 4096, depth_max: 16 };

fn decode(stream: &[u8], piece: usize) -> (Vec<Frame>, Option<FrameError>) {
    let (mut decoder, mut buf, mut frames) = (Decoder::new(LIMITS), BytesMut::new(), Vec::new());
    for chunk in stream.chunks(piece.max(1)) {
        buf.extend_from_slice(chunk);
        loop {
            match decoder.decode(&mut buf) {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(error) => return (frames, Some(error)),
            }
        }
    }
    (frames, None)
}

fuzz_target!(|data: &[u8]| {
    let [piece, stream @ ..] = data else { return };
    let whole = decode(stream, usize::MAX);
    // Texts are compared, because NaN is not equal to itself.
    assert_eq!(format!("{:?}", decode(stream, usize::from(*piece))), format!("{whole:?}"));

    for frame in &whole.0 {
        let bytes = frame.encode(Proto::Resp3);
        let (again, error) = decode(&bytes, usize::MAX);
        assert_eq!(error, None);
        assert_eq!(again.len(), 1);
        assert_eq!(again[0].encode(Proto::Resp3), bytes);
        let (again, error) = decode(&frame.encode(Proto::Resp2), usize::MAX);
        assert_eq!((again.len(), error), (1, None));
    }
});
