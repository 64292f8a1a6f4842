//! One program for every driver:
//!
//! ```text
//! any_driver                        the device that is part of the program
//! any_driver --driver system        the libcuda.so.1 that is installed, on a GPU if that is NVIDIA's
//! any_driver --driver FILE          the libcuda.so.1 in this file
//! ```
//!
//! It queues many copies from and to pinned memory, with kernels between them, and waits once.

use anywarp::{Error, LaunchConfig, Platform};

const KERNELS: &str = include_str!("../kernels.ptx");
const PIECES: usize = 8;
const PIECE: usize = 1 << 15;

fn platform() -> Result<Platform, Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => Platform::embedded(),
        ["--driver", "system"] => Platform::system(),
        // SAFETY: whoever starts the program says that the file is a CUDA driver.
        ["--driver", file] => unsafe { Platform::library(file) },
        _ => {
            eprintln!("usage: any_driver [--driver system|FILE]");
            std::process::exit(2);
        }
    }
}

fn main() -> Result<(), Error> {
    let platform = platform()?;
    let device = platform.device(0)?;
    let (major, minor) = platform.cuda_version()?;
    println!("CUDA {major}.{minor} on {}", device.name());

    let context = device.create_context()?;
    let module = context.load_ptx(KERNELS)?;
    let saxpy = module.function("saxpy")?;
    let config = LaunchConfig::for_threads(PIECE as u32, saxpy.best_config(0)?.block[0]);

    let mut input = context.pinned::<f32>(PIECES * PIECE)?;
    let mut output = context.pinned::<f32>(PIECES * PIECE)?;
    for (i, value) in input.iter_mut().enumerate() {
        *value = i as f32;
    }
    let (x, mut y) = (context.zeroed::<f32>(PIECE)?, context.zeroed::<f32>(PIECE)?);
    let stream = context.create_stream()?;
    // All is queued before the first of it is done; what the scope borrows cannot be touched before it is over.
    stream.scope(|scope| {
        for (input, output) in input.chunks(PIECE).zip(output.chunks_mut(PIECE)) {
            scope.copy_from_host(&mut y, input)?;
            // SAFETY: saxpy reads and writes a piece of each; one stream runs its work in order.
            unsafe { saxpy.launch(scope.stream(), config, (PIECE as u32, 2.0_f32, &x, &mut y))? };
            scope.copy_to_host(output, &y)?;
        }
        Ok(())
    })?;
    // x is zero: y stays what was copied there.
    assert_eq!(output[..], input[..]);
    println!("ok: {} elements there and back in {PIECES} pieces", output.len());
    Ok(())
}
