//! Every bound of the pack and wire contracts, in one place. All are inclusive: equal to the limit is accepted.

/// Bounds on packs (pack contract, section 2, and its table of differences).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackLimits {
    /// Bytes of a pack's package.json.
    pub package_json_bytes: u64,
    /// Bytes of a package.json that is read to tell whether it is a pack's. Keeps a hostile package from exhausting memory at
    /// discovery.
    pub package_json_read_bytes: u64,
    /// Bytes of one authored JavaScript file.
    pub js_bytes: u64,
    /// Bytes of one WASM file.
    pub wasm_bytes: u64,
    /// Bytes of all files of a pack's graph, compiled npm entries included.
    pub pack_bytes: u64,
    /// Bytes of all graphs of a pack, each with every file that its module reaches. Keeps a small pack, whose modules all reach the
    /// same files, from filling memory and disk.
    pub graphs_bytes: u64,
    /// Bytes of one bundled npm entry.
    pub npm_bytes: u64,
    /// Bytes of SKILL.md; a larger one is a warning.
    pub skill_bytes: u64,
    /// Parameters of a WASM export.
    pub wasm_arity: usize,
    /// Pages (64 KiB) that any WASM memory may declare as its maximum.
    pub wasm_memory_pages: u64,
    /// Bytes of the dependencies header and of the WASM contract header; Node's fetch fails near 16 KB of headers.
    pub header_bytes: usize,
    /// Characters of a version; it stands in a header of every answer.
    pub version_chars: usize,
    /// Bytes of a module id, named or pinned, after percent-decoding.
    pub module_id_bytes: usize,
    /// Bytes of a closure: a value of Workers KV has at most 25 MiB.
    pub closure_bytes: u64,
    /// Bytes of a pack's entry in the manifest. A worker has 128 MB of memory, and parses the entry as a whole.
    pub manifest_entry_bytes: u64,
}

/// The bounds in force.
pub const PACK_LIMITS: PackLimits = PackLimits {
    package_json_bytes: 1 << 20,
    package_json_read_bytes: 1 << 24,
    js_bytes: 262_144,
    wasm_bytes: 4_194_304,
    pack_bytes: 8_388_608,
    graphs_bytes: 1 << 30,
    npm_bytes: 1_048_576,
    skill_bytes: 16_384,
    wasm_arity: 8,
    wasm_memory_pages: 4_096,
    header_bytes: 12_000,
    version_chars: 256,
    module_id_bytes: MODULE_ID_BYTES,
    closure_bytes: 25 << 20,
    manifest_entry_bytes: 8 << 20,
};

/// Bytes of a module id after percent-decoding.
pub const MODULE_ID_BYTES: usize = 512;

/// Bytes of a manifest's root, and of a shard, in canonical JSON with its wrapper (64 KiB parse in about the time of a
/// KV read).
pub const SHARD_BYTES: usize = 65_536;

/// Ceilings of the optional `limits` of a WASM module (pack contract, section 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallLimitCeilings {
    /// Milliseconds one call may take.
    pub call_timeout_ms: u64,
    /// Calls at once.
    pub call_concurrency: u64,
    /// Calls in one invocation.
    pub calls_per_invocation: u64,
    /// Milliseconds all calls of an invocation may take together.
    pub wall_clock_ms: u64,
}

/// The ceilings in force.
pub const CALL_LIMIT_CEILINGS: CallLimitCeilings = CallLimitCeilings {
    call_timeout_ms: 5_000,
    call_concurrency: 2,
    calls_per_invocation: 256,
    wall_clock_ms: 30_000,
};
