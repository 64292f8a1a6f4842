//! `anywarp info`: what there is, and where.

use crate::{installation, output};
use anywarp::Device;
use cuda_abi::driver::CUDA_VERSION;
use std::fmt::Display;
use std::path::Path;
use std::process::ExitCode;

/// Prints everything; fails if there is no device.
pub fn run() -> ExitCode {
    let mut page = Page(String::new());
    page.row("anywarp", env!("CARGO_PKG_VERSION"));
    page.row("CUDA", format!("{}.{}", CUDA_VERSION / 1000, CUDA_VERSION % 1000 / 10));
    match installation::library_folder() {
        Ok(folder) => page.libraries(&folder),
        Err(reason) => page.row("libraries", reason),
    }
    match anywarp::kernel_cache() {
        Some(folder) => page.row("kernel cache", kernels_in(&folder)),
        None => page.row("kernel cache", "none"),
    }
    let status = match page.devices() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            page.row("devices", error);
            ExitCode::FAILURE
        }
    };
    output::finish(&page.0, status)
}

/// What is printed, a name and a value a line.
struct Page(String);

impl Page {
    fn row(&mut self, name: &str, value: impl Display) {
        self.0 += &format!("{name:22}{value}\n");
    }

    fn devices(&mut self) -> anywarp::Result<()> {
        for ordinal in 0..Device::count()? {
            let device = Device::get(ordinal)?;
            let limits = device.limits();
            let (major, minor) = device.compute_capability();
            self.0.push('\n');
            self.row(&format!("device {ordinal}"), device.name());
            self.row("  compute capability", format!("{major}.{minor}"));
            self.row("  multiprocessors", device.multiprocessors());
            self.row("  memory", mebibytes(device.total_memory()));
            self.row(
                "  threads of a block",
                format!("{}, at most {}", limits.threads_per_block, dimensions(limits.block)),
            );
            self.row("  blocks of a grid", dimensions(limits.grid));
            self.row("  shared memory", format!("{} KiB a block", limits.shared_per_block >> 10));
            self.row("  parameters", format!("{} bytes a kernel", limits.parameters));
        }
        Ok(())
    }

    /// The folder, and any of our libraries that is not there.
    fn libraries(&mut self, folder: &Path) {
        self.row("libraries", folder.display());
        let names = [
            "libcuda.so.1",
            "libcudart.so.13",
            "libnvidia-ml.so.1",
            "libanywarp_compiler.so",
            "libanywarp_redirect.so",
        ];
        for name in names {
            if !folder.join(name).is_file() {
                self.row("", format!("{name} is missing"));
            }
        }
    }
}

/// A folder, with how much is in it.
fn kernels_in(folder: &Path) -> String {
    let sizes = std::fs::read_dir(folder).into_iter().flatten().flatten().filter_map(|file| {
        let metadata = file.metadata().ok()?;
        metadata.is_file().then_some(metadata.len())
    });
    let (count, bytes) = sizes.fold((0_u64, 0_u64), |(count, bytes), size| (count + 1, bytes + size));
    match count {
        0 => format!("{} (empty)", folder.display()),
        _ => format!("{} ({count} kernels, {})", folder.display(), mebibytes(bytes)),
    }
}

fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

fn dimensions([x, y, z]: [u32; 3]) -> String {
    format!("{x} × {y} × {z}")
}
