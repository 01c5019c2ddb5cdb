//! Takes the paths out of bundles and scans them in a child process of this program: a parser's stack that overflows on a hostile
//! bundle ends the child, and costs nothing but that bundle.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::thread;

use packferry_core::limits::PACK_LIMITS;
use serde::{Deserialize, Serialize};

use crate::bundle_paths::{Rewritten, rewrite_paths};
use crate::child::{self, ChildLimits};
use crate::fault::Fault;
use crate::scan::{Verdict, scan};

/// The only argument of a child that judges.
const ARGUMENT: &str = "judge-bundle";

/// Exit codes of a child that has no answer: it could not be asked or heard, or the parser panicked. A stack that overflows ends
/// it otherwise.
const FAULT: i32 = 2;
const PANIC: i32 = 3;

/// Bytes of the stack that bundles are parsed on: enough for ten thousand levels. The guest's parser has one megabyte and gives
/// up long before.
const STACK_BYTES: usize = 64 << 20;

/// A bundle of the limit, as JSON escapes it at its worst, and its module table.
const LIMITS: ChildLimits = ChildLimits {
    seconds: 60,
    output_bytes: 32 << 20,
};

/// What a child is asked.
#[derive(Serialize, Deserialize)]
struct Question {
    source: String,
    labels: HashMap<String, String>,
}

/// What became of a bundle.
#[derive(Debug, Serialize, Deserialize)]
pub enum Judgement {
    /// Without its paths it is longer than the limit; its length in bytes.
    TooLarge(usize),
    /// It was read.
    Read(Rewritten, Verdict),
    /// It cannot be read; why, as the end of a sentence.
    Unreadable(String),
}

/// Judges bundles.
#[derive(Debug, Clone)]
pub struct Judge {
    program: PathBuf,
}

impl Judge {
    /// A judge that starts `program`, the `packferry` executable.
    #[must_use]
    pub fn new(program: &Path) -> Self {
        Self {
            program: program.to_owned(),
        }
    }

    /// Replaces every path in `labels` by its label and scans the result.
    ///
    /// # Errors
    ///
    /// A fault where the child cannot be run.
    pub fn judge(&self, source: String, labels: HashMap<String, String>) -> Result<Judgement, Fault> {
        let fault = |error: &dyn std::fmt::Display| Fault::new(format!("a bundle cannot be judged: {error}"));
        let question = serde_json::to_vec(&Question { source, labels }).map_err(|error| fault(&error))?;
        let mut command = Command::new(&self.program);
        let ended = child::run(command.arg(ARGUMENT), &question, LIMITS).map_err(|error| fault(&error))?;
        match ended.status {
            None => Ok(Judgement::Unreadable("takes too long to read".to_owned())),
            Some(status) if status.success() => serde_json::from_slice(&ended.stdout).map_err(|error| fault(&error)),
            Some(status) if status.code().is_none() => Ok(Judgement::Unreadable("is nested too deeply".to_owned())),
            Some(status) => Err(fault(&status)),
        }
    }
}

/// Answers as the child, where this process is one: `main` calls it before anything else.
#[must_use]
pub fn answer_if_asked() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != ARGUMENT || arguments.next().is_some() {
        return None;
    }
    let answered = thread::Builder::new()
        .stack_size(STACK_BYTES)
        .spawn(answer)
        .map(thread::JoinHandle::join);
    Some(match answered {
        Ok(Ok(Ok(()))) => ExitCode::SUCCESS,
        Ok(Err(_)) => ExitCode::from(PANIC as u8),
        Ok(Ok(Err(error))) | Err(error) => {
            eprintln!("{error}");
            ExitCode::from(FAULT as u8)
        }
    })
}

fn answer() -> io::Result<()> {
    let mut question = Vec::new();
    io::stdin().read_to_end(&mut question)?;
    let Question { source, labels } = serde_json::from_slice(&question)?;
    let answer = serde_json::to_vec(&judgement(&source, &labels))?;
    io::stdout().write_all(&answer)
}

fn judgement(source: &str, labels: &HashMap<String, String>) -> Judgement {
    let Ok(rewritten) = rewrite_paths(source, labels) else {
        let what = "is not a JavaScript module".to_owned();
        return Judgement::Unreadable(what);
    };
    if rewritten.source.len() as u64 > PACK_LIMITS.npm_bytes {
        return Judgement::TooLarge(rewritten.source.len());
    }
    let verdict = scan(&rewritten.source);
    Judgement::Read(rewritten, verdict)
}
