//! Where a release may be written. A build removes what lies in its directory's `objects` and is not of the release, and npm publishes
//! what lies in a package's directory.

use camino::{Utf8Path, Utf8PathBuf};

use crate::diagnostics::{Diagnostic, RELEASE_IN_PACK};
use crate::discover::{PackDir, Standing};
use crate::fault::Fault;
use crate::finding::{Finding, Subject};
use crate::package_json::{self, Outcome, PACKAGE_JSON};

/// Looks at the directory `out` and those above it; a warning where one of them is a pack's.
///
/// # Errors
/// A [`Fault`] where `out` is itself a package's directory.
pub fn check(out: &Utf8Path) -> Result<Option<Finding>, Fault> {
    if out.join(PACKAGE_JSON).symlink_metadata().is_ok() {
        let fault = Fault::new(format!("{out} is a package's directory, and no place for a release"));
        return Err(fault.hint("Choose a directory of its own for --out."));
    }
    let Some(place) = existing(out) else { return Ok(None) };
    let pack = place.ancestors().find(|above| is_pack(above));
    Ok(pack.map(|pack| Finding {
        about: Subject {
            pack: None,
            shown: out.to_owned(),
        },
        diagnostic: Diagnostic::new(
            &RELEASE_IN_PACK,
            format!(
                "the release is written into the pack {}",
                pack.file_name().unwrap_or_default()
            ),
        ),
    }))
}

/// The real path of `path`, or of the nearest directory above that is there.
fn existing(path: &Utf8Path) -> Option<Utf8PathBuf> {
    let start = Utf8Path::new(".").join(path);
    start.ancestors().find_map(|above| above.canonicalize_utf8().ok())
}

fn is_pack(directory: &Utf8Path) -> bool {
    let dir = PackDir {
        shown: directory.to_owned(),
        real: directory.as_std_path().to_owned(),
        named: false,
        standing: Standing::Installed,
        staged: None,
    };
    !matches!(package_json::read(&dir), Outcome::NotAPack | Outcome::Refused { .. })
}
