#!/usr/bin/env bash
# Installs what this repository needs and this machine lacks: the wasm32 target, the pinned JavaScript
# tools, the libraries of the starter packs. Installs nothing twice: a folder of npm packages carries the
# checksum of the lock file it was made from. Rust and Node themselves are looked for, not installed.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf '==> %s\n' "$*"; }
fail() {
    printf 'error: %s\n' "$@" >&2
    exit 1
}

# at_least HAVE WANTED: compares versions of the form 1.95.0.
at_least() {
    local have=(${1//./ }) wanted=(${2//./ }) i
    for i in 0 1 2; do
        ((${have[i]:-0} > ${wanted[i]:-0})) && return 0
        ((${have[i]:-0} < ${wanted[i]:-0})) && return 1
    done
    return 0
}

check_rust() {
    local wanted have
    wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
    command -v cargo >/dev/null || fail "Rust is missing. Install it: https://rustup.rs"
    have=$(rustc --version | cut -d' ' -f2)
    at_least "${have%%-*}" "$wanted" || fail "Rust $have is too old, $wanted is needed. Run: rustup update stable"
}

check_node() {
    local wanted=20.18.1 have
    command -v npm >/dev/null || fail "Node is missing. Install version $wanted or newer with npm: https://nodejs.org"
    have=$(node --version)
    at_least "${have#v}" "$wanted" || fail "Node $have is too old. Install version $wanted or newer: https://nodejs.org"
}

# install_packages FOLDER WHAT: `npm ci`, unless the folder's packages are those of its lock file.
install_packages() {
    local stamp=$1/node_modules/.installed-from checksum
    checksum=$(cksum <"$1/package-lock.json")
    [ "$(cat "$stamp" 2>/dev/null)" = "$checksum" ] && return
    say "Installing $2 from npm (about 10 seconds)"
    (cd "$1" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error) ||
        fail "npm could not install $2. Check that the npm registry can be reached, then run make again."
    echo "$checksum" >"$stamp"
}

check_rust
check_node
scripts/wasm-toolchain.sh
install_packages . "the tools wrangler, esbuild and wasm-opt"
install_packages packs "the libraries of the starter packs"
# install_linter: the HTTP linter in a Python environment of its own, unless that is of its list of packages. Python is looked for,
# not installed: without it the one test that needs it is skipped.
install_linter() {
    local list=tests/http-lint/requirements.txt folder=.packferry/http-lint checksum
    checksum=$(cksum <"$list")
    [ "$(cat "$folder/.installed-from" 2>/dev/null)" = "$checksum" ] && return
    if ! python3 -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        say "Python 3.11 or newer with venv is missing: the HTTP linter will not run"
        return
    fi
    say "Installing the HTTP linter from PyPI (about 20 seconds)"
    rm -rf "$folder"
    python3 -m venv "$folder"
    "$folder/bin/python3" -m pip install --quiet --disable-pip-version-check --no-deps --requirement "$list" ||
        fail "pip could not install the HTTP linter. Check that PyPI can be reached, then run make again."
    echo "$checksum" >"$folder/.installed-from"
}

# `setup.sh tests` installs what only tests need, too.
if [ "${1:-}" = tests ]; then
    install_packages client "the client's tools"
    install_linter
fi
