//! One structured line for each request that was not answered from memory, and for each that was refused although the thing may
//! be there. No token, no body, no path of any machine.

use packferry_core::canonical;
use serde::Serialize;

use crate::problem::{Problem, Refusal};
use crate::route::Topic;
use crate::trace::Trace;

/// How a request ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// With what was asked for.
    Answered,
    /// With word that there is no such thing.
    Absent(String),
    /// With another refusal.
    Refused(String),
    /// With a fault of ours.
    Fault(String),
    /// With corruption in storage.
    Corrupt(String),
}

impl Outcome {
    pub(crate) fn of(problem: Option<&Problem>) -> Self {
        match problem {
            None => Self::Answered,
            Some(Problem::Refusal(refusal @ (Refusal::NotFound(_) | Refusal::Unavailable(_)))) => {
                Self::Absent(refusal.to_string())
            }
            Some(Problem::Refusal(refusal)) => Self::Refused(refusal.to_string()),
            Some(Problem::Fault(fault)) => Self::Fault(fault.to_string()),
            Some(Problem::Corruption(corruption)) => Self::Corrupt(corruption.to_string()),
        }
    }
}

/// A line for the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Whether somebody should look.
    pub alarming: bool,
    /// The line, a JSON object.
    pub json: String,
}

#[derive(Serialize)]
struct Event<'a> {
    route: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    outcome: &'static str,
    status: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trouble: Option<&'a str>,
    reads: u32,
    milliseconds: u64,
}

impl Line {
    /// The line of a request. None for one that was answered from memory: with the thing, or with word that there is none.
    pub(crate) fn new(
        route: &'static str,
        topic: &Topic,
        outcome: &Outcome,
        status: u16,
        trace: &Trace,
        milliseconds: u64,
    ) -> Option<Self> {
        if trace.reads() == 0 && matches!(outcome, Outcome::Answered | Outcome::Absent(_)) {
            return None;
        }
        let trouble = trace.trouble();
        let (name, cause) = match outcome {
            Outcome::Answered => ("answered", None),
            Outcome::Absent(cause) | Outcome::Refused(cause) => ("refused", Some(cause.as_str())),
            Outcome::Fault(cause) => ("fault", Some(cause.as_str())),
            Outcome::Corrupt(cause) => ("corrupt", Some(cause.as_str())),
        };
        let id = match topic {
            Topic::Module(id) => Some(id.as_str()),
            Topic::Other(_) => None,
        };
        Some(Self {
            alarming: trouble.is_some() || matches!(outcome, Outcome::Fault(_) | Outcome::Corrupt(_)),
            json: canonical::to_json(&Event {
                route,
                id,
                outcome: name,
                status,
                cause,
                trouble: trouble.as_deref().filter(|trouble| cause != Some(trouble)),
                reads: trace.reads(),
                milliseconds,
            }),
        })
    }
}
