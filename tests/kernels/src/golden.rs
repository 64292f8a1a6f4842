//! Replays corpora of what the hardware answered.
//!
//! A corpus is a folder: `textures.tsv` describes its textures and surfaces, `index.tsv.zst` has a line for each case, `kernels.ptx.zst` all modules one after another,
//! `data.bin.zst` all arrays. A case is one launch of a small kernel with its inputs and expected outputs, element by
//! element, and for each output how exactly it must agree.

use std::collections::HashMap;
use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use kernel_abi::KernelBackend;

use crate::machine::{self, Grid};
use crate::module::{LoadFailure, Loaded};
use crate::texture;

/// A corpus in memory.
pub struct Corpus {
    /// The cases in order.
    pub cases: Vec<Case>,
    /// Approximations too must agree in every bit.
    pub every_bit: bool,
    modules: HashMap<String, String>,
    textures: Vec<texture::Descriptor>,
    data: Vec<u8>,
}

/// One launch.
pub struct Case {
    /// What it tests: the instruction with its modifiers.
    pub name: String,
    /// Family of instructions.
    pub group: String,
    /// Module.
    pub ptx: String,
    entry: String,
    grid: Grid,
    args: Vec<Arg>,
}

/// One kernel parameter.
enum Arg {
    /// Address of an array: its type, content before (poison if none) and after (if it is checked).
    Buffer { ty: String, count: usize, before: Option<usize>, after: Option<(usize, Compare)> },
    /// A value.
    Value { offset: usize, bytes: usize },
    /// A texture or surface object: its line in the list of them, and where its texels are.
    Object { id: usize, bytes: usize, offset: usize },
}

/// How exactly an output must agree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Compare {
    /// Every bit.
    Exact,
    /// Every bit, but NaNs are equal.
    Nan,
    /// Within so many units in the last place.
    Ulp(f64),
    /// Relative error up to 2^n.
    Relative(f64),
    /// Absolute error up to 2^n.
    Absolute(f64),
    /// Absolute up to 2^n near 1, relative elsewhere.
    Log(f64),
    /// Not promised.
    Info,
}

/// How a case came out.
pub enum Outcome {
    /// As on the hardware.
    Passed,
    /// The module was refused at load because something in it is not implemented.
    Refused(String),
    /// Differently.
    Failed(String),
}

impl Corpus {
    /// Reads the corpora of a folder: itself, and those that are folders in it.
    pub fn read_all(folder: &Path) -> Result<Vec<Corpus>, String> {
        let wrong = |error| format!("{}: {error}", folder.display());
        let mut folders = vec![folder.to_owned()];
        for entry in std::fs::read_dir(folder).map_err(wrong)? {
            folders.push(entry.map_err(wrong)?.path());
        }
        folders.retain(|folder| folder.join("index.tsv.zst").exists());
        folders.sort();
        if folders.is_empty() {
            return Err(format!("{}: no corpus is there", folder.display()));
        }
        folders.iter().map(|folder| Corpus::read(folder)).collect()
    }

    /// Reads a corpus.
    pub fn read(folder: &Path) -> Result<Corpus, String> {
        let index = String::from_utf8(unpack(&folder.join("index.tsv.zst"))?).map_err(|e| e.to_string())?;
        let kernels =
            String::from_utf8(unpack(&folder.join("kernels.ptx.zst"))?).map_err(|e| e.to_string())?;
        let data = unpack(&folder.join("data.bin.zst"))?;
        let cases = index.lines().skip(1).map(Case::parse).collect::<Result<_, _>>()?;
        let mut modules: HashMap<String, String> = HashMap::new();
        let mut current = None;
        for line in kernels.lines() {
            if let Some(name) = line.strip_prefix("//// FILE ") {
                current = Some(name.to_string());
            } else if let Some(name) = &current {
                let text = modules.entry(name.clone()).or_default();
                text.push_str(line);
                text.push('\n');
            }
        }
        let textures = std::fs::read_to_string(folder.join("textures.tsv")).unwrap_or_default();
        let textures = textures.lines().skip(1).map(texture::Descriptor::parse).collect::<Result<_, _>>()?;
        Ok(Corpus { cases, every_bit: false, modules, textures, data })
    }

    /// Names of all modules, in order.
    pub fn module_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.modules.keys().map(String::as_str).collect();
        names.sort_unstable();
        names
    }

    /// The text of a module.
    pub fn module(&self, name: &str) -> Option<&str> {
        self.modules.get(name).map(String::as_str)
    }

    /// Runs the wanted cases on a back end, as many at a time as there are processors, and answers them in their order.
    pub fn run_all(
        &self,
        backend: &dyn KernelBackend,
        wanted: impl Fn(&Case) -> bool,
    ) -> Vec<(&Case, Outcome)> {
        let cases: Vec<&Case> = self.cases.iter().filter(|case| wanted(case)).collect();
        let next = AtomicUsize::new(0);
        let work = || {
            let mut done = Vec::new();
            loop {
                let i = next.fetch_add(1, Ordering::Relaxed);
                let Some(case) = cases.get(i) else { return done };
                done.push((i, self.run(case, backend)));
            }
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let mut outcomes: Vec<(usize, Outcome)> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            workers.into_iter().flat_map(|worker| worker.join().expect("no case panics")).collect()
        });
        outcomes.sort_by_key(|(i, _)| *i);
        outcomes.into_iter().map(|(i, outcome)| (cases[i], outcome)).collect()
    }

    /// Runs a case on a back end.
    pub fn run(&self, case: &Case, backend: &dyn KernelBackend) -> Outcome {
        let Some(text) = self.module(&case.ptx) else {
            return Outcome::Failed(format!("the corpus has no {}", case.ptx));
        };
        // Each case by itself: one instruction that is refused must not hide the others of its module.
        let text = only_kernel(text, &case.entry);
        let loaded = match Loaded::new(&text) {
            Ok(loaded) => loaded,
            Err(LoadFailure::Unsupported(why)) => return Outcome::Refused(why),
            Err(LoadFailure::Wrong(why)) => return Outcome::Failed(why),
        };
        let kernel = match loaded.compile(backend, &case.entry, case.grid) {
            Ok(kernel) => kernel,
            Err(error) if error.unsupported => return Outcome::Refused(error.message),
            Err(error) => return Outcome::Failed(error.message),
        };
        let mut params = Vec::new();
        let mut buffers = Vec::new();
        let mut objects = Vec::new();
        for arg in &case.args {
            match arg {
                Arg::Buffer { ty, count, before, .. } => {
                    let bytes = count * size_of_type(ty);
                    let mut buffer = Buffer::new(bytes);
                    match before {
                        Some(offset) => {
                            buffer.bytes_mut().copy_from_slice(&self.data[*offset..offset + bytes])
                        }
                        None => buffer.bytes_mut().fill(0xcb),
                    }
                    params.resize(params.len().next_multiple_of(8), 0);
                    params.extend_from_slice(&(buffer.bytes_mut().as_ptr() as u64).to_le_bytes());
                    buffers.push(Some(buffer));
                }
                Arg::Value { offset, bytes } => {
                    params.resize(params.len().next_multiple_of((*bytes).clamp(1, 16)), 0);
                    params.extend_from_slice(&self.data[*offset..offset + bytes]);
                    buffers.push(None);
                }
                Arg::Object { id, bytes, offset } => {
                    let texels = &self.data[*offset..offset + bytes];
                    let Some(descriptor) = self.textures.get(*id) else {
                        return Outcome::Failed(format!("the corpus has no texture {id}"));
                    };
                    let object = match descriptor.create(texels) {
                        Ok(object) => object,
                        Err(why) => return Outcome::Failed(why),
                    };
                    params.resize(params.len().next_multiple_of(8), 0);
                    params.extend_from_slice(&object.handle().to_le_bytes());
                    objects.push(object);
                    buffers.push(None);
                }
            }
        }
        params.resize(params.len().max(kernel.info().param_bytes as usize), 0);
        let grid = loaded.in_clusters(case.grid, &case.entry);
        if let Err(fault) = machine::launch(&*kernel, grid, &params, &loaded.globals(&kernel.info().globals))
        {
            return Outcome::Failed(format!("{fault:?}"));
        }
        for (arg, buffer) in case.args.iter().zip(&mut buffers) {
            if let (Arg::Buffer { ty, count, after: Some((offset, compare)), .. }, Some(buffer)) =
                (arg, buffer)
            {
                let expected = &self.data[*offset..offset + count * size_of_type(ty)];
                let compare = if self.every_bit { compare.strictest() } else { *compare };
                if let Err(why) = check(ty, compare, buffer.bytes_mut(), expected) {
                    return Outcome::Failed(why);
                }
            }
        }
        Outcome::Passed
    }
}

/// Memory aligned as device allocations are.
struct Buffer {
    words: Vec<[u64; 32]>,
    bytes: usize,
}

impl Buffer {
    fn new(bytes: usize) -> Buffer {
        // One chunk more: the vector's own alignment is 8.
        Buffer { words: vec![[0; 32]; bytes.div_ceil(256) + 1], bytes }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        let start = self.words.as_mut_ptr() as usize;
        let skip = start.next_multiple_of(256) - start;
        // SAFETY: the vector has 256 bytes more than asked for; `u64`s are plain bytes.
        unsafe { std::slice::from_raw_parts_mut((start + skip) as *mut u8, self.bytes) }
    }
}

/// The module's head, its declarations and one of its kernels.
fn only_kernel(text: &str, entry: &str) -> String {
    let mut kept = String::new();
    let mut section = String::new();
    let mut flush = |section: &mut String| {
        let kernel = section.contains(".entry ");
        if !kernel
            || section.contains(&format!(".entry {entry}("))
            || section.contains(&format!(".entry {entry} "))
        {
            kept.push_str(section);
        }
        section.clear();
    };
    for line in text.lines() {
        if line.starts_with("//// CASE") {
            flush(&mut section);
        }
        section.push_str(line);
        section.push('\n');
    }
    flush(&mut section);
    kept
}

fn unpack(path: &Path) -> Result<Vec<u8>, String> {
    let file = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut out = Vec::new();
    ruzstd::decoding::StreamingDecoder::new(&file[..])
        .map_err(|error| format!("{}: {error}", path.display()))?
        .read_to_end(&mut out)
        .map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(out)
}

impl Case {
    /// The kernel's name.
    pub fn entry(&self) -> &str {
        &self.entry
    }

    fn parse(line: &str) -> Result<Case, String> {
        let fields: Vec<&str> = line.split('\t').collect();
        let [_, name, group, ptx, entry, grid, block, args, ..] = fields[..] else {
            return Err(format!("index line with too few fields: {line}"));
        };
        let triple = |text: &str| -> Result<[u32; 3], String> {
            let parts: Vec<u32> = text.split(',').filter_map(|n| n.parse().ok()).collect();
            parts.try_into().map_err(|_| format!("{name}: {text} is no triple"))
        };
        Ok(Case {
            name: name.into(),
            group: group.into(),
            ptx: ptx.into(),
            entry: entry.into(),
            grid: Grid { grid: triple(grid)?, block: triple(block)?, dynamic_shared: 0, cluster: None },
            args: args
                .split(' ')
                .filter(|arg| !arg.is_empty())
                .map(|arg| Arg::parse(arg).ok_or_else(|| format!("{name}: {arg} is no argument")))
                .collect::<Result<_, _>>()?,
        })
    }
}

impl Arg {
    fn parse(text: &str) -> Option<Arg> {
        let parts: Vec<&str> = text.split(':').collect();
        let number = |i: usize| parts.get(i)?.parse::<usize>().ok();
        let buffer =
            |before, after| Some(Arg::Buffer { ty: parts[1].into(), count: number(2)?, before, after });
        match parts[0] {
            "in" => buffer(Some(number(3)?), None),
            "out" => buffer(None, Some((number(3)?, Compare::parse(parts.get(4)?)?))),
            "inout" => buffer(Some(number(3)?), Some((number(4)?, Compare::parse(parts.get(5)?)?))),
            "val" => Some(Arg::Value { offset: number(3)?, bytes: number(2)? * size_of_type(parts[1]) }),
            "tex" | "surf" => Some(Arg::Object { id: number(1)?, bytes: number(2)?, offset: number(3)? }),
            _ => None,
        }
    }
}

impl Compare {
    /// Without an error that an approximation may have.
    fn strictest(self) -> Compare {
        match self {
            Compare::Ulp(_) | Compare::Relative(_) | Compare::Absolute(_) | Compare::Log(_) => Compare::Exact,
            other => other,
        }
    }

    fn parse(text: &str) -> Option<Compare> {
        let (name, bound) = text.split_once('=').unwrap_or((text, ""));
        let bound = || bound.parse::<f64>().ok();
        Some(match name {
            "exact" => Compare::Exact,
            "nan" => Compare::Nan,
            "ulp" => Compare::Ulp(bound()?),
            "rel" => Compare::Relative(bound()?),
            "abs" => Compare::Absolute(bound()?),
            "lg2" => Compare::Log(bound()?),
            "info" => Compare::Info,
            // The order of sums is open for matrix products, and filter weights have few bits.
            "mma" | "filter" => Compare::Exact,
            _ => return None,
        })
    }
}

fn size_of_type(ty: &str) -> usize {
    match ty {
        "pred" | "u8" | "b8" | "s8" | "e4m3" | "e5m2" => 1,
        "u16" | "s16" | "b16" | "f16" | "bf16" | "e4m3x2" | "e5m2x2" => 2,
        "u64" | "s64" | "b64" | "f64" => 8,
        _ => 4,
    }
}

fn check(ty: &str, compare: Compare, got: &[u8], expected: &[u8]) -> Result<(), String> {
    let size = size_of_type(ty);
    let word = |bytes: &[u8]| {
        let mut word = [0; 8];
        word[..size].copy_from_slice(bytes);
        u64::from_le_bytes(word)
    };
    for (i, (got, expected)) in got.chunks(size).zip(expected.chunks(size)).enumerate() {
        let (got, expected) = (word(got), word(expected));
        if got != expected && !agrees(ty, compare, got, expected) {
            let digits = size * 2;
            return Err(format!(
                "element {i}: {got:0digits$x}, the hardware gave {expected:0digits$x} ({compare:?})"
            ));
        }
    }
    Ok(())
}

fn agrees(ty: &str, compare: Compare, got: u64, expected: u64) -> bool {
    // Packed types agree when both halves do.
    if let Some(half) = ty.strip_suffix("x2").filter(|half| matches!(*half, "f16" | "bf16")) {
        let part = |bits: u64, i: u32| bits >> (16 * i) & 0xffff;
        return (0..2).all(|i| {
            part(got, i) == part(expected, i) || agrees(half, compare, part(got, i), part(expected, i))
        });
    }
    let (Some(g), Some(e)) = (as_f64(ty, got), as_f64(ty, expected)) else {
        return compare == Compare::Info;
    };
    let both_nan = g.is_nan() && e.is_nan();
    // The recorded value may itself be off by the bound.
    let distance = (g - e).abs();
    match compare {
        Compare::Exact => false,
        Compare::Info => true,
        Compare::Nan => both_nan,
        _ if both_nan || g == e => true,
        _ if !g.is_finite() || !e.is_finite() => false,
        Compare::Ulp(n) => distance <= 2.0 * n * ulp(ty, e),
        Compare::Relative(n) => distance <= 2.0 * e.abs() * n.exp2() || distance <= ulp(ty, e),
        Compare::Absolute(n) => distance <= 2.0 * n.exp2(),
        Compare::Log(n) => distance <= 2.0 * n.exp2() * e.abs().max(1.0),
    }
}

fn as_f64(ty: &str, bits: u64) -> Option<f64> {
    Some(match ty {
        "f64" => f64::from_bits(bits),
        "f32" => f64::from(f32::from_bits(bits as u32)),
        "bf16" => f64::from(f32::from_bits((bits as u32) << 16)),
        "f16" => {
            let magnitude = bits & 0x7fff;
            let value = match magnitude >> 10 {
                0 => magnitude as f64 * (-24f64).exp2(),
                31 if magnitude & 0x3ff != 0 => f64::NAN,
                31 => f64::INFINITY,
                exp => (1024 + (magnitude & 0x3ff)) as f64 * (exp as f64 - 25.0).exp2(),
            };
            if bits & 0x8000 != 0 { -value } else { value }
        }
        _ => return None,
    })
}

/// One unit in the last place of the type at this magnitude.
fn ulp(ty: &str, value: f64) -> f64 {
    let (precision, min_exp): (i32, i32) = match ty {
        "f64" => (53, -1022),
        "f32" => (24, -126),
        "bf16" => (8, -126),
        _ => (11, -14),
    };
    let exp = if value == 0.0 { min_exp } else { (value.abs().log2().floor() as i32).max(min_exp) };
    f64::from(exp - precision + 1).exp2()
}
