//! The closure body: a graph record and all files of the graph in one frame (wire contract, "Graph record").
//!
//! `PFC1`, a 32-bit little-endian length, that many bytes of the record's JSON, then the files' bytes end to end in the
//! record's order. Nothing follows.

use std::ops::Range;

use crate::digest::GraphDigest;
use crate::record::{GraphRecord, InvalidRecord};

/// `Content-Type` of a closure.
pub const CLOSURE_CONTENT_TYPE: &str = "application/vnd.packferry.closure";

const MAGIC: &[u8; 4] = b"PFC1";

/// Why a body is not the closure that was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidClosure {
    /// Magic, lengths or encoding are off.
    #[error("not a closure's frame")]
    Frame,
    /// The record is not that of the graph.
    #[error(transparent)]
    Record(#[from] InvalidRecord),
}

/// What stands in a frame before the record's JSON. None where its length does not fit the format.
#[must_use]
pub fn head(json: &str) -> Option<[u8; 8]> {
    let [a, b, c, d] = *MAGIC;
    let [e, f, g, h] = u32::try_from(json.len()).ok()?.to_le_bytes();
    Some([a, b, c, d, e, f, g, h])
}

/// Frames `record` and `bodies`, the bytes of its files in its order. None where a length does not fit the format.
#[must_use]
pub fn encode<'a>(record: &GraphRecord, bodies: impl IntoIterator<Item = &'a [u8]>) -> Option<Vec<u8>> {
    let json = record.to_json();
    let mut frame = head(&json)?.to_vec();
    frame.extend_from_slice(json.as_bytes());
    for body in bodies {
        frame.extend_from_slice(body);
    }
    Some(frame)
}

/// What a frame holds, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// The checked record.
    pub record: GraphRecord,
    /// Where the files' bytes stand, in the record's order. They are as long as the record says; their digests are left to
    /// check.
    pub bodies: Vec<Range<usize>>,
}

/// Finds out what a frame of `length` bytes, the closure of graph `wanted`, holds. `copy` gives the bytes of a range, fewer
/// where it reaches past the end: only those of the record are asked for.
///
/// # Errors
/// [`InvalidClosure`].
pub fn layout<B: AsRef<[u8]>>(
    length: usize,
    copy: impl Fn(Range<usize>) -> B,
    wanted: GraphDigest,
) -> Result<Layout, InvalidClosure> {
    let head = copy(0..8);
    let json_length = head.as_ref().strip_prefix(MAGIC).ok_or(InvalidClosure::Frame)?;
    let json_length = <[u8; 4]>::try_from(json_length).map_err(|_| InvalidClosure::Frame)?;
    let json_length = usize::try_from(u32::from_le_bytes(json_length)).map_err(|_| InvalidClosure::Frame)?;
    let mut at = json_length.checked_add(8).filter(|end| *end <= length);
    let json = copy(8..at.ok_or(InvalidClosure::Frame)?);
    let json = std::str::from_utf8(json.as_ref()).map_err(|_| InvalidClosure::Frame)?;
    let record = GraphRecord::parse(json, wanted)?;
    let mut bodies = Vec::with_capacity(record.files().len());
    for file in record.files() {
        let begin = at.ok_or(InvalidClosure::Frame)?;
        let end = usize::try_from(file.size).ok().and_then(|size| begin.checked_add(size));
        bodies.push(begin..end.ok_or(InvalidClosure::Frame)?);
        at = end;
    }
    if at == Some(length) {
        Ok(Layout { record, bodies })
    } else {
        Err(InvalidClosure::Frame)
    }
}

/// Splits `frame`, the closure of graph `wanted`, into its checked record and the files' bytes in the record's order. The
/// bytes are as long as the record says; their digests are left to check.
///
/// # Errors
/// [`InvalidClosure`].
pub fn decode(frame: &[u8], wanted: GraphDigest) -> Result<(GraphRecord, Vec<&[u8]>), InvalidClosure> {
    let part = |range: Range<usize>| frame.get(range.start..range.end.min(frame.len())).unwrap_or_default();
    let layout = layout(frame.len(), part, wanted)?;
    let bodies = layout.bodies.into_iter().map(part).collect();
    Ok((layout.record, bodies))
}
