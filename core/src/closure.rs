//! The closure body: a graph record and all files of the graph in one frame (wire contract, "Graph record").
//!
//! `PFC1`, a 32-bit little-endian length, that many bytes of the record's JSON, then the files' bytes end to end in the
//! record's order. Nothing follows.

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

/// Frames `record` and `bodies`, the bytes of its files in its order. None where a length does not fit the format.
#[must_use]
pub fn encode<'a>(record: &GraphRecord, bodies: impl IntoIterator<Item = &'a [u8]>) -> Option<Vec<u8>> {
    let json = record.to_json();
    let length = u32::try_from(json.len()).ok()?;
    let mut frame = Vec::with_capacity(8 + json.len());
    frame.extend_from_slice(MAGIC);
    frame.extend_from_slice(&length.to_le_bytes());
    frame.extend_from_slice(json.as_bytes());
    for body in bodies {
        frame.extend_from_slice(body);
    }
    Some(frame)
}

/// Splits `frame`, the closure of graph `wanted`, into its checked record and the files' bytes in the record's order. The
/// bytes are as long as the record says; their digests are left to check.
///
/// # Errors
/// [`InvalidClosure`].
pub fn decode(frame: &[u8], wanted: GraphDigest) -> Result<(GraphRecord, Vec<&[u8]>), InvalidClosure> {
    let rest = frame.strip_prefix(MAGIC).ok_or(InvalidClosure::Frame)?;
    let (length, rest) = rest.split_first_chunk::<4>().ok_or(InvalidClosure::Frame)?;
    let length = usize::try_from(u32::from_le_bytes(*length)).map_err(|_| InvalidClosure::Frame)?;
    let (json, mut rest) = rest.split_at_checked(length).ok_or(InvalidClosure::Frame)?;
    let json = std::str::from_utf8(json).map_err(|_| InvalidClosure::Frame)?;
    let record = GraphRecord::parse(json, wanted)?;
    let mut bodies = Vec::with_capacity(record.files().len());
    for file in record.files() {
        let size = usize::try_from(file.size).map_err(|_| InvalidClosure::Frame)?;
        let (body, after) = rest.split_at_checked(size).ok_or(InvalidClosure::Frame)?;
        bodies.push(body);
        rest = after;
    }
    if rest.is_empty() {
        Ok((record, bodies))
    } else {
        Err(InvalidClosure::Frame)
    }
}
