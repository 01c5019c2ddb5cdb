//! A bundle that was made before and staged: judged again as when it was made. Its library is not at hand, so places are lines of the
//! bundle, and there are no paths to take out.

use std::collections::HashMap;

use super::reasons::{Stop, forbidden, rejected, too_large, warnings};
use super::{Bundled, Grounds, Proven, TOO_DEEP};
use crate::excerpt::Position;
use crate::fault::Fault;
use crate::judge::{Judge, Judgement};
use crate::scan::{Finding, Verdict};

/// Scans the bundle `source`, made from version `npm_version` of its package. What comes of it rests on these alone.
///
/// # Errors
///
/// A fault where the judge cannot be asked. What is wrong with the bundle is a [`super::Skip`].
pub fn judge_again(judge: &Judge, source: String, npm_version: Option<String>) -> Result<Proven, Fault> {
    let judgement = judge.judge(source.clone(), HashMap::new())?;
    let settled = !matches!(judgement, Judgement::Missing(_));
    let outcome = match again(judgement, source, npm_version) {
        Ok(bundled) => Ok(bundled),
        Err(Stop::Skip(skip)) => Err(skip),
        Err(Stop::Fault(fault)) => return Err(fault),
    };
    let grounds = settled.then(Grounds::none);
    Ok(Proven { outcome, grounds })
}

fn again(judgement: Judgement, source: String, npm_version: Option<String>) -> Result<Bundled, Stop> {
    let verdict = match judgement {
        Judgement::Read(_, verdict) => verdict,
        Judgement::TooLarge(length) => return Err(too_large(&format!("{length} bytes"))),
        Judgement::Unreadable(why) | Judgement::Missing(why) => return Err(rejected(&why)),
    };
    let line = |finding: &Finding| Position::of(&source, finding.offset).line;
    let named = |findings: &[Finding]| -> Vec<String> {
        let named = |finding: &Finding| format!("{:?} (line {} of the bundle)", finding.what, line(finding));
        findings.iter().map(named).collect()
    };
    match verdict {
        Verdict::TooDeep => Err(rejected(TOO_DEEP)),
        Verdict::Rejected(finding) => Err(rejected(&format!("{} (line {})", finding.what, line(&finding)))),
        Verdict::Forbidden(findings) => Err(forbidden(&named(&findings))),
        Verdict::Accepted(accepted) => Ok(Bundled {
            npm_version,
            warnings: warnings(&accepted, |findings| Ok(named(findings)))?,
            exports: accepted.exports,
            inputs: Vec::new(),
            source,
        }),
    }
}
