//! Reads bundles in a child process of this program: a parser's stack that overflows on a hostile bundle ends the child, and costs
//! nothing but that bundle.

use std::collections::HashMap;
use std::fmt::Display;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::thread;

use packferry_core::limits::PACK_LIMITS;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::bundle_paths::{Rewritten, rewrite_paths};
use crate::child::{self, ChildLimits};
use crate::commonjs_names::commonjs_names;
use crate::fault::Fault;
use crate::library_lines::{Wanted, line_of};
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
enum Question {
    Judge {
        source: String,
        labels: HashMap<String, String>,
    },
    CommonjsNames {
        source: String,
        key: String,
    },
    Line {
        source: String,
        wanted: Wanted,
    },
}

/// What a child says.
enum Answer<T> {
    Given(T),
    /// It has none; why, as the end of a sentence.
    Missing(&'static str),
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
    /// The process that read it broke down or took too long; which, as the end of a sentence.
    Missing(String),
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
        Ok(match self.ask(&Question::Judge { source, labels })? {
            Answer::Given(judgement) => judgement,
            Answer::Missing(why) => Judgement::Missing(why.to_owned()),
        })
    }

    /// The names that the CommonJS module behind `key` gives; None where the process that read the bundle broke down or took too long.
    ///
    /// # Errors
    ///
    /// A fault where the child cannot be run.
    pub fn commonjs_names(&self, source: String, key: String) -> Result<Option<Vec<String>>, Fault> {
        Ok(match self.ask(&Question::CommonjsNames { source, key })? {
            Answer::Given(names) => Some(names),
            Answer::Missing(_) => None,
        })
    }

    /// The line, from 1, where a library's own file has `wanted` first; None where it has it nowhere or cannot be read.
    ///
    /// # Errors
    ///
    /// A fault where the child cannot be run.
    pub fn line(&self, source: String, wanted: Wanted) -> Result<Option<u32>, Fault> {
        Ok(match self.ask(&Question::Line { source, wanted })? {
            Answer::Given(line) => line,
            Answer::Missing(_) => None,
        })
    }

    fn ask<T: DeserializeOwned>(&self, question: &Question) -> Result<Answer<T>, Fault> {
        let fault = |error: &dyn Display| Fault::new(format!("a bundle cannot be judged: {error}"));
        let question = serde_json::to_vec(question).map_err(|error| fault(&error))?;
        let mut command = Command::new(&self.program);
        let ended = child::run(command.arg(ARGUMENT), &question, LIMITS).map_err(|error| fault(&error))?;
        match ended.status.map(|status| status.code()) {
            None => Ok(Answer::Missing("takes too long to read")),
            Some(Some(0)) => serde_json::from_slice(&ended.stdout)
                .map(Answer::Given)
                .map_err(|error| fault(&error)),
            Some(Some(FAULT)) => Err(fault(&String::from_utf8_lossy(&ended.stderr))),
            Some(Some(PANIC)) => Ok(Answer::Missing("cannot be read")),
            Some(_) => Ok(Answer::Missing("is nested too deeply")),
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
    let answer = match serde_json::from_slice(&question)? {
        Question::Judge { source, labels } => serde_json::to_vec(&judgement(&source, &labels)),
        Question::CommonjsNames { source, key } => serde_json::to_vec(&commonjs_names(&source, &key)),
        Question::Line { source, wanted } => serde_json::to_vec(&line_of(&source, &wanted)),
    };
    io::stdout().write_all(&answer?)
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
