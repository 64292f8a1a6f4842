//! CUDA C++ to PTX, with the compiler that there is.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A compiler of CUDA C++.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the variants say what their fields are")]
pub enum Compiler {
    /// NVIDIA's.
    Nvcc(PathBuf),
    /// Clang, with the headers of a toolkit and a folder for one that is missing there.
    Clang { clang: PathBuf, toolkit: PathBuf, headers: PathBuf },
}

impl Compiler {
    /// `nvcc`, as `$NVCC` names it or `scripts/setup` installed it.
    ///
    /// # Errors
    /// There is none.
    pub fn nvcc() -> Result<Compiler, String> {
        if let Some(chosen) = std::env::var_os("NVCC") {
            return Ok(Compiler::Nvcc(chosen.into()));
        }
        let environment = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.cache/venv/lib");
        let pythons = std::fs::read_dir(&environment).into_iter().flatten().flatten();
        let found = pythons.map(|python| python.path().join("site-packages/nvidia/cu13/bin/nvcc"));
        found
            .into_iter()
            .find(|nvcc| nvcc.exists())
            .map(Compiler::Nvcc)
            .ok_or_else(|| "nvcc is missing: run scripts/setup, or name it in $NVCC".into())
    }

    /// The clang that `scripts/setup` installed, with the headers that came with `nvcc`.
    ///
    /// # Errors
    /// One of them is missing.
    pub fn clang() -> Result<Compiler, String> {
        let Compiler::Nvcc(nvcc) = Compiler::nvcc()? else { unreachable!("that is what it is") };
        let toolkit = nvcc.ancestors().nth(2).ok_or("nvcc is in no toolkit")?.to_path_buf();
        let clang = PathBuf::from("/usr/lib/llvm-22/bin/clang++");
        if !clang.exists() {
            return Err("clang is missing: run scripts/setup".into());
        }
        let headers = std::env::temp_dir().join(format!("fuzz-cuda-headers-{}", std::process::id()));
        // Clang includes it for its own ends; it is part of a package that nothing here needs.
        std::fs::create_dir_all(&headers)
            .and_then(|()| std::fs::write(headers.join("curand_mtgp32_kernel.h"), ""))
            .map_err(|error| format!("{}: {error}", headers.display()))?;
        Ok(Compiler::Clang { clang, toolkit, headers })
    }

    /// The PTX of a file's kernels; `options` go to the compiler.
    ///
    /// # Errors
    /// What the compiler says.
    pub fn ptx(&self, text: &str, options: &[String]) -> Result<String, String> {
        let folder = std::env::temp_dir();
        let name = format!("fuzz-cuda-{}-{:?}", std::process::id(), std::thread::current().id());
        let (source, result) = (folder.join(format!("{name}.cu")), folder.join(format!("{name}.ptx")));
        let failed = |error: std::io::Error| format!("{}: {error}", source.display());
        std::fs::write(&source, text).map_err(failed)?;
        let mut command = match self {
            Compiler::Nvcc(nvcc) => {
                let mut command = Command::new(nvcc);
                command.args(["-ptx", "-arch=sm_90", "-std=c++17", "-w"]);
                command
            }
            Compiler::Clang { clang, toolkit, headers } => {
                let mut command = Command::new(clang);
                command.args(["-x", "cuda", "--cuda-device-only", "-S", "--offload-arch=sm_90", "-O2", "-w"]);
                command.args(["-std=c++17", "-Wno-unknown-cuda-version"]);
                command.arg(format!("--cuda-path={}", toolkit.display()));
                command.arg("-idirafter").arg(headers);
                command
            }
        };
        let output = command.args(options).arg(&source).arg("-o").arg(&result).output().map_err(failed)?;
        let ptx = std::fs::read_to_string(&result);
        let _ = (std::fs::remove_file(&source), std::fs::remove_file(&result));
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned());
        }
        ptx.map_err(|error| format!("{}: {error}", result.display()))
    }
}
