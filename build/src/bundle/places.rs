//! From an offset in a bundle to the library's file and line: the file by the module comment above, the line by the source map. A
//! library's own source map stands between them: then the file is read for the line.

use std::fs::File;
use std::io::Read;

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use oxc_sourcemap::{SourceMap, Token};
use packferry_core::limits::PACK_LIMITS;

use super::Made;
use super::origin::{Origins, file_of_key};
use super::reasons::Stop;
use crate::bundle_paths::Rewritten;
use crate::judge::Judge;
use crate::library_lines::Wanted;

/// Bytes of a library's file that is read for a line: parsing takes no more memory than that of the longest bundle.
const FILE_BYTES: u64 = PACK_LIMITS.npm_bytes;

/// Describes places in one bundle. The source map is read when the first place is asked for.
pub(super) struct Places<'a> {
    made: &'a Made,
    bundle: &'a Rewritten,
    judge: &'a Judge,
    origins: &'a mut Origins,
    map: Option<SourceMap<'static>>,
}

impl<'a> Places<'a> {
    pub(super) fn new(made: &'a Made, bundle: &'a Rewritten, judge: &'a Judge, origins: &'a mut Origins) -> Self {
        Self {
            made,
            bundle,
            judge,
            origins,
            map: None,
        }
    }

    /// Whether what stands at an offset is a library's, not the bundler's.
    pub(super) fn is_in_library(&self, offset: usize) -> bool {
        let mut modules = self.bundle.modules.first().into_iter();
        modules.any(|(start, _)| *start <= offset)
    }

    /// `‹package›@‹version›/‹path›:‹line›`. Where a library brings a source map of its own, the line is where its file has `wanted`
    /// first, and the map's line is told, too: `‹package›@‹version›/‹path›:‹line›, from ‹source›:‹line›`.
    pub(super) fn describe(&mut self, offset: usize, wanted: Option<&Wanted>) -> Result<String, Stop> {
        let next = self.bundle.modules.partition_point(|(start, _)| *start <= offset);
        let module = next.checked_sub(1).and_then(|index| self.bundle.modules.get(index));
        let Some((_, module)) = module else {
            return Ok("the bundler's own code".to_owned());
        };
        let original = self.original(offset)?;
        if let Some((source, line)) = &original
            && self.origins.label(source.as_str()) == *module
        {
            return Ok(format!("{module}:{line}"));
        }
        let mut place = module.clone();
        if let Some(wanted) = wanted {
            let mut keys = self.made.metafile.inputs.keys();
            let key = keys.find(|key| self.origins.label(key) == *module);
            let line = key
                .map(|key| line_in_library(key, wanted.clone(), self.judge))
                .transpose()?;
            place.extend(line.flatten().map(|line| format!(":{line}")));
        }
        if let Some((source, line)) = original {
            let root = self.origins.package_of(&source).root;
            let source = source
                .strip_prefix(&root)
                .ok()
                .or(source.file_name().map(Utf8Path::new));
            place.extend(source.map(|source| format!(", from {source}:{line}")));
        }
        Ok(place)
    }

    /// The source and the line that the map gives for an offset.
    fn original(&mut self, offset: usize) -> Result<Option<(Utf8PathBuf, u32)>, Stop> {
        if self.map.is_none() {
            let text = self.made.output.source_map()?.unwrap_or_default();
            let parsed = SourceMap::from_json_string(&text).map(SourceMap::into_owned);
            self.map = Some(parsed.unwrap_or_default());
        }
        let Some(map) = &self.map else { return Ok(None) };
        let (line, column) = line_and_column(&self.bundle.source, offset);
        let token = map.lookup_token(&map.generate_lookup_table(), line, column);
        let source = |token: Token| Some((map.get_source(token.get_source_id()?)?, token.get_src_line()));
        let Some((source, line)) = token.and_then(source) else {
            return Ok(None);
        };
        let Some(folder) = Utf8Path::from_path(self.made.output.folder()) else {
            return Ok(None);
        };
        Ok(Some((joined(folder, source), line + 1)))
    }
}

/// The line of the file behind a key of the metafile that has `wanted` first; None where it cannot be told.
pub(super) fn line_in_library(key: &str, wanted: Wanted, judge: &Judge) -> Result<Option<u32>, Stop> {
    let mut source = String::new();
    let read = file_of_key(key).and_then(|(file, _)| {
        let file = File::open(file).ok()?;
        let length = file.take(FILE_BYTES + 1).read_to_string(&mut source).ok()?;
        (length as u64 <= FILE_BYTES).then_some(())
    });
    match read {
        Some(_) => Ok(judge.line(source, wanted)?),
        None => Ok(None),
    }
}

/// Line and UTF-16 column of an offset, both from 0.
fn line_and_column(source: &str, offset: usize) -> (u32, u32) {
    let before = source.get(..offset).unwrap_or(source);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = before.matches('\n').count();
    let column = before.get(line_start..).unwrap_or_default().encode_utf16().count();
    (
        u32::try_from(line).unwrap_or(u32::MAX),
        u32::try_from(column).unwrap_or(u32::MAX),
    )
}

/// `path` as seen from `folder`, without `.` and `..`, by its text.
pub(super) fn joined(folder: &Utf8Path, path: &str) -> Utf8PathBuf {
    let mut result = Utf8PathBuf::new();
    for component in folder.join(path).components() {
        match component {
            Utf8Component::CurDir => {}
            Utf8Component::ParentDir => {
                result.pop();
            }
            other => result.push(other),
        }
    }
    result
}
