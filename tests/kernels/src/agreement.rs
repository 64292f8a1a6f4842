//! Kernels made from the instruction table: every row in every modifier, run on two back ends that must agree bit for bit.

use std::fmt::Write;

use kernel_abi::KernelBackend;
use ptx::isa::Example;

use crate::machine::{self, Grid};
use crate::module::{LoadFailure, Loaded};

/// Threads that execute each instruction, with different operands.
const THREADS: u32 = 64;
/// Bytes of memory that each thread has for itself.
const SLOT: u32 = 64;
/// Words of operands of a thread, as many as there are source registers of a class.
const WORDS: u32 = 16;

/// The instructions of one row, as kernel text, and what is not PTX in spite of the table.
pub struct Kernel {
    text: String,
    outputs: usize,
    /// Instructions that the kernel has.
    pub examples: Vec<Example>,
    /// Instructions that are refused, with the reason.
    pub refused: Vec<(Example, String)>,
}

impl Kernel {
    /// The kernel for the examples of a row.
    pub fn new(examples: Vec<Example>) -> Kernel {
        let mut kernel =
            Kernel { text: String::new(), outputs: 0, examples: Vec::new(), refused: Vec::new() };
        for example in examples {
            match load(&example) {
                Ok(_) => kernel.examples.push(example),
                Err(failure) => kernel.refused.push((example, format!("{failure:?}"))),
            }
        }
        (kernel.text, kernel.outputs) = module(&kernel.examples);
        kernel
    }

    /// What each thread's results and memory are on a back end.
    ///
    /// # Errors
    /// The kernel does not compile or fails.
    pub fn run(&self, backend: &dyn KernelBackend) -> Result<Vec<u64>, String> {
        let grid = Grid { grid: [1; 3], block: [THREADS, 1, 1], dynamic_shared: 0, cluster: None };
        let loaded = Loaded::new(&self.text).map_err(|failure| format!("{failure:?}"))?;
        let kernel = loaded.compile(backend, "k", grid).map_err(|e| e.message)?;
        let inputs = inputs();
        let mut memory = vec![0u64; (THREADS * SLOT / 8) as usize + 32];
        let mut outputs = vec![0u64; self.outputs * THREADS as usize + 1];
        // As device memory is aligned.
        let skip = (256 - memory.as_ptr() as usize % 256) / 8;
        let slots = &mut memory[skip..];
        for (word, input) in slots.iter_mut().zip(&inputs) {
            *word = *input;
        }
        let addresses = [inputs.as_ptr() as u64, slots.as_ptr() as u64, outputs.as_mut_ptr() as u64];
        let mut params: Vec<u8> = addresses.iter().flat_map(|address| address.to_le_bytes()).collect();
        params.resize(32, 0);
        params.extend(inputs.iter().skip(7).take(4).flat_map(|word| word.to_le_bytes()));
        machine::launch(&*kernel, grid, &params, &loaded.globals(&kernel.info().globals))
            .map_err(|fault| format!("{fault:?}"))?;
        outputs.truncate(self.outputs * THREADS as usize);
        Ok(outputs)
    }

    /// The instruction that the n-th result is of.
    pub fn example_of(&self, result: usize) -> &str {
        let mut at = result / THREADS as usize;
        for example in &self.examples {
            let count = fetches(example).iter().map(|(_, words)| words).sum();
            if at < count {
                return &example.text;
            }
            at -= count;
        }
        ""
    }
}

fn load(example: &Example) -> Result<Loaded, LoadFailure> {
    Loaded::new(&module(std::slice::from_ref(example)).0)
}

/// Whether a module with the instruction loads.
pub fn is_legal(example: &Example) -> bool {
    load(example).is_ok()
}

/// Operands: those on which arithmetic is most likely to differ, then others.
fn inputs() -> Vec<u64> {
    const EDGES: [u64; 24] = [
        0,
        1,
        2,
        5,
        u64::MAX,
        0x8000_0000_0000_0000,
        0x7fff_ffff_ffff_ffff,
        0x8000_0000_8000_0000,
        0x7fff_ffff_7fff_ffff,
        0x3f80_0000_3f80_0000,
        0x3ff0_0000_0000_0000,
        0xbf80_0000_c020_0000,
        0x7fc0_1234_7f80_0000,
        0x7f80_0001_0000_0001,
        0x0000_0001_007f_ffff,
        0x7ff8_0000_0000_0123,
        0x0008_0000_0000_0001,
        0x3c00_bc00_3c00_bc00,
        0x3f80_bf80_4049_c049,
        0x7e00_7c00_fc00_0001,
        0x4b00_0001_4f00_0000,
        0x41e0_0000_0000_0000,
        0xffff_8000_7fff_0001,
        0x0102_0408_1020_4080,
    ];
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    (0..THREADS * WORDS)
        .map(|at| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            // Every other thread has plain numbers.
            let thread = at / WORDS;
            if thread.is_multiple_of(2) { EDGES[(state % 24) as usize] } else { state }
        })
        .collect()
}

/// A module whose kernel executes the examples one after another, each with the same operands, and how many words of results each
/// thread has. Word n of thread t is at `n * THREADS + t`.
fn module(examples: &[Example]) -> (String, usize) {
    let mut text = match examples.iter().map(|example| example.sm).max() {
        Some(sm) if sm > ptx::isa::DEVICE => HEAD.replacen("sm_90a", &format!("sm_{sm}"), 1),
        _ => HEAD.to_owned(),
    };
    for at in 0..WORDS {
        let next = (at + 1) % WORDS;
        let _ = writeln!(
            text,
            "    ld.global.b64 %d{at}, [%in+{}]; cvt.u32.u64 %r{at}, %d{at}; cvt.u16.u64 %h{at}, %d{at}; cvt.u8.u64 %b{at}, %d{at};\n    \
             and.b32 %low, %r{at}, 1; setp.ne.u32 %p{at}, %low, 0; ld.global.b64 %w0, [%in+{}];\n    \
             mov.b128 %q{at}, {{%d{at}, %w0}};",
            8 * at,
            8 * next,
        );
    }
    let mut outputs = 0;
    for example in examples {
        // A matrix's rows are stored by other threads than those that have their addresses.
        let _ = writeln!(text, "    {}\n    bar.warp.sync 0xffffffff;", example.text);
        for (fetch, words) in fetches(example) {
            let _ = writeln!(text, "    {fetch}");
            for word in 0..words {
                let _ =
                    writeln!(text, "    st.global.b64 [%out+{}], %w{word};", 8 * THREADS as usize * outputs);
                outputs += 1;
            }
        }
    }
    text.push_str("    ret;\n}\n");
    (text, outputs)
}

/// How an instruction's results, and the memory that it names, get into `%w0` and `%w1`, and how many words of them they take.
fn fetches(example: &Example) -> Vec<(String, usize)> {
    let result = |register: &String| match register.as_bytes()[1] {
        b'p' => (format!("selp.b64 %w0, 1, 0, {register};"), 1),
        b'b' => (format!("cvt.u64.u8 %w0, {register};"), 1),
        b'h' => (format!("cvt.u64.u16 %w0, {register};"), 1),
        b'r' => (format!("cvt.u64.u32 %w0, {register};"), 1),
        b'd' => (format!("mov.b64 %w0, {register};"), 1),
        _ => (format!("mov.b128 {{%w0, %w1}}, {register};"), 2),
    };
    let mut fetches: Vec<(String, usize)> = example.results.iter().map(result).collect();
    if let Some(address) = &example.address {
        let space = match address.as_str() {
            "[%r40]" => ".shared",
            "[local_memory]" => ".local",
            "[constant]" => ".const",
            "[parameter]" => ".param",
            _ => "",
        };
        let second = address.replace(']', "+16]");
        fetches.push((format!("ld{space}.v2.b64 {{%w0, %w1}}, {address};"), 2));
        fetches.push((format!("ld{space}.v2.b64 {{%w0, %w1}}, {second};"), 2));
    }
    fetches
}

const HEAD: &str = "\
.version 9.0
.target sm_90a
.address_size 64
.const .align 16 .b64 constant[4] = {0x0123456789abcdef, 0x3f800000bf800000, 7, 0xfedcba9876543210};
.global .align 16 .b8 memory[64];
.visible .entry k(.param .u64 inputs, .param .u64 slots, .param .u64 outputs, .param .align 16 .b8 parameter[32])
{
    .reg .pred %p<64>;
    .reg .b8 %b<64>;
    .reg .b16 %h<64>;
    .reg .b32 %r<64>, %t, %low;
    .reg .b64 %d<64>, %in, %out, %w<2>;
    .reg .b128 %q<64>;
    .shared .align 16 .b8 shared_memory[4096];
    .local .align 16 .b8 local_memory[64];
    mov.u32 %t, %tid.x;
    ld.param.u64 %in, [inputs];
    mad.wide.u32 %in, %t, 128, %in;
    ld.param.u64 %d40, [slots];
    mad.wide.u32 %d40, %t, 64, %d40;
    ld.param.u64 %out, [outputs];
    mad.wide.u32 %out, %t, 8, %out;
    mov.u32 %r40, shared_memory;
    mad.lo.u32 %r40, %t, 64, %r40;
    cvt.u64.u32 %d41, %r40;
    cvta.shared.u64 %d41, %d41;
    ld.v2.b64 {%w0, %w1}, [%d40];
    st.shared.v2.b64 [%r40], {%w0, %w1};
    st.local.v2.b64 [local_memory], {%w0, %w1};
    ld.v2.b64 {%w0, %w1}, [%d40+16];
    st.shared.v2.b64 [%r40+16], {%w0, %w1};
    st.local.v2.b64 [local_memory+16], {%w0, %w1};
";
