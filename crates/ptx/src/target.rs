//! Versions and targets: what a module asks for, and whether a device can give it.

use std::fmt;

use crate::ast::{Name, Target, Version};
use crate::error::LoadErrorKind;

/// The newest version of the language that is known whole.
pub const NEWEST_VERSION: Version = Version { major: 9, minor: 0 };

/// Of each major version from 1 the last minor one. Of the newest also what is not known yet is read, as compilers
/// newer than this write it: what a minor version adds are instructions, and those are refused by name.
const LAST_MINOR: [u32; 9] = [5, 3, 2, 3, 1, 5, 8, 8, u32::MAX];

/// What may stand in `.target` after the architecture, besides further architectures.
const OPTIONS: [&str; 4] = ["debug", "map_f64_to_f32", "texmode_independent", "texmode_unified"];

/// The device a module is read for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device {
    /// Compute capability as in `sm_90`: 10 · major + minor.
    pub sm: u32,
}

impl Default for Device {
    fn default() -> Device {
        Device { sm: 90 }
    }
}

/// An architecture: `sm_90`, `sm_90a`, `sm_100f`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Architecture {
    /// The number.
    pub sm: u32,
    /// What other devices it runs on.
    pub portability: Portability,
}

/// Where code for an architecture runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Portability {
    /// No suffix: there and on everything newer.
    Onward,
    /// `f`: within the family, from there on.
    Family,
    /// `a`: there only.
    Exact,
}

impl Architecture {
    /// Reads `sm_90a`.
    pub fn parse(text: &str) -> Option<Architecture> {
        let rest = text.strip_prefix("sm_").or_else(|| text.strip_prefix("compute_"))?;
        let (digits, portability) = match rest.as_bytes().last()? {
            b'a' => (&rest[..rest.len() - 1], Portability::Exact),
            b'f' => (&rest[..rest.len() - 1], Portability::Family),
            _ => (rest, Portability::Onward),
        };
        let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        let sm = digits.parse().ok().filter(|_| plain)?;
        Some(Architecture { sm, portability })
    }

    /// Whether code for this architecture runs on `device`.
    pub fn runs_on(self, device: Device) -> bool {
        match self.portability {
            Portability::Onward => self.sm <= device.sm,
            Portability::Family => self.sm <= device.sm && self.sm / 10 == device.sm / 10,
            Portability::Exact => self.sm == device.sm,
        }
    }

    /// The first version of PTX that knows it; `None` if none does.
    pub fn first_version(self) -> Option<Version> {
        let base = FIRST_VERSIONS.iter().find(|(sm, ..)| *sm == self.sm)?;
        let (major, minor) = match self.portability {
            Portability::Onward => (base.1, base.2),
            Portability::Exact if self.sm == 90 => (8, 0),
            Portability::Exact if self.sm >= 100 => (base.1, base.2),
            Portability::Family if self.sm >= 100 => (base.1, base.2).max((8, 8)),
            Portability::Exact | Portability::Family => return None,
        };
        Some(Version { major, minor })
    }
}

/// Architecture, and the PTX version that introduced it.
const FIRST_VERSIONS: [(u32, u32, u32); 30] = [
    (10, 1, 0),
    (11, 1, 0),
    (12, 1, 2),
    (13, 1, 2),
    (20, 2, 0),
    (30, 3, 0),
    (32, 4, 0),
    (35, 3, 1),
    (37, 4, 1),
    (50, 4, 0),
    (52, 4, 1),
    (53, 4, 2),
    (60, 5, 0),
    (61, 5, 0),
    (62, 5, 0),
    (70, 6, 0),
    (72, 6, 1),
    (75, 6, 3),
    (80, 7, 0),
    (86, 7, 1),
    (87, 7, 4),
    (88, 9, 0),
    (89, 7, 8),
    (90, 7, 8),
    (100, 8, 6),
    (101, 8, 6),
    (103, 8, 8),
    (110, 9, 0),
    (120, 8, 7),
    (121, 8, 8),
];

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// Whether there is such a version, of a major one that is known.
pub fn check_version(version: Version) -> Result<(), (LoadErrorKind, String)> {
    let last = (version.major as usize).checked_sub(1).map(|index| LAST_MINOR.get(index));
    let message = || format!("unsupported .version {version}; the current version is {NEWEST_VERSION}");
    match last {
        Some(Some(last)) if version.minor <= *last => Ok(()),
        _ if version > NEWEST_VERSION => Err((LoadErrorKind::UnsupportedVersion, message())),
        _ => Err((LoadErrorKind::Syntax, format!("there is no PTX .version {version}"))),
    }
}

/// What is wrong with an option of `.target`, if others stand before it.
pub fn check_option(version: Version, sm: u32, before: &[Name<'_>], option: &str) -> Result<(), String> {
    let clash = |other: &str| before.iter().any(|name| name.text == other);
    let first = match option {
        "debug" => Version { major: 3, minor: 0 },
        "texmode_independent" => Version { major: 1, minor: 5 },
        _ => Version { major: 1, minor: 0 },
    };
    match option {
        _ if version < first => {
            Err(format!(".target option '{option}' requires PTX ISA .version {first} or later"))
        }
        "map_f64_to_f32" if sm >= 13 => Err(format!("'{option}' is for targets before sm_13")),
        "texmode_independent" if clash("texmode_unified") => {
            Err(format!("conflicting .target option '{option}'"))
        }
        "texmode_unified" if clash("texmode_independent") => {
            Err(format!("conflicting .target option '{option}'"))
        }
        _ if OPTIONS.contains(&option)
            || Architecture::parse(option).is_some_and(|a| a.first_version().is_some()) =>
        {
            Ok(())
        }
        _ => Err(format!("unsupported .target '{option}'")),
    }
}

/// Whether a module for `target` runs on the device, if that is asked, and its version knows the target.
pub fn check_target(
    version: Version,
    target: &Target<'_>,
    device: Option<Device>,
) -> Result<(), (LoadErrorKind, String)> {
    let name = target.architecture.text;
    let unknown = || (LoadErrorKind::NewerTarget, format!("unsupported .target '{name}'"));
    let architecture = Architecture::parse(name).ok_or_else(unknown)?;
    let first = architecture.first_version().ok_or_else(unknown)?;
    if let Some(device) = device
        && !architecture.runs_on(device)
    {
        let message = format!("code for .target '{name}' does not run on sm_{}", device.sm);
        return Err((LoadErrorKind::NewerTarget, message));
    }
    if version < first {
        let message = format!(".target '{name}' needs .version {first} or later; this is {version}");
        return Err((LoadErrorKind::VersionTooOld, message));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn architectures() {
        let exact = Architecture { sm: 90, portability: Portability::Exact };
        assert_eq!(Architecture::parse("sm_90a"), Some(exact));
        for bad in ["sm_", "sm_a", "sm_+9", "90", "sm_9x"] {
            assert_eq!(Architecture::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn what_runs_where() {
        let runs = |name: &str, sm| Architecture::parse(name).unwrap().runs_on(Device { sm });
        assert!(runs("sm_30", 90) && runs("sm_90", 90) && runs("sm_90a", 90) && runs("sm_100f", 103));
        assert!(!runs("sm_100", 90) && !runs("sm_100a", 90) && !runs("sm_90a", 100) && !runs("sm_100f", 110));
    }

    #[test]
    fn versions_that_there_are() {
        let check = |major, minor| check_version(Version { major, minor }).map_err(|(kind, _)| kind);
        for (major, minor) in [(1, 0), (1, 5), (3, 2), (5, 1), (6, 5), (7, 8), (8, 8), (9, 0), (9, 4)] {
            assert_eq!(check(major, minor), Ok(()), "{major}.{minor}");
        }
        for (major, minor) in [(10, 0), (u32::MAX, u32::MAX)] {
            assert_eq!(check(major, minor), Err(LoadErrorKind::UnsupportedVersion), "{major}.{minor}");
        }
        for (major, minor) in [(0, 0), (0, 9), (1, 6), (2, 4), (5, 2), (8, 9), (8, u32::MAX)] {
            assert_eq!(check(major, minor), Err(LoadErrorKind::Syntax), "{major}.{minor}");
        }
    }
}
