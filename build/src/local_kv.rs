//! The KV that `wrangler dev` uses on this machine, as a publishing target. The only file that starts Node: the storage format is
//! Miniflare's own, so `scripts/local-kv.mjs` opens it through Miniflare and answers one JSON line for each JSON line it gets.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use camino::{Utf8Path, Utf8PathBuf};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::fault::{Fault, reason};
use crate::publish::Target;

const SCRIPT: &str = "scripts/local-kv.mjs";

/// An open connection to the local KV.
pub struct LocalKv {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

/// An answer of the script: exactly one of its fields is there.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Answer {
    error: Option<String>,
    value: Option<String>,
    missing: Option<BTreeSet<String>>,
    put: Option<usize>,
}

impl LocalKv {
    /// Opens the local KV of the project around the working directory. `persist_to` overrides the folder of its state.
    ///
    /// # Errors
    /// A [`Fault`] where there is no such project, or Node or its packages are missing.
    pub fn open(persist_to: Option<&Utf8Path>) -> Result<Self, Fault> {
        let project = find_project()?;
        let mut command = Command::new("node");
        command.arg(project.join(SCRIPT));
        if let Some(folder) = persist_to {
            command.arg("--persist-to").arg(folder);
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| {
                Fault::new(format!("cannot start node: {}", reason(&error))).hint("Install Node 20 or newer.")
            })?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let output = output.ok_or_else(|| Fault::new("node has no standard output"))?;
        Ok(Self {
            child,
            input,
            output: BufReader::new(output),
        })
    }

    fn ask(&mut self, request: &Value) -> Result<Answer, Fault> {
        let input = self
            .input
            .as_mut()
            .ok_or_else(|| Fault::new("the local KV is closed"))?;
        let lost = || Fault::new("the local KV stopped answering").hint("Run make setup, then try again.");
        writeln!(input, "{request}")
            .and_then(|()| input.flush())
            .map_err(|_| lost())?;
        let mut line = String::new();
        if self.output.read_line(&mut line).map_err(|_| lost())? == 0 {
            return Err(lost());
        }
        let answer: Answer = serde_json::from_str(&line)
            .map_err(|error| Fault::new(format!("the local KV answered something else than JSON: {error}")))?;
        match answer.error {
            Some(error) => Err(Fault::new(format!("the local KV failed: {error}"))),
            None => Ok(answer),
        }
    }
}

impl Target for LocalKv {
    fn get(&mut self, key: &str) -> Result<Option<Vec<u8>>, Fault> {
        let answer = self.ask(&json!({ "op": "get", "key": key }))?;
        let decode = |value: String| {
            STANDARD
                .decode(value)
                .map_err(|_| Fault::new("the local KV answered no base64"))
        };
        answer.value.map(decode).transpose()
    }

    fn missing(&mut self, keys: &[String]) -> Result<BTreeSet<String>, Fault> {
        let answer = self.ask(&json!({ "op": "missing", "keys": keys }))?;
        answer
            .missing
            .ok_or_else(|| Fault::new("the local KV did not say which keys are missing"))
    }

    fn put(&mut self, entries: &[(String, Vec<u8>)]) -> Result<(), Fault> {
        let rows: Vec<Value> = entries
            .iter()
            .map(|(key, value)| json!({ "key": key, "value": STANDARD.encode(value) }))
            .collect();
        let answer = self.ask(&json!({ "op": "put", "entries": rows }))?;
        if answer.put == Some(entries.len()) {
            Ok(())
        } else {
            Err(Fault::new(format!(
                "the local KV confirmed {:?} of {} writes",
                answer.put,
                entries.len()
            )))
        }
    }
}

impl Drop for LocalKv {
    fn drop(&mut self) {
        // End of input ends the script; it closes the storage first.
        self.input.take();
        let _ = self.child.wait();
    }
}

/// The nearest directory upwards with a wrangler.toml and our script.
fn find_project() -> Result<Utf8PathBuf, Fault> {
    let here = std::env::current_dir()
        .map_err(|error| Fault::new(format!("the working directory is gone: {}", reason(&error))))?;
    let here = Utf8PathBuf::from_path_buf(here).map_err(|_| Fault::new("the working directory's path is not UTF-8"))?;
    here.ancestors()
        .find(|folder| folder.join("wrangler.toml").is_file() && folder.join(SCRIPT).is_file())
        .map(Utf8Path::to_owned)
        .ok_or_else(|| {
            Fault::new("no Packferry project around this directory")
                .hint("Run the command inside the repository: --local writes into the KV of its wrangler.toml.")
        })
}
