//! What may go into a bundle: files of the package that an import names, and nothing else of the machine. A library's relative
//! imports, its package.json and its links can all lead out of its folder, and what a bundle holds is published.

use std::collections::{BTreeMap, BTreeSet};

use camino::{Utf8Path, Utf8PathBuf};

use super::metafile::{Import, Metafile};
use super::origin::{file_of_key, is_synthetic_entry};

/// The import that leads out of its package, if there is one: the importer's key and what it says.
pub(super) fn escape<'a>(metafile: &'a Metafile, pack_dir: &Utf8Path) -> Option<(&'a str, &'a str)> {
    let (entry, _) = metafile.inputs.iter().find(|(key, _)| is_synthetic_entry(key))?;
    // A module, and the real folder of the package that it was found in; the synthetic entry is in none.
    let mut open: Vec<(&str, Option<Utf8PathBuf>)> = vec![(entry, None)];
    let mut seen: BTreeSet<(&str, Option<Utf8PathBuf>)> = BTreeSet::new();
    let mut roots: BTreeMap<(Utf8PathBuf, String), Vec<Utf8PathBuf>> = BTreeMap::new();
    while let Some((key, package)) = open.pop() {
        if !seen.insert((key, package.clone())) {
            continue;
        }
        let from = file_of_key(key).map_or(pack_dir, |(file, _)| file.parent().unwrap_or(file));
        for import in metafile.inputs.get(key).into_iter().flat_map(|input| &input.imports) {
            // Data URLs and what esbuild itself brings are no files.
            let Some((file, _)) = file_of_key(&import.path).filter(|_| !import.external) else {
                continue;
            };
            let Some(real) = file.canonicalize_utf8().ok() else {
                return Some((key, import.name()));
            };
            let allowed = allowed_roots(import, from, package.as_deref(), &mut roots);
            match allowed
                .into_iter()
                .find(|root| real.starts_with(root) && is_plain(&real))
            {
                Some(root) => open.push((&import.path, Some(root))),
                None => return Some((key, import.name())),
            }
        }
    }
    None
}

/// The real folders that an import may lead into: the importer's own package, and, for a bare specifier, the packages of that name
/// that Node would look for from there.
fn allowed_roots(
    import: &Import,
    from: &Utf8Path,
    package: Option<&Utf8Path>,
    roots: &mut BTreeMap<(Utf8PathBuf, String), Vec<Utf8PathBuf>>,
) -> Vec<Utf8PathBuf> {
    let mut allowed: Vec<Utf8PathBuf> = package.map(Utf8Path::to_owned).into_iter().collect();
    let name = import.name();
    if name.starts_with(['.', '/']) {
        return allowed;
    }
    if let Some(subpath) = name.strip_prefix('#') {
        // A package's own `imports` may name another package, whose name only its package.json says: any that Node would find.
        let folders = from.ancestors().map(|folder| folder.join("node_modules"));
        allowed.extend(
            folders
                .filter(|_| !subpath.is_empty())
                .flat_map(|folder| installed(&folder)),
        );
        return allowed;
    }
    let found = roots
        .entry((from.to_owned(), package_name(name).to_owned()))
        .or_insert_with(|| {
            let folders = from
                .ancestors()
                .map(|folder| folder.join("node_modules").join(package_name(name)));
            folders.filter_map(|folder| folder.canonicalize_utf8().ok()).collect()
        });
    allowed.extend(found.iter().cloned());
    allowed
}

/// The real folders of the packages in a `node_modules`.
fn installed(folder: &Utf8Path) -> Vec<Utf8PathBuf> {
    let list = |folder: &Utf8Path| {
        folder
            .read_dir_utf8()
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.into_path())
    };
    let (scopes, packages): (Vec<_>, Vec<_>) =
        list(folder).partition(|path| path.file_name().is_some_and(|name| name.starts_with('@')));
    let scoped = scopes.iter().flat_map(|scope| list(scope));
    packages
        .into_iter()
        .chain(scoped)
        .filter_map(|path| path.canonicalize_utf8().ok())
        .collect()
}

/// The package's part of a bare specifier.
pub(super) fn package_name(specifier: &str) -> &str {
    split_package(specifier).0
}

/// The package that an import names, and the path in it.
pub(super) fn split_package(name: &str) -> (&str, &str) {
    let scope = if name.starts_with('@') {
        name.find('/').map_or(0, |slash| slash + 1)
    } else {
        0
    };
    let end = name
        .get(scope..)
        .and_then(|rest| rest.find('/'))
        .map_or(name.len(), |slash| scope + slash);
    (name.get(..end).unwrap_or(name), name.get(end + 1..).unwrap_or_default())
}

/// Whether the path is that of a regular file.
fn is_plain(path: &Utf8Path) -> bool {
    path.metadata().is_ok_and(|found| found.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_are_split_behind_the_package() {
        let cases = [
            ("a", ("a", "")),
            ("a/b/c.js", ("a", "b/c.js")),
            ("@s/a", ("@s/a", "")),
            ("@s/a/b", ("@s/a", "b")),
            ("@s", ("@s", "")),
            ("a/", ("a", "")),
        ];
        for (name, expected) in cases {
            assert_eq!(split_package(name), expected, "{name}");
        }
    }
}
