//! Writes the products of `kernel_tests::products` for a GPU to answer, or their answers on a back end.
//!
//! `products FOLDER` writes a module for each, the numbers that they are made of, and `products.tsv`: name, threads, what the image and
//! the registers hold, bytes of the result. `scripts/record-products.py` runs them. `products BACKEND NAME` prints a result in hexadecimal.

use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;

use kernel_tests::backend;
use kernel_tests::products::{self, Part};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match &arguments[..] {
        [folder] => write(Path::new(folder)),
        [back_end, name] => print(back_end, name),
        _ => Err("products FOLDER | products BACKEND NAME".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn write(folder: &Path) -> Result<(), String> {
    let save = |name: &str, bytes: &[u8]| {
        std::fs::write(folder.join(name), bytes).map_err(|error| format!("{name}: {error}"))
    };
    std::fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    let mut index = String::new();
    for (number, product) in products::all().iter().enumerate() {
        save(&format!("{number}.ptx"), product.text.as_bytes())?;
        let parts = |parts: &[Part]| {
            let parts = parts.iter().filter(|part| part.bytes > 0);
            let parts: Vec<String> =
                parts.map(|part| format!("{}:{}:{}", part.pool.name(), part.offset, part.bytes)).collect();
            parts.join(" ")
        };
        for part in product.image.iter().chain(&product.registers) {
            save(&format!("{}.pool", part.pool.name()), part.pool.bytes())?;
        }
        let _ = writeln!(
            index,
            "{number}\t{}\t{}\t{}\t{}\t{}",
            product.name,
            product.threads,
            parts(&product.image),
            parts(&product.registers),
            product.bytes
        );
    }
    save("products.tsv", index.as_bytes())
}

fn print(back_end: &str, name: &str) -> Result<(), String> {
    let all = products::all();
    let product = all.iter().find(|product| product.name == name).ok_or("there is no such product")?;
    let bytes = match back_end {
        "model" => product.expected(),
        _ => product.run(&*backend::open(back_end)?)?,
    };
    let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    println!("{text}");
    Ok(())
}
