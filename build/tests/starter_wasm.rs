//! The WASM starter pack's committed binary is what its committed source assembles to.

use std::path::Path;

#[test]
fn noise_is_what_its_source_assembles_to() {
    let pack = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packs/noise");
    let source = std::fs::read(pack.join("src/noise.wat")).unwrap();
    let assembled = wat::parse_bytes(&source).unwrap();
    let binary = pack.join("sandbox/noise.wasm");
    if std::env::var_os("PACKFERRY_ASSEMBLE").is_some() {
        std::fs::write(&binary, &assembled).unwrap();
    }
    assert!(
        std::fs::read(&binary).unwrap() == assembled.as_ref(),
        "sandbox/noise.wasm is not src/noise.wat assembled; \
         `PACKFERRY_ASSEMBLE=1 cargo test -p packferry --test starter_wasm` writes it anew"
    );
}
