//! Inspects files in child processes of this program: what overflows a parser's stack, or takes it too much memory or time, ends the
//! child and costs nothing but that file. A child is kept for the next file.

use std::io::{self, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use rustix::pipe::fcntl_setpipe_size;
use rustix::process::{Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};

use super::finding::{Finding, FindingKind};
use super::inspect::{inspect, text};
use super::{Inspection, STACK_BYTES};
use crate::bounds::{Resource, bound};
use crate::fault::{Fault, reason};

/// The only argument of a child that inspects.
const ARGUMENT: &str = "inspect-javascript";

/// Exit codes of a child that cannot be asked or heard, or whose parser panicked. A stack that overflows ends it otherwise.
const FAULT: u8 = 2;
const PANIC: u8 = 3;

/// Bytes that a child may have besides the stack. A file of the limit needs a third of it at its worst, unless it is made to have a
/// parser go over the same text again and again.
const MEMORY_BYTES: u64 = 112 << 20;

/// Seconds of processor time that a child may take for a file. A file of the limit takes milliseconds. Processor time, so that the
/// answer does not depend on what else the machine does.
const PROCESSOR_SECONDS: u64 = 20;

/// How long an answer may take by the clock. A child that is late without having used its processor time was not let run.
const PATIENCE: Duration = Duration::from_secs(600);

/// Bytes of a file that its pipe to the child takes at once. Linux lets every user have so many.
const PIPE_BYTES: usize = 1 << 18;

/// What came of inspecting a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspected {
    /// What was found.
    pub inspection: Inspection,
    /// Whether it is found every time: not where the child's end says what is wrong with the file.
    pub settled: bool,
}

impl Inspected {
    fn settled(inspection: Inspection) -> Self {
        Self {
            inspection,
            settled: true,
        }
    }
}

/// Inspects files that nobody trusts.
pub struct Inspector {
    program: PathBuf,
    idle: Mutex<Vec<Worker>>,
}

impl Inspector {
    /// An inspector that starts `program`, the `packferry` executable.
    #[must_use]
    pub fn new(program: &Path) -> Self {
        Self {
            program: program.to_owned(),
            idle: Mutex::default(),
        }
    }

    /// Inspects a file.
    ///
    /// # Errors
    /// A fault where a child cannot be run.
    pub fn inspect(&self, bytes: &[u8]) -> Result<Inspected, Fault> {
        if let Err(finding) = text(bytes) {
            return Ok(Inspected::settled(Inspection::of(vec![finding])));
        }
        self.ask(bytes)
            .map_err(|error| Fault::new(format!("JavaScript cannot be inspected: {}", reason(&error))))
    }

    fn ask(&self, bytes: &[u8]) -> io::Result<Inspected> {
        let idle = self.idle.lock().ok().and_then(|mut idle| idle.pop());
        let mut worker = idle.map_or_else(|| Worker::start(&self.program), Ok)?;
        let refused = match worker.ask(bytes) {
            Answer::Given(json) => {
                let inspection = serde_json::from_slice(&json)?;
                if let Ok(mut idle) = self.idle.lock() {
                    idle.push(worker);
                }
                return Ok(Inspected::settled(inspection));
            }
            Answer::Late => return Err(io::ErrorKind::TimedOut.into()),
            Answer::Ended => worker.why_ended()?,
        };
        let finding = Finding {
            kind: refused,
            span: 0..0,
        };
        Ok(Inspected {
            inspection: Inspection::of(vec![finding]),
            settled: false,
        })
    }
}

/// What comes of asking a child.
enum Answer {
    Given(Vec<u8>),
    Late,
    Ended,
}

/// A child that inspects one file after the other.
struct Worker {
    child: Child,
    questions: ChildStdin,
    answers: Receiver<Vec<u8>>,
}

impl Worker {
    fn start(program: &Path) -> io::Result<Self> {
        let mut child = Command::new(program)
            .arg(ARGUMENT)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let (Some(questions), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        // Best effort: a pipe that holds most files whole saves waking both sides for every part of one.
        fcntl_setpipe_size(&questions, PIPE_BYTES).ok();
        let (sender, receiver) = mpsc::channel();
        thread::Builder::new().spawn(move || hear(answers, &sender))?;
        Ok(Self {
            child,
            questions,
            answers: receiver,
        })
    }

    fn ask(&mut self, bytes: &[u8]) -> Answer {
        if write_frame(&mut self.questions, bytes).is_err() {
            return Answer::Ended;
        }
        match self.answers.recv_timeout(PATIENCE) {
            Ok(answer) => Answer::Given(answer),
            Err(RecvTimeoutError::Timeout) => Answer::Late,
            Err(RecvTimeoutError::Disconnected) => Answer::Ended,
        }
    }

    /// What the end of the child says about the file.
    fn why_ended(&mut self) -> io::Result<FindingKind> {
        /// Stops that no program asks for itself: `kill`, and the system where memory runs out.
        const FROM_OUTSIDE: [i32; 3] = [2, 9, 15];
        let status = self.child.wait()?;
        match (status.signal(), status.code()) {
            (Some(signal), _) if !FROM_OUTSIDE.contains(&signal) => Ok(FindingKind::NestedTooDeeply),
            (None, Some(code)) if code == i32::from(PANIC) => {
                Ok(FindingKind::Syntax("the parser fails on it".to_owned()))
            }
            _ => Err(io::Error::other(status.to_string())),
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // A child that has ended already is no error.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Hands on answers until the child ends.
fn hear(mut answers: ChildStdout, sender: &Sender<Vec<u8>>) {
    while let Ok(Some(answer)) = read_frame(&mut answers) {
        if sender.send(answer).is_err() {
            return;
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
    let memory = STACK_BYTES as u64 + MEMORY_BYTES;
    let bounded = bound(Resource::Data, memory).and_then(|()| bound(Resource::Core, 0));
    let answered = bounded.and_then(|()| {
        let thread = thread::Builder::new().stack_size(STACK_BYTES);
        thread.spawn(answer_all).map(thread::JoinHandle::join)
    });
    Some(match answered {
        Ok(Ok(Ok(()))) => ExitCode::SUCCESS,
        Ok(Err(_)) => PANIC.into(),
        Ok(Ok(Err(_))) | Err(_) => FAULT.into(),
    })
}

/// Lets this process run for [`PROCESSOR_SECONDS`] from here on; then the system ends it.
fn bound_processor_time() -> io::Result<()> {
    let used = u64::try_from(clock_gettime(ClockId::ProcessCPUTime).tv_sec).unwrap_or_default();
    let maximum = getrlimit(Resource::Cpu).maximum;
    let limit = Rlimit {
        current: Some(used + PROCESSOR_SECONDS).min(maximum.or(Some(u64::MAX))),
        maximum,
    };
    Ok(setrlimit(Resource::Cpu, limit)?)
}

fn answer_all() -> io::Result<()> {
    let (mut questions, mut answers) = (io::stdin().lock(), io::stdout().lock());
    while let Some(question) = read_frame(&mut questions)? {
        bound_processor_time()?;
        let answer = serde_json::to_vec(&inspect(&question))?;
        write_frame(&mut answers, &answer)?;
    }
    Ok(())
}

/// Length, four bytes, little endian; then as many bytes.
fn write_frame(to: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    let length = u32::try_from(bytes.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    to.write_all(&length.to_le_bytes())?;
    to.write_all(bytes)?;
    to.flush()
}

/// The next frame; None where the other side has ended.
fn read_frame(from: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut length = [0; 4];
    match from.read_exact(&mut length) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let mut bytes = Vec::new();
    let length = u64::from(u32::from_le_bytes(length));
    if from.take(length).read_to_end(&mut bytes)? as u64 == length {
        Ok(Some(bytes))
    } else {
        Ok(None)
    }
}
