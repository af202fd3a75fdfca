//! The tables that `tidy` checks the repository against. A new line here is a design decision.

/// Our crates: where each stands and which of ours it may use (design, section 2).
pub const ARROWS: &[(&str, &str, &[&str])] = &[
    ("base", "core/base", &[]),
    ("iostats", "core/iostats", &["base"]),
    ("layout", "core/layout", &["base"]),
    ("wire", "core/wire", &["base"]),
    ("placement", "core/placement", &["base", "iostats", "layout"]),
    ("replication", "core/replication", &["base", "iostats", "layout", "wire"]),
    ("diskgroup", "core/diskgroup", &["base", "iostats", "layout"]),
    ("reduction", "core/reduction", &["base"]),
    ("cluster", "core/cluster", &["base", "layout", "wire", "placement", "replication"]),
    (
        "node",
        "core/node",
        &["base", "iostats", "layout", "wire", "placement", "replication", "diskgroup", "cluster"],
    ),
    ("etcd", "edge/etcd", &[]),
    ("frontends", "edge/frontends", &["base", "iostats"]),
    ("trust", "edge/trust", &["base"]),
    ("failure", "edge/failure", &["placement"]),
    (
        "engine",
        "edge/engine",
        &[
            "base",
            "iostats",
            "layout",
            "wire",
            "placement",
            "replication",
            "diskgroup",
            "cluster",
            "node",
            "reduction",
            "frontends",
            "trust",
            "failure",
        ],
    ),
    ("plan", "edge/lab/plan", &["base"]),
    ("jobs", "edge/lab/jobs", &["base", "plan"]),
    ("statistics", "edge/lab/statistics", &[]),
    ("results", "edge/lab/results", &["base", "statistics"]),
    ("measured", "edge/lab/measured", &["base", "iostats", "plan", "statistics"]),
    ("lens", "edge/lab/lens", &["base", "iostats", "plan", "statistics"]),
    (
        "reports",
        "edge/lab/reports",
        &["base", "iostats", "plan", "statistics", "measured", "results", "lens"],
    ),
    (
        "lab",
        "edge/lab/run",
        &["base", "iostats", "plan", "jobs", "statistics", "measured", "results", "lens", "reports"],
    ),
    ("api", "edge/api", &["trust", "failure"]),
    ("console", "edge/console", &[]),
    (
        "control",
        "edge/control",
        &[
            "base",
            "iostats",
            "layout",
            "wire",
            "placement",
            "replication",
            "diskgroup",
            "cluster",
            "node",
            "reduction",
            "etcd",
            "frontends",
            "trust",
            "failure",
            "engine",
            "api",
            "console",
        ],
    ),
    ("cli", "edge/cli", &["base", "iostats", "placement", "frontends", "trust", "failure", "lab", "api"]),
    ("demo", "edge/demo", &["base", "failure", "api", "control", "cli"]),
    (
        "server",
        "edge/server",
        &["base", "wire", "etcd", "failure", "engine", "api", "control", "cli", "demo"],
    ),
    ("model", "tools/model", &[]),
    (
        "sim",
        "tools/sim",
        &["base", "iostats", "layout", "wire", "placement", "replication", "diskgroup", "cluster", "node"],
    ),
    ("trials", "tools/trials", &["base"]),
    ("xtask", "tools/xtask", &[]),
];

/// Crates outside `core/` whose files must not import from one another in a circle, either; in `core/` none may.
pub const WITHOUT_CIRCLES: &[&str] = &[
    "failure",
    "engine",
    "statistics",
    "measured",
    "results",
    "lens",
    "api",
    "control",
    "console",
    "cli",
    "demo",
    "server",
    "model",
    "xtask",
];

/// An arrow between two files of a crate that may close a circle.
#[derive(Debug)]
pub struct Exception {
    /// The crate.
    pub package: &'static str,
    /// The file that imports, from the crate's `src`.
    pub from: &'static str,
    /// The file that it imports from.
    pub to: &'static str,
    /// Why the circle is better than what would be without it.
    pub reason: &'static str,
}

/// The arrows that may close a circle.
pub const CIRCLES_ALLOWED: &[Exception] = &[];

/// Third-party crates that each of ours may use. The reasons stand in `docs/ARCHITECTURE.md`.
pub const THIRD_PARTY: &[(&str, &[&str])] = &[
    ("base", &["crc-fast", "smallvec", "thiserror"]),
    ("iostats", &["thiserror"]),
    ("layout", &["thiserror"]),
    ("wire", &["smallvec", "thiserror"]),
    ("placement", &["thiserror"]),
    ("replication", &["rustc-hash", "slab", "smallvec", "thiserror"]),
    ("cluster", &["smallvec", "thiserror"]),
    ("diskgroup", &["lz4_flex", "rustc-hash", "slab", "smallvec", "thiserror", "zstd"]),
    ("node", &["rustc-hash", "slab", "smallvec", "thiserror"]),
    ("reduction", &["lz4_flex", "sha2", "thiserror", "zstd"]),
    ("etcd", &["etcd-client", "libc", "serde", "serde_json", "tempfile", "thiserror", "tokio"]),
    ("frontends", &["libc", "rustls", "rustls-pki-types", "slab", "smallvec", "thiserror"]),
    ("trust", &["argon2", "pem", "rcgen", "ring", "rustls", "serde", "thiserror", "x509-parser"]),
    ("failure", &["axum-core", "http", "serde", "serde_json", "utoipa"]),
    (
        "engine",
        &[
            "io-uring",
            "libc",
            "rustc-hash",
            "rustls",
            "rustls-pki-types",
            "slab",
            "smallvec",
            "thiserror",
            "tokio",
            "tracing",
        ],
    ),
    ("plan", &["serde", "thiserror"]),
    ("jobs", &["quick-xml", "serde", "strsim", "thiserror"]),
    ("statistics", &["serde", "statrs", "thiserror"]),
    ("results", &["quick-xml", "serde", "serde_json", "thiserror"]),
    ("measured", &["serde", "serde_json", "thiserror"]),
    ("lens", &["rustc-hash", "serde", "thiserror"]),
    (
        "reports",
        &[
            "arrow-array",
            "arrow-schema",
            "parquet",
            "serde",
            "serde_json",
            "sha2",
            "tar",
            "thiserror",
            "zstd",
        ],
    ),
    (
        "lab",
        &[
            "clap",
            "comfy-table",
            "io-uring",
            "libc",
            "rcgen",
            "ring",
            "rustls",
            "serde",
            "serde_json",
            "thiserror",
            "toml",
        ],
    ),
    (
        "api",
        &[
            "clap",
            "http-body-util",
            "hyper",
            "hyper-util",
            "rustls",
            "serde",
            "serde_json",
            "tokio",
            "tokio-rustls",
            "tower-service",
            "utoipa",
        ],
    ),
    (
        "control",
        &[
            "axum",
            "clap",
            "http-body-util",
            "hyper",
            "hyper-util",
            "libc",
            "openidconnect",
            "prometheus-client",
            "redb",
            "rustix",
            "rustls",
            "serde",
            "serde_json",
            "sha2",
            "tokio",
            "tokio-rustls",
            "toml",
            "tracing",
            "utoipa",
            "utoipa-axum",
        ],
    ),
    ("console", &["brotli", "flate2", "sha2"]),
    (
        "cli",
        &[
            "axum",
            "clap",
            "clap_complete",
            "clap_mangen",
            "comfy-table",
            "http-body-util",
            "hyper",
            "indicatif",
            "rustix",
            "serde",
            "serde_json",
            "sha2",
            "tar",
            "tokio",
            "zstd",
        ],
    ),
    ("demo", &["axum", "indicatif", "libc", "serde", "serde_json", "tokio"]),
    ("server", &["clap", "libc", "serde_json", "tokio", "tracing", "tracing-subscriber", "zstd"]),
    ("model", &["clap", "rustc-hash"]),
    ("sim", &["clap", "smallvec"]),
    (
        "trials",
        &[
            "clap",
            "comfy-table",
            "fuser",
            "http-body-util",
            "hyper",
            "hyper-util",
            "libc",
            "serde",
            "serde_json",
            "thiserror",
            "tokio",
        ],
    ),
    ("xtask", &["proc-macro2", "serde_json", "syn"]),
];

/// Third-party crates that any of ours may use in its tests only.
pub const THIRD_PARTY_IN_TESTS: &[&str] =
    &["crc32c", "insta", "lz4_flex", "proptest", "rcgen", "rusty_erasure", "serde_json", "tempfile", "toml"];

/// The licence of every crate of ours.
pub const LICENCE: &str = "Apache-2.0";

/// Lines of a file, tests aside (docs/STYLE.md).
pub const FILE_LINES_MAX: usize = 800;
/// Lines of a function, from its signature to its closing brace (docs/STYLE.md).
pub const FUNCTION_LINES_MAX: usize = 70;

/// Paths that must not occur under `core/`, and what to do instead.
pub const IMPURE: &[(&str, &str)] = &[
    ("std::fs", "core performs no I/O: make it an output"),
    ("std::net", "core performs no I/O: make it an output"),
    ("std::process", "core performs no I/O: make it an output"),
    ("std::os", "core knows no operating system"),
    ("std::thread", "core has no threads: a node belongs to one"),
    ("std::env", "core has no environment: make it an argument"),
    ("std::sync", "core has no locks: a node belongs to one thread"),
    ("std::time::Instant", "core has no clock: time is an argument (base::Instant)"),
    ("std::time::SystemTime", "core has no clock: time is an argument"),
    ("std::collections::HashMap", "its order is random: use BTreeMap, or rustc_hash where only looked up"),
    ("std::collections::HashSet", "its order is random: use BTreeSet, or rustc_hash where only looked up"),
    ("std::collections::hash_map", "its order is random: use BTreeMap"),
    ("std::hash::RandomState", "core has no randomness of its own"),
    ("tokio", "core is not async"),
    ("Instant::now", "core has no clock: time is an argument"),
    ("SystemTime::now", "core has no clock: time is an argument"),
];

/// Types whose order must not be relied on.
pub const UNORDERED: &[&str] = &["HashMap", "HashSet", "FxHashMap", "FxHashSet"];
/// Methods that go through all entries.
pub const ITERATING: &[&str] = &[
    "iter",
    "iter_mut",
    "into_iter",
    "keys",
    "into_keys",
    "values",
    "values_mut",
    "into_values",
    "drain",
    "retain",
    "extract_if",
];
/// A comment with these words, on the line or one of the two before, allows one iteration; the reason follows.
pub const ORDER_EXCUSE: &str = "order does not matter";
