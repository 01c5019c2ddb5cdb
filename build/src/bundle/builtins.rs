//! The names that Node resolves to itself, whatever is installed.

/// Whether Node answers an import of `name` with a module of its own.
pub(super) fn is_builtin(name: &str) -> bool {
    name.starts_with("node:") || BUILTINS.binary_search(&name).is_ok()
}

/// `module.builtinModules` of Node 20 to 24 without the names that need `node:`, sorted.
const BUILTINS: &[&str] = &[
    "_http_agent",
    "_http_client",
    "_http_common",
    "_http_incoming",
    "_http_outgoing",
    "_http_server",
    "_stream_duplex",
    "_stream_passthrough",
    "_stream_readable",
    "_stream_transform",
    "_stream_wrap",
    "_stream_writable",
    "_tls_common",
    "_tls_wrap",
    "assert",
    "assert/strict",
    "async_hooks",
    "buffer",
    "child_process",
    "cluster",
    "console",
    "constants",
    "crypto",
    "dgram",
    "diagnostics_channel",
    "dns",
    "dns/promises",
    "domain",
    "events",
    "fs",
    "fs/promises",
    "http",
    "http2",
    "https",
    "inspector",
    "inspector/promises",
    "module",
    "net",
    "os",
    "path",
    "path/posix",
    "path/win32",
    "perf_hooks",
    "process",
    "punycode",
    "querystring",
    "readline",
    "readline/promises",
    "repl",
    "stream",
    "stream/consumers",
    "stream/promises",
    "stream/web",
    "string_decoder",
    "sys",
    "timers",
    "timers/promises",
    "tls",
    "trace_events",
    "tty",
    "url",
    "util",
    "util/types",
    "v8",
    "vm",
    "wasi",
    "worker_threads",
    "zlib",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart() {
        assert!(BUILTINS.is_sorted());
        for name in ["fs", "fs/promises", "node:fs", "node:sqlite", "events"] {
            assert!(is_builtin(name), "{name}");
        }
        for name in ["events/", "fs-extra", "sqlite", "./fs", "buffer/index.js", ""] {
            assert!(!is_builtin(name), "{name}");
        }
    }
}
