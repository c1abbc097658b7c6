//! What modules reply, where that has a form of its own.
//!
//! Owns the results of searches and aggregations, samples of time series, and the argument that a vector is. Does not
//! own the commands themselves ([`make`](super::make)). Each type takes the replies of both protocols.
//!
//! Sources: the pages of `FT.SEARCH`, `FT.AGGREGATE`, `TS.RANGE` and `VADD` at
//! <https://redis.io/docs/latest/commands/>.

use bytes::Bytes;
use std::collections::HashMap;
use towline_resp::frame::Frame;

use crate::args::{Args, ToArgs};
use crate::value::{Found, FromReply, ReplyError};

/// What `FT.SEARCH` found.
///
/// Over RESP2 an element says by its place alone what it is. A reply to `WITHPAYLOADS` or `WITHSORTKEYS` is an error
/// there; one to `NOCONTENT` with `WITHSCORES` looks like ids alone: ask for a [`Frame`], or use RESP3.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct SearchResults {
    /// How many documents the query matches; more than are here if `LIMIT` or its default of ten cut them off.
    pub total: u64,
    /// The documents of this part, in the order of the reply.
    pub documents: Vec<Document>,
    /// What the server wants to be known, such as that its time was over. Only over RESP3.
    pub warnings: Vec<String>,
}

/// One document that was found.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Document {
    /// Its key.
    pub id: Bytes,
    /// How well it matches; with `WITHSCORES`.
    pub score: Option<f64>,
    /// Its fields, or the JSON text under `$`; empty with `NOCONTENT`. A value is null for a field that is not there, and
    /// with some versions something other than a string: [`field`](Self::field) reads it.
    pub fields: Vec<(Bytes, Frame)>,
}

impl Document {
    /// A field's value as a `T`; `None` if the reply does not have the field.
    ///
    /// # Errors
    /// [`ReplyError::Shape`]: it is no `T`.
    pub fn field<T: FromReply>(&self, name: &str) -> Result<Option<T>, ReplyError> {
        let found = self.fields.iter().find(|(known, _)| known == name.as_bytes());
        found.map(|(_, value)| T::from_reply(value.clone())).transpose()
    }
}

/// What `FT.AGGREGATE` and `FT.CURSOR READ` computed.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Aggregated {
    /// What the server says about the number of results; without a `LIMIT` it is not exact.
    pub total: u64,
    /// A row for each group or document.
    pub rows: Vec<HashMap<Bytes, Frame>>,
    /// What the server wants to be known. Only over RESP3.
    pub warnings: Vec<String>,
}

/// A sample of a time series. No sample, which `TS.GET` answers for an empty series, is `None` of an `Option`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// Milliseconds of Unix time.
    pub timestamp: i64,
    /// The value.
    pub value: f64,
}

/// A vector of 32-bit numbers, as `VADD`, `VSIM` and fields of vectors in an index take it: `FP32` and the bytes.
///
/// ```
/// use towline_client::commands::{Fp32, make};
///
/// let add = make::vectors::vadd("words", Fp32(&[0.1, 0.7]), "apple");
/// assert_eq!(add.args().nth(3).map(<[u8]>::len), Some(8));
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fp32<'a>(pub &'a [f32]);

impl Fp32<'_> {
    /// The bytes alone, four for each number, for a field of a hash.
    pub fn to_bytes(self) -> Vec<u8> {
        self.0.iter().flat_map(|number| number.to_le_bytes()).collect()
    }
}

impl ToArgs for Fp32<'_> {
    fn write_args(&self, args: &mut Args) {
        args.push(b"FP32");
        args.push(&self.to_bytes());
    }
}

impl FromReply for Sample {
    fn from_reply(frame: Frame) -> Result<Self, ReplyError> {
        <(i64, f64)>::from_reply(frame).map(|(timestamp, value)| Self { timestamp, value })
    }

    fn is_absent(frame: &Frame) -> bool {
        frame.is_null() || matches!(frame, Frame::Array(elements) if elements.is_empty())
    }
}

impl FromReply for SearchResults {
    fn from_reply(frame: Frame) -> Result<Self, ReplyError> {
        match frame.without_attributes() {
            Frame::Array(elements) => flat_results(elements),
            frame => {
                let Named { total, results, warnings } = Named::from_reply(frame)?;
                let documents = results.into_iter().map(document).collect::<Result<_, _>>()?;
                Ok(Self { total, documents, warnings })
            }
        }
    }
}

impl FromReply for Aggregated {
    fn from_reply(frame: Frame) -> Result<Self, ReplyError> {
        match frame.without_attributes() {
            Frame::Array(elements) => {
                let mut elements = elements.into_iter();
                let total = total(elements.next())?;
                let rows = elements.map(HashMap::from_reply).collect::<Result<_, _>>()?;
                Ok(Self { total, rows, warnings: Vec::new() })
            }
            frame => {
                let Named { total, results, warnings } = Named::from_reply(frame)?;
                let row = |mut row: Row| HashMap::from_reply(row.remove("extra_attributes"));
                Ok(Self { total, rows: results.into_iter().map(row).collect::<Result<_, _>>()?, warnings })
            }
        }
    }
}

/// A result by the names of its parts.
struct Row(HashMap<String, Frame>);

impl Row {
    fn remove(&mut self, name: &str) -> Frame {
        self.0.remove(name).unwrap_or(Frame::Null)
    }
}

/// What both commands reply over RESP3.
struct Named {
    total: u64,
    results: Vec<Row>,
    warnings: Vec<String>,
}

impl FromReply for Named {
    fn from_reply(frame: Frame) -> Result<Self, ReplyError> {
        let Frame::Map(_) = &frame else {
            return Err(ReplyError::unexpected("the results of a search", &frame));
        };
        let mut parts = Row(HashMap::from_reply(frame)?);
        let results: Vec<HashMap<String, Frame>> = Vec::from_reply(parts.remove("results"))?;
        Ok(Self {
            total: total(Some(parts.remove("total_results")))?,
            results: results.into_iter().map(Row).collect(),
            warnings: Vec::from_reply(parts.remove("warning"))?,
        })
    }
}

fn total(frame: Option<Frame>) -> Result<u64, ReplyError> {
    u64::from_reply(frame.unwrap_or(Frame::Null))
}

fn document(mut row: Row) -> Result<Document, ReplyError> {
    Ok(Document {
        id: Bytes::from_reply(row.remove("id"))?,
        score: Option::from_reply(row.remove("score"))?,
        fields: Vec::from_reply(row.remove("extra_attributes"))?,
    })
}

/// RESP2: the total; for each document its id, its score if asked for, and its fields as an array.
fn flat_results(elements: Vec<Frame>) -> Result<SearchResults, ReplyError> {
    let has_content = elements.iter().any(|element| matches!(element, Frame::Array(_)));
    let mut elements = elements.into_iter();
    let total = total(elements.next())?;
    let (mut documents, mut open) = (Vec::new(), None::<Document>);
    for element in elements {
        match (element, &mut open) {
            (Frame::Array(fields), Some(_)) => {
                let fields = Vec::from_reply(Frame::Array(fields))?;
                documents.extend(open.take().map(|document| Document { fields, ..document }));
            }
            // A document that was deleted after it was found.
            (Frame::Null | Frame::NullArray, Some(_)) => documents.extend(open.take()),
            (element, None) => {
                let document = Document { id: Bytes::from_reply(element)?, ..Document::default() };
                if has_content {
                    open = Some(document);
                } else {
                    documents.push(document);
                }
            }
            (element, Some(document)) if document.score.is_none() => {
                document.score = Some(f64::from_reply(element)?);
            }
            (element, Some(_)) => {
                let expected =
                    "the fields of a document: ask for a `Frame` with WITHPAYLOADS or WITHSORTKEYS";
                return Err(ReplyError::unexpected(expected, &element));
            }
        }
    }
    match open {
        None => Ok(SearchResults { total, documents, warnings: Vec::new() }),
        Some(_) => Err(ReplyError::shape("fields for each document", Found::Elements(documents.len()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Frame {
        Frame::Bulk(text.to_owned().into())
    }

    fn list(words: &[&str]) -> Frame {
        Frame::Array(words.iter().map(|word| bulk(word)).collect())
    }

    fn map(pairs: &[(&str, Frame)]) -> Frame {
        Frame::Map(pairs.iter().map(|(name, value)| (bulk(name), value.clone())).collect())
    }

    /// The shapes that the documentation shows for RESP2 and RESP3.
    #[test]
    fn a_search_is_the_same_in_both_protocols() {
        let flat = Frame::Array(vec![
            Frame::Integer(2),
            bulk("doc:1"),
            list(&["title", "One", "year", "1999"]),
            bulk("doc:2"),
            list(&["title", "Two"]),
        ]);
        let result = |id, fields: &[(&str, Frame)]| {
            map(&[("id", bulk(id)), ("extra_attributes", map(fields)), ("values", Frame::Array(Vec::new()))])
        };
        let named = map(&[
            ("attributes", Frame::Array(Vec::new())),
            ("total_results", Frame::Integer(2)),
            ("format", bulk("STRING")),
            (
                "results",
                Frame::Array(vec![
                    result("doc:1", &[("title", bulk("One")), ("year", bulk("1999"))]),
                    result("doc:2", &[("title", bulk("Two"))]),
                ]),
            ),
            ("warning", Frame::Array(Vec::new())),
        ]);
        let found = SearchResults::from_reply(flat).unwrap();
        assert_eq!(found, SearchResults::from_reply(named).unwrap());
        assert_eq!((found.total, found.documents.len()), (2, 2));
        assert_eq!(found.documents[0].id, "doc:1");
        assert_eq!(found.documents[0].field::<u16>("year").unwrap(), Some(1999));
        assert_eq!(found.documents[1].field::<u16>("year").unwrap(), None);
        assert!(found.documents[0].field::<u16>("title").is_err());
    }

    #[test]
    fn scores_missing_content_and_deleted_documents_are_read() {
        let scored = Frame::Array(vec![Frame::Integer(9), bulk("a"), bulk("0.5"), list(&["f", "v"])]);
        let found = SearchResults::from_reply(scored).unwrap();
        assert_eq!((found.total, found.documents[0].score), (9, Some(0.5)));
        let scored = map(&[
            ("total_results", Frame::Integer(1)),
            ("results", Frame::Array(vec![map(&[("id", bulk("a")), ("score", Frame::Double(0.5))])])),
        ]);
        let found = SearchResults::from_reply(scored).unwrap();
        assert_eq!((found.documents[0].score, found.documents[0].fields.len()), (Some(0.5), 0));
        let ids = Frame::Array(vec![Frame::Integer(2), bulk("a"), bulk("b")]);
        assert_eq!(SearchResults::from_reply(ids).unwrap().documents[1].id, "b");
        let deleted =
            Frame::Array(vec![Frame::Integer(2), bulk("a"), Frame::Null, bulk("b"), list(&["f", "v"])]);
        assert_eq!(SearchResults::from_reply(deleted).unwrap().documents.len(), 2);
        assert_eq!(
            SearchResults::from_reply(Frame::Array(vec![Frame::Integer(0)])).unwrap(),
            SearchResults::default()
        );
    }

    #[test]
    fn other_replies_are_errors() {
        let payloads =
            Frame::Array(vec![Frame::Integer(1), bulk("a"), bulk("0.5"), bulk("p"), list(&["f", "v"])]);
        let cut = Frame::Array(vec![Frame::Integer(1), bulk("a"), list(&["f", "v"]), bulk("b")]);
        for frame in
            [payloads, cut, Frame::Array(Vec::new()), Frame::Null, bulk("OK"), Frame::Map(Vec::new())]
        {
            assert!(SearchResults::from_reply(frame).is_err());
        }
        let error = SearchResults::from_reply(Frame::Error("ERR no such index".into())).unwrap_err();
        assert_eq!(error.server_error().unwrap().code(), "ERR");
    }

    #[test]
    fn aggregations_are_rows_in_both_protocols_and_with_a_cursor() {
        let flat = Frame::Array(vec![Frame::Integer(1), list(&["city", "Ulm", "count", "3"])]);
        let named = map(&[
            ("total_results", Frame::Integer(1)),
            (
                "results",
                Frame::Array(vec![map(&[(
                    "extra_attributes",
                    map(&[("city", bulk("Ulm")), ("count", bulk("3"))]),
                )])]),
            ),
            ("warning", list(&["Timeout limit was reached"])),
        ]);
        let found = Aggregated::from_reply(flat.clone()).unwrap();
        let with_warning = Aggregated::from_reply(named).unwrap();
        assert_eq!((found.total, &found.rows), (1, &with_warning.rows));
        assert_eq!(with_warning.warnings, ["Timeout limit was reached"]);
        let page = Frame::Array(vec![flat, Frame::Integer(42)]);
        assert_eq!(<(Aggregated, i64)>::from_reply(page).unwrap(), (found, 42));
    }

    #[test]
    fn samples_are_pairs_and_no_sample_is_none() {
        let sample = |value| Frame::Array(vec![Frame::Integer(1000), value]);
        let expected = Sample { timestamp: 1000, value: 1.5 };
        for value in [Frame::Simple("1.5".into()), Frame::Double(1.5)] {
            assert_eq!(Option::<Sample>::from_reply(sample(value.clone())).unwrap(), Some(expected));
            assert_eq!(Vec::<Sample>::from_reply(Frame::Array(vec![sample(value)])).unwrap(), [expected]);
        }
        assert_eq!(Option::<Sample>::from_reply(Frame::Array(Vec::new())).unwrap(), None);
        assert!(Vec::<Sample>::from_reply(Frame::Array(Vec::new())).unwrap().is_empty());
    }
}
