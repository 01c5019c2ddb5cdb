//! One structured line for each request that was not answered from memory. No token, no body, no path of any machine.

use http::Response;
use packferry_core::canonical;
use serde::Serialize;

use crate::problem::Problem;
use crate::route::Topic;
use crate::trace::Trace;

/// How a request ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// With an answer of this status.
    Answered(u16),
    /// With a refusal.
    Refused(String),
    /// With a fault of ours.
    Fault(String),
    /// With corruption in storage.
    Corrupt(String),
}

impl Outcome {
    pub(crate) fn of<T>(result: Result<&Response<T>, &Problem>) -> Self {
        match result {
            Ok(answer) => Self::Answered(answer.status().as_u16()),
            Err(Problem::Refusal(refusal)) => Self::Refused(refusal.to_string()),
            Err(Problem::Fault(fault)) => Self::Fault(fault.to_string()),
            Err(Problem::Corruption(corruption)) => Self::Corrupt(corruption.to_string()),
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
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<&'a str>,
    reads: u32,
    milliseconds: u64,
}

impl Line {
    /// The line of a request. None for one that was answered from memory and is nobody's fault.
    pub(crate) fn new(
        route: &'static str,
        topic: &Topic,
        outcome: &Outcome,
        trace: &Trace,
        milliseconds: u64,
    ) -> Option<Self> {
        let alarming = matches!(outcome, Outcome::Fault(_) | Outcome::Corrupt(_));
        if trace.reads() == 0 && !alarming {
            return None;
        }
        let (name, status, cause) = match outcome {
            Outcome::Answered(status) => ("answered", Some(*status), None),
            Outcome::Refused(cause) => ("refused", None, Some(cause.as_str())),
            Outcome::Fault(cause) => ("fault", None, Some(cause.as_str())),
            Outcome::Corrupt(cause) => ("corrupt", None, Some(cause.as_str())),
        };
        let id = match topic {
            Topic::Module(id) => Some(id.as_str()),
            Topic::Other(_) => None,
        };
        Some(Self {
            alarming,
            json: canonical::to_json(&Event {
                route,
                id,
                outcome: name,
                status,
                cause,
                reads: trace.reads(),
                milliseconds,
            }),
        })
    }
}
