//! Runs a child process to its end with bounds on time and on what it prints. Knows nothing of what the child does.

use std::io::{self, Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

/// How often a running child is looked at.
const LOOK: Duration = Duration::from_millis(2);

/// Bounds on a child.
#[derive(Debug, Clone, Copy)]
pub struct ChildLimits {
    /// Seconds until it is stopped.
    pub seconds: u32,
    /// Bytes that are kept of each of its two outputs; the rest is dropped.
    pub output_bytes: u64,
}

/// A child that has ended.
#[derive(Debug)]
pub struct Ended {
    /// How; None where it was stopped because its time was up.
    pub status: Option<ExitStatus>,
    /// What it printed, up to the limit.
    pub stdout: Vec<u8>,
    /// What it printed about errors, up to the limit.
    pub stderr: Vec<u8>,
}

/// Runs `command` without an environment, with `input` on its standard input.
///
/// # Errors
///
/// Where it cannot be started or waited for.
pub fn run(command: &mut Command, input: &[u8], limits: ChildLimits) -> io::Result<Ended> {
    let mut child = command
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    thread::scope(|scope| {
        // A child that does not read to the end says so by how it ends.
        scope.spawn(|| stdin.map(|mut stdin| stdin.write_all(input).ok()));
        let stdout = scope.spawn(|| keep(stdout, limits.output_bytes));
        let stderr = scope.spawn(|| keep(stderr, limits.output_bytes));
        let status = wait(&mut child, limits.seconds)?;
        Ok(Ended {
            status,
            stdout: stdout.join().unwrap_or_default(),
            stderr: stderr.join().unwrap_or_default(),
        })
    })
}

/// The first bytes; what follows is read and dropped, so that the writer does not block.
fn keep(pipe: Option<impl Read>, limit: u64) -> Vec<u8> {
    let mut kept = Vec::new();
    if let Some(mut pipe) = pipe
        && pipe.by_ref().take(limit).read_to_end(&mut kept).is_ok()
    {
        io::copy(&mut pipe, &mut io::sink()).ok();
    }
    kept
}

fn wait(child: &mut Child, seconds: u32) -> io::Result<Option<ExitStatus>> {
    let mut left = Duration::from_secs(seconds.into());
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        let Some(rest) = left.checked_sub(LOOK) else {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        };
        left = rest;
        thread::sleep(LOOK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, input: &[u8]) -> Ended {
        let limits = ChildLimits {
            seconds: 1,
            output_bytes: 4,
        };
        run(Command::new("/bin/sh").args(["-c", script]), input, limits).unwrap()
    }

    #[test]
    fn outputs_are_kept_up_to_the_limit() {
        let ended = shell("/bin/cat; echo 123456789 >&2; exit 3", &[b'x'; 200_000]);
        assert_eq!(ended.status.and_then(|status| status.code()), Some(3));
        assert_eq!((ended.stdout, ended.stderr), (b"xxxx".to_vec(), b"1234".to_vec()));
    }

    #[test]
    fn a_child_that_does_not_end_is_stopped() {
        let ended = shell("echo 12; exec /bin/sleep 60", b"");
        assert_eq!((ended.status, ended.stdout), (None, b"12\n".to_vec()));
    }

    #[test]
    fn a_child_that_does_not_read_is_no_error() {
        let ended = shell("exec 0<&-", &[b'x'; 200_000]);
        assert!(ended.status.is_some_and(|status| status.success()));
    }
}
