//! Every parser of documents that storage or a mirror may hold. The first byte says which; what is taken encodes to the same
//! bytes.

#![no_main]

use libfuzzer_sys::fuzz_target;
use packferry_core::channel::Envelope;
use packferry_core::closure;
use packferry_core::digest::GraphDigest;
use packferry_core::manifest::{Root, parse_packs};
use packferry_core::payload::GraphPayload;
use packferry_core::policy::Policy;
use packferry_core::record::GraphRecord;
use packferry_core::trust::TrustedKeys;

/// The digest of the payload that a record's text holds, so that the parser gets past its first check.
fn digest_within(text: &str) -> GraphDigest {
    let payload = text
        .split_once("\"payload\":")
        .and_then(|(_, rest)| rest.split_once(",\"files\":"))
        .map_or("", |(payload, _)| payload);
    // The string as it stands, its escapes undone: what JSON's quotation adds.
    GraphDigest::of(payload.trim_matches('"').replace("\\\"", "\"").replace("\\\\", "\\").as_bytes())
}

fuzz_target!(|data: &[u8]| {
    let Some((which, bytes)) = data.split_first() else { return };
    if which % 8 == 0 {
        let digest = digest_within(&String::from_utf8_lossy(bytes));
        if let Ok((record, bodies)) = closure::decode(bytes, digest) {
            assert_eq!(closure::encode(&record, bodies).as_deref(), Some(bytes));
        }
        return;
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match which % 8 {
        1 => drop(Root::parse(text)),
        2 => drop(parse_packs(text)),
        3 => drop(Envelope::parse(text, "stable")),
        4 => drop(Policy::parse(text)),
        5 => drop(TrustedKeys::parse(text)),
        6 => {
            if let Ok(payload) = GraphPayload::parse(text) {
                assert_eq!(payload.to_json(), text);
            }
        }
        _ => {
            if let Ok(record) = GraphRecord::parse(text, digest_within(text)) {
                assert_eq!(record.to_json(), text);
            }
        }
    }
});
