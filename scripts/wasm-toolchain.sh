#!/usr/bin/env bash
# Makes cargo able to compile for wasm32-unknown-unknown. In this order: nothing to do; rustup adds the
# target; a toolchain linked earlier has it; Debian's packages build one, which is linked into rustup
# under a name of its own. `cargo xtask` finds whichever it is, and uses a linked toolchain for wasm32 only.
set -euo pipefail
cd "$(dirname "$0")/.."

target=wasm32-unknown-unknown
name=packferry-wasm

say() { printf '==> %s\n' "$*"; }
fail() {
    printf 'error: %s\n' "$@" >&2
    exit 1
}

# has_target [TOOLCHAIN]: whether the toolchain, or the default one, has the target's standard library.
has_target() {
    local folder
    folder=$(${1:+env "RUSTUP_TOOLCHAIN=$1"} rustc --print target-libdir --target "$target" 2>/dev/null) || return 1
    compgen -G "$folder/libstd-*.rlib" >/dev/null
}

# add_target: the normal way. A download that is refused once may be served a moment later.
add_target() {
    local attempt limit=
    command -v rustup >/dev/null || return 1
    command -v timeout >/dev/null && limit="timeout 180"
    for attempt in 1 2 3; do
        say "Adding the target $target with rustup (about 10 seconds)"
        $limit rustup target add "$target" && has_target && return 0
        sleep $((attempt * 2))
    done
    return 1
}

install_debian_packages() {
    local as_root=
    [ "$(id -u)" = 0 ] || as_root=sudo
    [ -z "$as_root" ] || command -v sudo >/dev/null ||
        fail "rustup could not add $target, and Debian's packages need root." \
            "Run as root: apt-get install rustc-web cargo-web rust-web-src lld. Then run make again."
    say "Installing rustc-web, cargo-web, rust-web-src and lld from Debian (300 MB, about 30 seconds)"
    $as_root apt-get update -qq
    DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq --no-install-recommends \
        rustc-web cargo-web rust-web-src lld >/dev/null
}

# build_standard_library FOLDER: compiles std for the target from Debian's sources, which bring their
# dependencies along: no registry is asked.
build_standard_library() {
    mkdir -p "$1/src"
    printf '[package]\nname = "standard-library"\nversion = "0.0.0"\nedition = "2024"\n' >"$1/Cargo.toml"
    echo '#![no_std]' >"$1/src/lib.rs"
    # Bitcode must be in the libraries, or link-time optimisation fails on them.
    (cd "$1" && RUSTC_BOOTSTRAP=1 RUSTC=/usr/bin/rustc RUSTFLAGS=-Cembed-bitcode=yes CARGO_TARGET_DIR=$1/target \
        /usr/bin/cargo build --quiet --release --target "$target" -Z build-std=std,panic_abort,test \
        --config 'source.crates-io.replace-with = "debian"' \
        --config 'source.debian.directory = "/usr/lib/rustlib/src/rust/library/vendor"')
}

# link_toolchain BUILT SYSROOT: a sysroot of Debian's compiler and the new libraries, known to rustup.
link_toolchain() {
    local host library=$2/lib/rustlib program linker
    host=$(/usr/bin/rustc -vV | sed -n 's/^host: //p')
    rm -rf "$2"
    mkdir -p "$2/bin" "$library/$target/lib" "$library/$host/bin"
    cp "$1/target/$target/release/deps/"*.rlib "$library/$target/lib/"
    rm -f "$library/$target/lib/"libstandard_library*
    ln -s "/usr/lib/rustlib/$host/lib" "$library/$host/lib"
    ln -s /usr/lib/rustlib/src "$library/src"
    linker=$(rustc --print sysroot)/lib/rustlib/$host/bin/rust-lld
    [ -x "$linker" ] || linker=$(command -v lld)
    ln -s "$linker" "$library/$host/bin/rust-lld"
    # A link would not do: rustc looks for its libraries beside the file that it really is.
    for program in rustc rustdoc; do
        printf '#!/bin/sh\nexec /usr/bin/%s --sysroot "%s" "$@"\n' "$program" "$2" >"$2/bin/$program"
        chmod +x "$2/bin/$program"
    done
    ln -s /usr/bin/cargo "$2/bin/cargo"
    rustup toolchain link "$name" "$2"
    # cargo does not notice that libraries of the same version are others now.
    rm -rf "target/$name"
}

debian_toolchain() {
    local sysroot
    command -v rustup >/dev/null && command -v apt-get >/dev/null ||
        fail "The standard library for $target is missing. Run: rustup target add $target"
    [ -d /usr/lib/rustlib/src/rust/library/vendor ] && [ -x /usr/bin/cargo ] || install_debian_packages
    # Next to the link that names it, and as long-lived.
    sysroot=$(rustup show home)/$name
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    say "Compiling the standard library for $target (about 90 seconds, once)"
    build_standard_library "$work"
    link_toolchain "$work" "$sysroot"
    has_target "$name" || fail "Debian's $(/usr/bin/rustc --version) cannot compile for $target."
}

if has_target || has_target "$name" || add_target; then
    exit 0
fi
say "rustup could not add $target; Debian's packages have it, too"
debian_toolchain
