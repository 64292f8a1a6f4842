//! What an H200 answered with driver 580, as tables: `facts/*.tsv`.

/// The rows of a table with `N` columns; lines that begin with `#` say what it is.
pub fn rows<const N: usize>(table: &'static str) -> impl Iterator<Item = [&'static str; N]> {
    table.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let columns: Vec<_> = line.split('\t').collect();
        columns.try_into().unwrap_or_else(|_| panic!("not {N} columns: {line}"))
    })
}

/// Number, name and text of each code of the Driver API.
pub const DRIVER_ERRORS: &str = include_str!("../facts/driver-errors.tsv");
/// Number, name and text of each code of the Runtime API.
pub const RUNTIME_ERRORS: &str = include_str!("../facts/runtime-errors.tsv");
/// Number, value and name of each device attribute.
pub const DEVICE_ATTRIBUTES: &str = include_str!("../facts/device-attributes.tsv");
/// What a call answers in a situation: situation, call, code.
pub const DRIVER_ANSWERS: &str = include_str!("../facts/driver-answers.tsv");
