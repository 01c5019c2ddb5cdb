//! The native guest in a child process of this program: whatever hostile code does to the engine, to memory or to the clock ends the
//! child and nothing else. The engine's own bounds are the guest's; here stand those that it cannot keep itself.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use packferry_core::closure;
use packferry_core::digest::GraphDigest;
use packferry_guest::{Graph, GuestError, GuestErrorKind, Limits, Run, module_names};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::child::{self, ChildLimits};
use crate::fault::Fault;

/// The only argument of a child that runs a guest.
const ARGUMENT: &str = "__probe";

/// Exit code of a child that could not be asked or heard.
const FAULT: u8 = 2;

/// The guest stops itself after 5 s; the rest is for starting, linking and the engine's builtins. Results are at most 4 MiB of
/// JSON, which their own JSON may lengthen.
const LIMITS: ChildLimits = ChildLimits {
    seconds: 12,
    output_bytes: 32 << 20,
};

/// Bytes of address space of the child: heap, stacks, a WASM memory of 256 MiB, and the stack reserved for parsing a script.
#[cfg(unix)]
const ADDRESS_SPACE_BYTES: u64 = 3 << 30;

/// Processor seconds of the child, should its parent be gone.
#[cfg(unix)]
const PROCESSOR_SECONDS: u64 = 30;

/// What a child is asked.
#[derive(Serialize, Deserialize)]
#[serde(tag = "question", rename_all = "lowercase")]
enum Question {
    /// Which names a bundle exports.
    Names { source: String },
    /// What a script returns.
    Run { code: String, closures: Vec<Closure> },
}

/// A graph with its bodies, framed.
#[derive(Serialize, Deserialize)]
struct Closure {
    graph: GraphDigest,
    base64: String,
}

/// What a child answers.
#[derive(Debug, Serialize, Deserialize)]
struct Answer {
    result: Result<Value, Failure>,
    output: Vec<String>,
    output_dropped: u64,
}

/// A [`GuestError`], less what only the child knows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Whether it is the environment's fault rather than the code's.
    pub fault: bool,
    /// Whether the same code fails so every time: not where the clock or a process that broke down ended it.
    pub settled: bool,
    /// What happened.
    pub message: String,
    /// The guest's stack, one frame a line; empty where there is none.
    pub stack: String,
    /// The pack that is to blame, where one is known.
    pub pack: Option<String>,
}

impl From<GuestError> for Failure {
    fn from(error: GuestError) -> Self {
        Self {
            fault: error.kind == GuestErrorKind::Fault,
            settled: !matches!(error.kind, GuestErrorKind::Fault | GuestErrorKind::Deadline),
            message: error.message,
            stack: error.stack,
            pack: error.pack,
        }
    }
}

impl Failure {
    fn of_process(message: &str) -> Self {
        Self {
            fault: false,
            settled: false,
            message: message.to_owned(),
            stack: String::new(),
            pack: None,
        }
    }
}

/// What a script gave.
#[derive(Debug)]
pub struct ScriptOutcome {
    /// What it returned.
    pub result: Result<Value, Failure>,
    /// The lines that it wrote.
    pub output: Vec<String>,
    /// Lines that it wrote beyond the bound.
    pub output_dropped: u64,
}

/// Runs guests.
#[derive(Debug, Clone)]
pub struct GuestProcess {
    program: PathBuf,
}

impl GuestProcess {
    /// Guests in children of `program`, the `packferry` executable.
    #[must_use]
    pub fn new(program: &Path) -> Self {
        Self {
            program: program.to_owned(),
        }
    }

    /// The names that the bundle `source` exports when it is evaluated.
    ///
    /// # Errors
    /// A fault where the child cannot be run.
    pub fn names(&self, source: &str) -> Result<Result<Vec<String>, Failure>, Fault> {
        let source = source.to_owned();
        let answer = self.ask(&Question::Names { source })?;
        let names = answer.result.map(|names| match names {
            Value::Array(names) => names.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            _ => Vec::new(),
        });
        Ok(names)
    }

    /// What `code` returns, with the modules of `graphs` declared.
    ///
    /// # Errors
    /// A fault where the child cannot be run.
    pub fn run(&self, code: &str, graphs: &[Graph]) -> Result<ScriptOutcome, Fault> {
        let frame = |graph: &Graph| {
            let frame = closure::encode(graph.record(), graph.bodies().iter().map(|body| &**body));
            let frame = frame.ok_or_else(|| fault(&"a graph is too large"))?;
            Ok(Closure {
                graph: graph.record().digest(),
                base64: BASE64_STANDARD.encode(frame),
            })
        };
        let closures = graphs.iter().map(frame).collect::<Result<_, Fault>>()?;
        let answer = self.ask(&Question::Run {
            code: code.to_owned(),
            closures,
        })?;
        Ok(ScriptOutcome {
            result: answer.result,
            output: answer.output,
            output_dropped: answer.output_dropped,
        })
    }

    fn ask(&self, question: &Question) -> Result<Answer, Fault> {
        let question = serde_json::to_vec(question).map_err(|error| fault(&error))?;
        let mut command = Command::new(&self.program);
        let ended = child::run(command.arg(ARGUMENT), &question, LIMITS).map_err(|error| fault(&error))?;
        let failed = |message: &str| Answer {
            result: Err(Failure::of_process(message)),
            output: Vec::new(),
            output_dropped: 0,
        };
        match ended.status {
            None => Ok(failed("the code did not let itself be stopped")),
            Some(status) if status.success() => serde_json::from_slice(&ended.stdout).map_err(|error| fault(&error)),
            Some(status) if status.code() == Some(i32::from(FAULT)) => {
                Err(fault(&String::from_utf8_lossy(&ended.stderr).trim_end()))
            }
            Some(_) => Ok(failed("the sandbox broke down")),
        }
    }
}

fn fault(error: &dyn std::fmt::Display) -> Fault {
    Fault::new(format!("the guest cannot be run: {error}"))
}

/// Answers as the child, where this process is one: `main` calls it before anything else.
#[must_use]
pub fn answer_if_asked() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != ARGUMENT || arguments.next().is_some() {
        return None;
    }
    Some(match answer() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(FAULT)
        }
    })
}

fn answer() -> io::Result<()> {
    bound_process()?;
    let mut question = Vec::new();
    io::stdin().read_to_end(&mut question)?;
    let answer = match serde_json::from_slice(&question)? {
        Question::Names { source } => Answer {
            result: module_names(&source, Limits::default())
                .map(Value::from)
                .map_err(Failure::from),
            output: Vec::new(),
            output_dropped: 0,
        },
        Question::Run { code, closures } => {
            let graphs = closures.iter().map(graph).collect::<Result<_, _>>();
            let outcome = Run::new(graphs.map_err(io::Error::other)?).evaluate_with_output(&code);
            Answer {
                result: outcome.result.map_err(Failure::from),
                output: outcome.output,
                output_dropped: outcome.output_dropped,
            }
        }
    };
    io::stdout().write_all(&serde_json::to_vec(&answer)?)
}

fn graph(closure: &Closure) -> Result<Graph, Box<dyn std::error::Error + Send + Sync>> {
    let frame = BASE64_STANDARD.decode(&closure.base64)?;
    let (record, bodies) = closure::decode(&frame, closure.graph)?;
    Ok(Graph::new(record, bodies.into_iter().map(Arc::from).collect())?)
}

/// Bounds that outlive whatever goes wrong in here. No core file is written either.
#[cfg(unix)]
fn bound_process() -> io::Result<()> {
    use crate::bounds::{Resource, bound};
    let bounds = [
        (Resource::As, ADDRESS_SPACE_BYTES),
        (Resource::Cpu, PROCESSOR_SECONDS),
        (Resource::Core, 0),
        (Resource::Fsize, 0),
    ];
    bounds
        .into_iter()
        .try_for_each(|(resource, most)| bound(resource, most))
}

/// Elsewhere the parent's bound on time and the engine's on memory must do.
#[cfg(not(unix))]
fn bound_process() -> io::Result<()> {
    Ok(())
}
