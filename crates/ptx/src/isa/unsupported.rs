//! What PTX has and this compiler has not: known by name, so that it is refused as such rather than as an error.

/// Opcodes of PTX ISA 9.0 that the table lacks.
const OPCODES: &[&str] = &[
    "alloca",
    "bmma",
    "clusterlaunchcontrol",
    "getctarank",
    "istypep",
    "mapa",
    "mbarrier",
    "multimem",
    "stackrestore",
    "stacksave",
    "suld",
    "suq",
    "sured",
    "sust",
    "tcgen05",
    "tensormap",
    "tex",
    "tld4",
    "txq",
];

/// Modifiers of PTX ISA 9.0, by opcode, that none of the opcode's entries knows.
const MODIFIERS: &[(&str, &[&str])] = &[
    ("add", &["f32x2"]),
    ("atom", &["b128"]),
    ("barrier", &["cluster"]),
    ("cp", &["bulk", "reduce", "mbarrier"]),
    (
        "cvt",
        &[
            "e4m3x4",
            "e5m2x4",
            "e2m1x2",
            "e2m1x4",
            "e2m3x2",
            "e3m2x2",
            "e2m3x4",
            "e3m2x4",
            "ue8m0x2",
            "rs",
            "scaled::n2::ue8m0",
        ],
    ),
    (
        "fence",
        &[
            "tensormap::generic",
            "async::generic",
            "sync_restrict::shared::cta",
            "sync_restrict::shared::cluster",
        ],
    ),
    ("fma", &["f32x2"]),
    ("ld", &["b128", "unified"]),
    ("ldmatrix", &["m8n16", "m16n16", "b8"]),
    ("mma", &["kind::mxf8f6f4", "kind::mxf4", "kind::mxf4nvf4", "kind::f8f6f4", "block_scale"]),
    ("mul", &["f32x2"]),
    ("red", &["async"]),
    ("redux", &["f32", "abs", "NaN"]),
    ("st", &["async", "bulk"]),
    ("stmatrix", &["m16n8", "b8"]),
    ("sub", &["f32x2"]),
];

/// Whether this is an opcode of PTX that is not supported.
pub(super) fn is_opcode(name: &str) -> bool {
    OPCODES.contains(&name)
}

/// Whether the modifier makes an instruction of PTX that is not supported.
pub(super) fn is_modifier(opcode: &str, modifier: &str) -> bool {
    MODIFIERS.iter().any(|(name, modifiers)| *name == opcode && modifiers.contains(&modifier))
}
