//! Tests that carry their launches and expected output in comments.
//!
//! ```text
//! // RUN k grid=2 block=64,1,1 shared=256     a launch of kernel k; what follows belongs to it
//! // RUN k grid=8 workers=4                  the same, its blocks spread over four threads of the host
//! // RUN k grid=8 cluster=2,1,1               the same, in clusters; otherwise as the kernel says
//! // BUFFER u32 0..127                        a parameter: address of an array with this content
//! // VALUE u32 128                            a parameter by value
//! // TEXTURE - 2d 8 4 0 u8 2 point clamp 0 elem 1 point 0: u8 0..63
//!                                             a parameter: a texture or surface, told as in a line of `textures.tsv`, and its texels
//! // TEXTURE name 2d 8 4 0 …                  the same, which a variable of the module is bound to
//! // OUT 0: 1*32 2*32                         content of the first buffer afterwards
//! // FAULT Misaligned thread=5,0,0            instead of output
//! // FAULT Trap thread=0,0,0 from=a.cu:7      the same, and where the failing line comes from by `.loc` and `.file`
//! // PRINTS hello|3                           a line printed, with its first argument word
//! // INTERPRETED                              compiled code cannot do it, and says so: it is left to the interpreter
//! ```
//!
//! Lists hold numbers (`7`, `-1`, `0x10`, `1.5`), repetitions (`7*32`) and inclusive ranges with an optional step
//! (`0..31`, `0..62/2`, `31..0`). A kernel is launched once for each `RUN`.

use std::path::{Path, PathBuf};

use kernel_abi::{Fault, KernelBackend};

use crate::machine::{self, Grid};
use crate::module::{LoadFailure, Loaded};
use crate::texture::Descriptor;

/// A file of launches.
pub struct TestFile {
    /// Where it is.
    pub path: PathBuf,
    /// PTX.
    pub text: String,
    /// Its launches.
    pub launches: Vec<Launch>,
}

/// One launch and what is expected of it.
pub struct Launch {
    entry: String,
    grid: Grid,
    workers: u32,
    args: Vec<Arg>,
    bound: Vec<(String, Image)>,
    outputs: Vec<(usize, List)>,
    fault: Option<ExpectedFault>,
    prints: Vec<String>,
    is_interpreted: bool,
    line: usize,
}

enum Arg {
    Buffer(List),
    Value(List),
    Object(Image),
}

/// A texture or surface and its texels.
struct Image {
    descriptor: Descriptor,
    texels: List,
}

impl Image {
    /// The name that it is for, and the image.
    fn parse(text: &str) -> Result<(String, Image), String> {
        let (words, texels) = text.split_once(':').ok_or("no texels")?;
        let words: Vec<&str> = words.split_whitespace().collect();
        let name = words.first().ok_or("no name")?.to_string();
        let descriptor = Descriptor::parse(&words.join("\t"))?;
        Ok((name, Image { descriptor, texels: List::parse(texels).ok_or("no list")? }))
    }
}

struct ExpectedFault {
    kind: String,
    thread: Option<[u32; 3]>,
    origin: Option<String>,
}

/// Elements of one type.
#[derive(Clone, Debug, PartialEq)]
struct List {
    ty: String,
    values: Vec<u64>,
}

impl TestFile {
    /// Reads a test.
    pub fn read(path: &Path) -> Result<TestFile, String> {
        let text = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
        let mut launches: Vec<Launch> = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let Some(directive) = line.strip_prefix("// ") else { continue };
            let (word, rest) = directive.split_once(' ').unwrap_or((directive, ""));
            let bad = |what: &str| format!("{}:{number}: {what}: {line}", path.display());
            if word == "RUN" {
                launches.push(Launch::parse(rest, number).ok_or_else(|| bad("no launch"))?);
                continue;
            }
            let Some(launch) = launches.last_mut() else { continue };
            match word {
                "BUFFER" => launch.args.push(Arg::Buffer(List::parse(rest).ok_or_else(|| bad("no list"))?)),
                "VALUE" => launch.args.push(Arg::Value(List::parse(rest).ok_or_else(|| bad("no value"))?)),
                "TEXTURE" => match Image::parse(rest).map_err(|why| bad(&why))? {
                    (name, image) if name == "-" => launch.args.push(Arg::Object(image)),
                    bound => launch.bound.push(bound),
                },
                "OUT" => {
                    let (index, list) = rest.split_once(':').ok_or_else(|| bad("no index"))?;
                    let index: usize = index.trim().parse().map_err(|_| bad("no index"))?;
                    let ty = launch.buffer_type(index).ok_or_else(|| bad("no such buffer"))?;
                    let list = List::parse(&format!("{ty} {list}")).ok_or_else(|| bad("no list"))?;
                    launch.outputs.push((index, list));
                }
                "FAULT" => launch.fault = Some(ExpectedFault::parse(rest).ok_or_else(|| bad("no fault"))?),
                "PRINTS" => launch.prints.push(rest.into()),
                "INTERPRETED" => launch.is_interpreted = true,
                _ => {}
            }
        }
        if launches.is_empty() {
            return Err(format!("{}: no RUN line", path.display()));
        }
        Ok(TestFile { path: path.into(), text, launches })
    }

    /// Runs all launches on a back end.
    pub fn run(&self, backend: &dyn KernelBackend) -> Result<(), String> {
        let loaded = Loaded::new(&self.text).map_err(|failure| match failure {
            LoadFailure::Unsupported(why) | LoadFailure::Wrong(why) => why,
        })?;
        for launch in &self.launches {
            launch.run(&loaded, backend).map_err(|why| {
                format!("{}:{} on {}: {why}", self.path.display(), launch.line, backend.name())
            })?;
        }
        Ok(())
    }
}

impl Launch {
    fn parse(text: &str, line: usize) -> Option<Launch> {
        let mut words = text.split_whitespace();
        let entry = words.next()?.to_string();
        let mut grid = Grid { grid: [1; 3], block: [32, 1, 1], dynamic_shared: 0, cluster: None };
        let mut workers = 1;
        for word in words {
            let (name, value) = word.split_once('=')?;
            match name {
                "grid" => grid.grid = triple(value)?,
                "block" => grid.block = triple(value)?,
                "workers" => workers = value.parse().ok().filter(|workers| *workers > 0)?,
                "cluster" => grid.cluster = Some(triple(value)?),
                "shared" => grid.dynamic_shared = value.parse().ok()?,
                _ => return None,
            }
        }
        let (args, bound, outputs, prints) = (vec![], vec![], vec![], vec![]);
        let is_interpreted = false;
        Some(Launch { entry, grid, workers, args, bound, outputs, fault: None, prints, is_interpreted, line })
    }

    fn buffers(&self) -> impl Iterator<Item = &List> {
        self.args.iter().filter_map(|arg| match arg {
            Arg::Buffer(list) => Some(list),
            Arg::Value(_) | Arg::Object(_) => None,
        })
    }

    fn buffer_type(&self, index: usize) -> Option<String> {
        self.buffers().nth(index).map(|list| list.ty.clone())
    }

    fn run(&self, loaded: &Loaded, backend: &dyn KernelBackend) -> Result<(), String> {
        let kernel = match loaded.compile(backend, &self.entry, self.grid) {
            Err(error) if error.unsupported && self.is_interpreted => return Ok(()),
            kernel => kernel.map_err(|e| e.message)?,
        };
        if self.is_interpreted && backend.name() != "interp" {
            return Err("it is compiled, although it is expected not to be".into());
        }
        let grid = loaded.in_clusters(self.grid, &self.entry);
        let mut params: Vec<u8> = Vec::new();
        let mut buffers: Vec<Vec<Line>> = Vec::new();
        let mut objects = Vec::new();
        for arg in &self.args {
            let (bytes, align) = match arg {
                Arg::Buffer(list) => {
                    let mut lines = vec![Line::default(); list.bytes().len().div_ceil(size_of::<Line>())];
                    // SAFETY: the lines hold at least the bytes of the list.
                    unsafe {
                        let bytes = list.bytes();
                        std::ptr::copy_nonoverlapping(bytes.as_ptr(), lines.as_mut_ptr().cast(), bytes.len());
                    }
                    let address = lines.as_mut_ptr() as u64;
                    buffers.push(lines);
                    (address.to_le_bytes().to_vec(), 8)
                }
                Arg::Value(list) => (list.bytes(), list.size()),
                Arg::Object(image) => {
                    let object = image.descriptor.create(&image.texels.bytes())?;
                    let handle = object.handle().to_le_bytes().to_vec();
                    objects.push(object);
                    (handle, 8)
                }
            };
            params.resize(params.len().next_multiple_of(align), 0);
            params.extend(bytes);
        }
        let names = &kernel.info().globals;
        let mut globals = loaded.globals(names);
        for (name, image) in &self.bound {
            let object = image.descriptor.create(&image.texels.bytes())?;
            if let Some(at) = names.iter().position(|known| known == name) {
                globals[at] = object.handle();
            }
            objects.push(object);
        }
        let result = machine::launch_on(self.workers, &*kernel, grid, &params, &globals);
        match (&self.fault, result) {
            (Some(expected), Err(fault)) => expected.check(&fault, self.grid.block, loaded.text()),
            (Some(expected), Ok(_)) => Err(format!("ran well, but {} is expected", expected.kind)),
            (None, Err(fault)) => Err(format!("{fault:?}")),
            (None, Ok(printed)) => {
                let mut printed = printed;
                let mut expected = self.prints.clone();
                // Threads print in no particular order.
                printed.sort();
                expected.sort();
                if printed != expected {
                    return Err(format!("printed {printed:?} instead of {expected:?}"));
                }
                self.check_outputs(&buffers)
            }
        }
    }

    fn check_outputs(&self, buffers: &[Vec<Line>]) -> Result<(), String> {
        for (index, expected) in &self.outputs {
            let size = expected.size();
            // SAFETY: plain words, viewed as bytes.
            let bytes = unsafe {
                let lines = &buffers[*index][..];
                std::slice::from_raw_parts(lines.as_ptr().cast::<u8>(), size_of_val(lines))
            };
            for (i, value) in expected.values.iter().enumerate() {
                let mut word = [0; 8];
                word[..size].copy_from_slice(&bytes[i * size..(i + 1) * size]);
                let got = u64::from_le_bytes(word);
                if got != *value {
                    return Err(format!("buffer {index}, element {i}: {got:#x} instead of {value:#x}"));
                }
            }
        }
        Ok(())
    }
}

impl ExpectedFault {
    fn parse(text: &str) -> Option<ExpectedFault> {
        let mut words = text.split_whitespace();
        let kind = words.next()?.to_string();
        let (mut thread, mut origin) = (None, None);
        while let Some(word) = words.next() {
            match word.split_once('=')? {
                ("thread", value) => thread = Some(triple(value)?),
                // Calls around it have spaces between them.
                ("from", value) => {
                    origin = Some([value].into_iter().chain(words.by_ref()).collect::<Vec<_>>().join(" "));
                }
                _ => return None,
            }
        }
        Some(ExpectedFault { kind, thread, origin })
    }

    /// Lane and line may be unknown, but if they are said they must be right.
    fn check(&self, fault: &Fault, block: [u32; 3], ptx: &str) -> Result<(), String> {
        let kind = format!("{:?}", fault.kind);
        if kind != self.kind {
            return Err(format!("{kind} instead of {}", self.kind));
        }
        match (self.thread, fault.thread(block)) {
            (Some(expected), Some(got)) if expected != got => {
                return Err(format!("thread {got:?} instead of {expected:?}"));
            }
            _ => {}
        }
        let origin = fault.ptx_line.and_then(|line| ptx::Origin::of_line(ptx, line));
        match (&self.origin, origin.map(|origin| origin.to_string())) {
            (Some(expected), Some(got)) if *expected != got => Err(format!("from {got}, not {expected}")),
            (Some(expected), None) if fault.ptx_line.is_some() => {
                Err(format!("from nowhere, not {expected}"))
            }
            _ => Ok(()),
        }
    }
}

impl List {
    fn parse(text: &str) -> Option<List> {
        let mut words = text.split_whitespace();
        let ty = words.next()?.to_string();
        let mut values = Vec::new();
        for word in words {
            if let Some((value, count)) = word.split_once('*') {
                let value = number(&ty, value)?;
                values.extend(std::iter::repeat_n(value, count.parse().ok()?));
            } else if let Some((from, to)) = word.split_once("..") {
                let (to, step) = to.split_once('/').unwrap_or((to, "1"));
                let (from, to, step): (i64, i64, usize) =
                    (from.parse().ok()?, to.parse().ok()?, step.parse().ok()?);
                let up: Vec<i64> = (from.min(to)..=from.max(to)).step_by(step).collect();
                let run: Box<dyn Iterator<Item = i64>> =
                    if from <= to { Box::new(up.into_iter()) } else { Box::new(up.into_iter().rev()) };
                for value in run {
                    values.push(number(&ty, &value.to_string())?);
                }
            } else {
                values.push(number(&ty, word)?);
            }
        }
        Some(List { ty, values })
    }

    fn size(&self) -> usize {
        self.ty[1..].parse::<usize>().map_or(4, |bits| bits / 8)
    }

    fn bytes(&self) -> Vec<u8> {
        self.values.iter().flat_map(|value| value.to_le_bytes()[..self.size()].to_vec()).collect()
    }
}

/// A piece of a buffer, aligned as the widest vectors are.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct Line {
    _words: [u64; 8],
}

fn number(ty: &str, text: &str) -> Option<u64> {
    let bits: u32 = ty.get(1..)?.parse().ok()?;
    let mask = u64::MAX >> (64 - bits);
    if let Some(hex) = text.strip_prefix("0x") {
        return u64::from_str_radix(hex, 16).ok().map(|value| value & mask);
    }
    match ty {
        "f32" => text.parse::<f32>().ok().map(|value| value.to_bits().into()),
        "f64" => text.parse::<f64>().ok().map(f64::to_bits),
        _ => text.parse::<i128>().ok().map(|value| value as u64 & mask),
    }
}

fn triple(text: &str) -> Option<[u32; 3]> {
    let mut parts = [1; 3];
    for (i, part) in text.split(',').enumerate() {
        *parts.get_mut(i)? = part.parse().ok()?;
    }
    Some(parts)
}
