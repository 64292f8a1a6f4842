//! Which crate may depend on which.

use crate::workspace::{Kind, Package};
use std::collections::{BTreeMap, BTreeSet};

/// The layers, in one place: a crate and what it stands on. What those stand on is allowed too.
/// Names are those of the folders in `crates/`.
const LAYERS: &[(&str, &[&str])] = &[
    ("cuda-abi", &[]),
    ("entry-macros", &["cuda-abi"]),
    ("simt-ir", &[]),
    ("fatbin", &[]),
    ("guard", &[]),
    ("kernel-abi", &["simt-ir"]),
    ("ptx", &["simt-ir"]),
    ("transform", &["kernel-abi"]),
    ("interp", &["kernel-abi", "guard"]),
    ("codegen", &["transform", "kernel-abi"]),
    ("compiler", &["ptx", "codegen"]),
    ("jit", &["kernel-abi", "guard"]),
    ("device", &["ptx", "fatbin", "kernel-abi", "guard"]),
    // The devices with their back ends and CUDA's codes, for both of those that are above them.
    ("platform", &["device", "jit", "interp", "kernel-abi", "cuda-abi"]),
    ("driver", &["platform", "device", "fatbin", "cuda-abi", "entry-macros"]),
    ("runtime", &["cuda-abi", "entry-macros"]),
    // It tells what there is, and needs no driver for it.
    ("nvml", &["device", "cuda-abi", "entry-macros"]),
    ("redirect", &[]),
    // `cuda-abi`: the crate also works over any libcuda.so.1, through its C ABI; `ptx` and `fatbin`: what kernels take there.
    ("anywarp", &["platform", "device", "ptx", "fatbin", "cuda-abi"]),
    ("cli", &["anywarp", "nvml", "cuda-abi"]),
];

/// Bindings of LLVM, and the one crate that may know them.
const LLVM_BINDINGS: &[&str] = &["llvm-sys", "inkwell"];
const LLVM_CRATE: &str = "codegen";

/// Tests may use crates above their own, but only these link LLVM: all others build and test without it.
const LINKS_LLVM: &[&str] = &["codegen", "compiler"];
const MAY_LINK_LLVM: &[&str] = &["codegen", "compiler", "jit"];

/// One sentence for each edge that the layers do not have.
pub fn check(packages: &[Package]) -> Vec<String> {
    let members: BTreeMap<&str, &str> = packages
        .iter()
        .filter_map(|package| {
            Some((package.name.as_str(), package.folder.as_ref()?.strip_prefix("crates/")?))
        })
        .collect();
    let mut findings = Vec::new();
    for package in packages {
        let Some(&from) = members.get(package.name.as_str()) else { continue };
        let Some(allowed) = reachable(from) else {
            findings.push(format!("crates/{from} has no place among the layers in {}", file!()));
            continue;
        };
        for dependency in &package.dependencies {
            let llvm = LLVM_BINDINGS.contains(&dependency.name.as_str());
            if llvm && from != LLVM_CRATE {
                findings.push(format!("{from} depends on {}: only {LLVM_CRATE} knows LLVM", dependency.name));
            }
            let Some(&to) = members.get(dependency.name.as_str()) else { continue };
            if dependency.kind != Kind::Dev {
                if to == from || !allowed.contains(to) {
                    findings.push(format!("{from} depends on {to}, which is not below it"));
                }
            } else if LINKS_LLVM.contains(&to) && !MAY_LINK_LLVM.contains(&from) {
                findings.push(format!("the tests of {from} depend on {to}, which links LLVM"));
            }
        }
    }
    findings
}

/// Everything below a crate, or `None` for a crate without a layer.
fn reachable(from: &str) -> Option<BTreeSet<&'static str>> {
    let (_, below) = LAYERS.iter().find(|(name, _)| *name == from)?;
    let mut all = BTreeSet::new();
    for &name in *below {
        all.insert(name);
        all.extend(reachable(name).expect("a layer names only layers"));
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Dependency;

    fn package(folder: &str, dependencies: &[(&str, Kind)]) -> Package {
        Package {
            name: format!("anywarp-{folder}"),
            folder: Some(format!("crates/{folder}")),
            dependencies: dependencies
                .iter()
                .map(|&(name, kind)| Dependency { name: name.into(), kind })
                .collect(),
            ..Package::default()
        }
    }

    #[test]
    fn layers_name_only_layers_and_have_no_cycle() {
        for (name, _) in LAYERS {
            assert!(!reachable(name).unwrap().contains(name), "{name} stands on itself");
        }
    }

    #[test]
    fn an_edge_upwards_is_found_and_one_further_down_is_not() {
        let packages = [
            package("simt-ir", &[("anywarp-ptx", Kind::Normal)]),
            package("ptx", &[("anywarp-simt-ir", Kind::Normal)]),
            package("device", &[("anywarp-simt-ir", Kind::Normal), ("anywarp-ptx", Kind::Normal)]),
        ];
        assert_eq!(check(&packages), ["simt-ir depends on ptx, which is not below it"]);
    }

    #[test]
    fn tests_are_free_but_do_not_link_llvm() {
        let packages = [
            package("interp", &[("anywarp-ptx", Kind::Dev)]),
            package("ptx", &[]),
            package("codegen", &[]),
            package("device", &[("anywarp-codegen", Kind::Dev)]),
        ];
        assert_eq!(check(&packages), ["the tests of device depend on codegen, which links LLVM"]);
    }

    #[test]
    fn llvm_has_one_home() {
        let packages =
            [package("codegen", &[("llvm-sys", Kind::Normal)]), package("jit", &[("llvm-sys", Kind::Build)])];
        assert_eq!(check(&packages), ["jit depends on llvm-sys: only codegen knows LLVM"]);
    }

    #[test]
    fn a_new_crate_must_be_placed() {
        assert!(check(&[package("surprise", &[])])[0].contains("no place among the layers"));
    }
}
