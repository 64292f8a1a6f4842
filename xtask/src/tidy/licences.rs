//! The licences of everything in `Cargo.lock` against the list in `deny.toml`. `cargo deny` checks the same and more,
//! where it is installed; this check needs nothing but cargo.

use crate::Error;
use crate::workspace::Package;

/// One sentence for each package whose licence expression the list does not satisfy.
pub fn check(packages: &[Package], deny: &str) -> Result<Vec<String>, Error> {
    let deny: toml::Table = deny.parse()?;
    let allowed: Vec<&str> = deny
        .get("licenses")
        .and_then(|table| table.get("allow")?.as_array())
        .ok_or("deny.toml has no licenses.allow")?
        .iter()
        .filter_map(|licence| licence.as_str())
        .collect();
    let mut findings = Vec::new();
    for Package { name, version, license, .. } in packages {
        match license {
            None => findings.push(format!("{name} {version} names no licence")),
            Some(expression) if !satisfied(expression, &allowed) => {
                findings.push(format!("{name} {version} is under {expression}"))
            }
            Some(_) => {}
        }
    }
    Ok(findings)
}

/// Whether the allowed licences satisfy an SPDX expression: names, `WITH` exceptions (a name and its exception count as
/// one), `AND` before `OR`, parentheses, and the old `/` for `OR`. What cannot be read is not satisfied.
fn satisfied(expression: &str, allowed: &[&str]) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let tokens: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    either(&tokens, &mut at, allowed) == Some(true) && at == tokens.len()
}

fn either(tokens: &[&str], at: &mut usize, allowed: &[&str]) -> Option<bool> {
    let mut value = both(tokens, at, allowed)?;
    while tokens.get(*at) == Some(&"OR") {
        *at += 1;
        value |= both(tokens, at, allowed)?;
    }
    Some(value)
}

fn both(tokens: &[&str], at: &mut usize, allowed: &[&str]) -> Option<bool> {
    let mut value = one(tokens, at, allowed)?;
    while tokens.get(*at) == Some(&"AND") {
        *at += 1;
        value &= one(tokens, at, allowed)?;
    }
    Some(value)
}

fn one(tokens: &[&str], at: &mut usize, allowed: &[&str]) -> Option<bool> {
    let token = *tokens.get(*at)?;
    *at += 1;
    if token == "(" {
        let value = either(tokens, at, allowed)?;
        (tokens.get(*at) == Some(&")")).then_some(())?;
        *at += 1;
        return Some(value);
    }
    if tokens.get(*at) == Some(&"WITH") {
        let exception = tokens.get(*at + 1)?;
        *at += 2;
        return Some(allowed.contains(&format!("{token} WITH {exception}").as_str()));
    }
    Some(allowed.contains(&token))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_read_as_spdx_means_them() {
        let allowed = ["MIT", "Apache-2.0 WITH LLVM-exception", "Unicode-3.0"];
        for good in [
            "MIT",
            "MIT OR Apache-2.0",
            "GPL-3.0/MIT",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception",
            "GPL-3.0 OR Unicode-3.0 AND MIT",
        ] {
            assert!(satisfied(good, &allowed), "{good}");
        }
        for bad in [
            "Apache-2.0",
            "MIT AND Apache-2.0",
            "",
            "(MIT",
            "MIT MIT",
            "Apache-2.0 WITH other",
            "OR MIT",
            "MIT)",
        ] {
            assert!(!satisfied(bad, &allowed), "{bad}");
        }
    }

    #[test]
    fn packages_are_judged_by_the_list() {
        let package = |name: &str, license: Option<&str>| Package {
            name: name.into(),
            version: "1.0.0".into(),
            license: license.map(str::to_owned),
            ..Package::default()
        };
        let packages = [package("a", Some("MIT")), package("b", None), package("c", Some("GPL-3.0"))];
        let findings = check(&packages, "[licenses]\nallow = [\"MIT\"]").unwrap();
        assert_eq!(findings, ["b 1.0.0 names no licence", "c 1.0.0 is under GPL-3.0"]);
        assert!(check(&packages, "[licenses]").is_err());
    }
}
