//! `cargo run --example lower -- FILE.ptx [KERNEL]`: checks a module and prints the IR of its kernels.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let Some(path) = args.next() else {
        eprintln!("usage: lower FILE.ptx [KERNEL]");
        return ExitCode::FAILURE;
    };
    match lower(&path, args.next().as_deref()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{path}: {message}");
            ExitCode::FAILURE
        }
    }
}

fn lower(path: &str, only: Option<&str>) -> Result<(), String> {
    let source = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
    let module = ptx::parse(&source).map_err(|e| e.to_string())?;
    ptx::lower::check(&source, &module).map_err(|e| e.to_string())?;
    for kernel in module.entries().map(|f| f.name.text).filter(|name| only.is_none_or(|o| o == *name)) {
        let program = ptx::lower::program(&source, &module, kernel).map_err(|e| e.to_string())?;
        simt_ir::verify(&program).map_err(|e| e.to_string())?;
        println!("{program}");
    }
    Ok(())
}
