//! The repository as cargo and git see it.

use crate::Error;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The repository's root folder.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask/ lies in the root").to_owned()
}

/// Standard output of a command run in the root; an error if it fails.
pub fn output(program: &str, arguments: &[&str]) -> Result<String, Error> {
    let result = Command::new(program).args(arguments).current_dir(root()).output()?;
    if !result.status.success() {
        let stderr = String::from_utf8_lossy(&result.stderr);
        return Err(format!("{program} {}: {}", arguments.join(" "), stderr.trim()).into());
    }
    Ok(String::from_utf8(result.stdout)?)
}

/// Every tracked file that is text, with its path from the root.
pub fn tracked_texts() -> Result<Vec<(String, String)>, Error> {
    let mut texts = Vec::new();
    for path in output("git", &["ls-files", "-z"])?.split_terminator('\0') {
        let full = root().join(path);
        // A link's target is a tracked file itself; a file deleted but not yet committed is no finding.
        if full.is_symlink() || !full.is_file() {
            continue;
        }
        if let Ok(text) = String::from_utf8(std::fs::read(full)?) {
            texts.push((path.to_owned(), text));
        }
    }
    Ok(texts)
}

/// One package of the resolved dependency graph.
#[derive(Clone, Debug, Default)]
pub struct Package {
    pub name: String,
    pub version: String,
    pub license: Option<String>,
    /// Folder of the manifest from the root, for members of the workspace.
    pub folder: Option<String>,
    pub dependencies: Vec<Dependency>,
}

/// A dependency as a manifest declares it.
#[derive(Clone, Debug, PartialEq)]
pub struct Dependency {
    pub name: String,
    pub kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    Normal,
    Build,
    Dev,
}

/// All packages that `Cargo.lock` names for this workspace.
pub fn packages() -> Result<Vec<Package>, Error> {
    let text = output("cargo", &["metadata", "--format-version", "1", "--locked"])?;
    parse_packages(&serde_json::from_str(&text)?, &root())
}

fn parse_packages(metadata: &Value, root: &Path) -> Result<Vec<Package>, Error> {
    let list = metadata["packages"].as_array().ok_or("cargo metadata has no packages")?;
    list.iter().map(|package| parse_package(package, root)).collect()
}

fn parse_package(package: &Value, root: &Path) -> Result<Package, Error> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let manifest = PathBuf::from(text(&package["manifest_path"]).ok_or("a package without a manifest")?);
    let local = package["source"].is_null();
    let folder = manifest.parent().and_then(|folder| folder.strip_prefix(root).ok());
    let mut dependencies = Vec::new();
    for dependency in package["dependencies"].as_array().into_iter().flatten() {
        dependencies.push(Dependency {
            name: text(&dependency["name"]).ok_or("a dependency without a name")?,
            kind: match dependency["kind"].as_str() {
                None | Some("normal") => Kind::Normal,
                Some("build") => Kind::Build,
                Some("dev") => Kind::Dev,
                Some(other) => return Err(format!("unknown kind of dependency {other:?}").into()),
            },
        });
    }
    Ok(Package {
        name: text(&package["name"]).ok_or("a package without a name")?,
        version: text(&package["version"]).unwrap_or_default(),
        license: text(&package["license"]),
        folder: folder.filter(|_| local).map(|folder| folder.to_string_lossy().into_owned()),
        dependencies,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn metadata_becomes_packages() {
        let metadata = json!({"packages": [
            {"name": "anywarp-ptx", "version": "0.1.0", "license": "MIT", "source": null,
             "manifest_path": "/r/crates/ptx/Cargo.toml",
             "dependencies": [{"name": "anywarp-simt-ir", "kind": null}, {"name": "proptest", "kind": "dev"}]},
            {"name": "libc", "version": "0.2.0", "license": null, "source": "registry+x",
             "manifest_path": "/elsewhere/libc/Cargo.toml", "dependencies": []},
        ]});
        let packages = parse_packages(&metadata, Path::new("/r")).unwrap();
        assert_eq!(packages[0].folder.as_deref(), Some("crates/ptx"));
        assert_eq!(packages[0].dependencies[0].kind, Kind::Normal);
        assert_eq!(packages[0].dependencies[1], Dependency { name: "proptest".into(), kind: Kind::Dev });
        assert_eq!(packages[1].folder, None);
        assert_eq!(packages[1].license, None);
    }

    #[test]
    fn a_failed_command_is_an_error_with_its_reason() {
        let error = output("git", &["no-such-command"]).unwrap_err().to_string();
        assert!(error.contains("no-such-command"), "{error}");
    }
}
