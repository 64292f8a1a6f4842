//! Options of the just-in-time compiler and linker.
//!
//! | option | what it does here |
//! |---|---|
//! | logs and their sizes, `LOG_VERBOSE`, `WALL_TIME` | what the manual says |
//! | `MAX_REGISTERS`, `THREADS_PER_BLOCK`, `MAX_THREADS_PER_BLOCK`, `MIN_CTA_PER_SM`, `OVERRIDE_DIRECTIVE_VALUES` | become directives of each kernel: they bound its blocks, and the registers that its attributes tell |
//! | `TARGET` | which of a fat binary's texts is taken, and what PTX may use; code for another device than this loads nowhere |
//! | `GLOBAL_SYMBOL_*` | variables that PTX only declares are at the addresses given |
//! | `OPTIMIZATION_LEVEL`, `GENERATE_DEBUG_INFO` | checked against each other; the code is the same, and faults name its lines always |
//! | `TARGET_FROM_CUCONTEXT` | the default |
//! | `FALLBACK_STRATEGY` | nothing: there is no machine code to prefer |
//! | `GENERATE_LINE_INFO` | nothing: lines are kept always |
//! | `CACHE_MODE` | checked: the caches are the processor's |
//! | `FAST_COMPILE`, `SPLIT_COMPILE`, `POSITION_INDEPENDENT_CODE` | nothing: how code is compiled is no matter of its meaning |
//! | `LTO`, `FTZ`, `PREC_DIV`, `PREC_SQRT`, `FMA`, `REFERENCED_*`, `OPTIMIZE_UNUSED_DEVICE_VARIABLES` | nothing: they are about input that is refused, of link-time optimisation before CUDA 12 |
//! | `NEW_SM3X_OPT` | refused, as no assembler knows it any more |
//!
//! Of an option that is given twice the last counts; of two limits of registers the smaller.

use crate::error::CuResult;
use crate::images;
use cuda_abi::args::{Array, Text};
use cuda_abi::driver::*;
use device::module::{Code, Tuning};
use device::{Error, limits};
use std::ffi::{c_char, c_void};
use std::time::Instant;

/// What options are given for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// The loading of an image.
    Load,
    /// All of a link.
    Link,
    /// A piece of a link: only what concerns the compiler.
    Piece,
}

/// The options of one load or link: what they ask for, and where their answers go.
///
/// Each option's value is a pointer-sized cell, which holds a number, a pointer, or the place for an answer.
pub struct JitOptions {
    cells: Array<*mut c_void>,
    info_log: Log,
    error_log: Log,
    wall_time: Option<usize>,
    tuning: Tuning,
    target: Option<u32>,
    optimization: Option<u32>,
    for_debugging: Option<bool>,
    verbose: Option<bool>,
    /// An option that the compiler does not know any more.
    obsolete: bool,
    /// Something is asked of the compiler.
    for_compiler: bool,
    placed: Vec<(String, u64)>,
    started: Instant,
}

/// A caller's buffer for messages.
struct Log {
    buffer: *mut u8,
    size: usize,
    used: usize,
    /// The cell of the size, which becomes the number of bytes used.
    size_cell: Option<usize>,
}

// SAFETY: the pointers are the caller's, who lends them for the call or, when linking, until the link is destroyed;
// threads that share a link state take turns, as the table of links makes them.
unsafe impl Send for JitOptions {}

impl JitOptions {
    /// No options.
    pub fn none() -> Self {
        JitOptions {
            // SAFETY: nothing is read from or written to no options.
            cells: unsafe { Array::new(std::ptr::null_mut()) },
            info_log: Log::NONE,
            error_log: Log::NONE,
            wall_time: None,
            tuning: Tuning::default(),
            target: None,
            optimization: None,
            for_debugging: None,
            verbose: None,
            obsolete: false,
            for_compiler: false,
            placed: Vec::new(),
            started: Instant::now(),
        }
    }

    /// Reads `count` options. The arrays hold as many elements.
    pub fn read(
        count: u32,
        names: Array<CUjit_option>,
        cells: Array<*mut c_void>,
        what_for: Use,
    ) -> CuResult<Self> {
        const WRONG: CUresult = CUDA_ERROR_INVALID_VALUE;
        let mut options = JitOptions { cells, ..JitOptions::none() };
        let (mut symbols, mut addresses, mut symbol_count) = (None, None, None);
        let mut logs = [None; 2];
        for index in 0..count as usize {
            let (name, cell) = (names.get(index)?, cells.get(index)?);
            // Cells hold pointers or small numbers.
            let number = cell as usize as u32;
            options.for_compiler |= name != CU_JIT_LOG_VERBOSE;
            let tuning = &mut options.tuning;
            match name {
                CU_JIT_MAX_REGISTERS | CU_JIT_THREADS_PER_BLOCK if number == 0 => return Err(WRONG.into()),
                CU_JIT_MAX_REGISTERS => {
                    tuning.registers = Some(tuning.registers.map_or(number, |known| known.min(number)));
                }
                CU_JIT_THREADS_PER_BLOCK => {
                    // What is compiled for is a number of warps, of which a block can consist.
                    let threads = number.checked_next_multiple_of(32).unwrap_or(u32::MAX);
                    let threads = threads.min(limits::MAX_THREADS_PER_BLOCK);
                    cells.set(index, std::ptr::without_provenance_mut(threads as usize))?;
                    tuning.threads = Some(threads);
                }
                // None at all is no limit.
                CU_JIT_MAX_THREADS_PER_BLOCK if number == 0 => {}
                CU_JIT_MAX_THREADS_PER_BLOCK => tuning.max_threads = Some(number),
                CU_JIT_MIN_CTA_PER_SM if number == 0 => {}
                CU_JIT_MIN_CTA_PER_SM => tuning.min_blocks = Some(number),
                CU_JIT_OVERRIDE_DIRECTIVE_VALUES => tuning.overrides = number != 0,
                CU_JIT_OPTIMIZATION_LEVEL => options.optimization = Some(number),
                CU_JIT_GENERATE_DEBUG_INFO => options.for_debugging = Some(number != 0),
                CU_JIT_LOG_VERBOSE => options.verbose = Some(number != 0),
                CU_JIT_CACHE_MODE if CUjit_cacheMode(number).name().is_none() => return Err(WRONG.into()),
                CU_JIT_NEW_SM3X_OPT => options.obsolete = what_for != Use::Piece,
                CU_JIT_CACHE_MODE
                | CU_JIT_GENERATE_LINE_INFO
                | CU_JIT_FAST_COMPILE
                | CU_JIT_POSITION_INDEPENDENT_CODE
                | CU_JIT_SPLIT_COMPILE => {}
                _ if what_for == Use::Piece => return Err(WRONG.into()),
                CU_JIT_INFO_LOG_BUFFER => logs[0] = Some(cell),
                CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES => options.info_log.set_size(index, number),
                CU_JIT_ERROR_LOG_BUFFER => logs[1] = Some(cell),
                CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES => options.error_log.set_size(index, number),
                CU_JIT_WALL_TIME => options.wall_time = Some(index),
                CU_JIT_TARGET => options.target = Some(target(number)?),
                CU_JIT_TARGET_FROM_CUCONTEXT => {}
                // The linker takes exact matches only.
                CU_JIT_FALLBACK_STRATEGY if what_for == Use::Link => return Err(WRONG.into()),
                CU_JIT_REFERENCED_KERNEL_NAMES | CU_JIT_REFERENCED_VARIABLE_NAMES if cell.is_null() => {
                    return Err(WRONG.into());
                }
                CU_JIT_GLOBAL_SYMBOL_NAMES => symbols = Some(cell),
                CU_JIT_GLOBAL_SYMBOL_ADDRESSES => addresses = Some(cell),
                CU_JIT_GLOBAL_SYMBOL_COUNT => symbol_count = Some(number),
                CU_JIT_NUM_OPTIONS => return Err(WRONG.into()),
                known if known.name().is_some() => {}
                _ => return Err(WRONG.into()),
            }
        }
        if options.target.is_some() && options.tuning.threads.is_some() {
            return Err(WRONG.into());
        }
        for (log, buffer) in [&mut options.info_log, &mut options.error_log].into_iter().zip(logs) {
            log.set_buffer(buffer)?;
        }
        options.placed = match (symbols, addresses, symbol_count) {
            (None, None, None) => Vec::new(),
            (Some(symbols), Some(addresses), Some(count)) => {
                // SAFETY: the caller of the entry point gave the arrays, of which the count tells the length.
                let (symbols, addresses) =
                    unsafe { (Array::new(symbols.cast()), Array::new(addresses.cast())) };
                read_placed(symbols, addresses, count as usize)?
            }
            _ => return Err(WRONG.into()),
        };
        Ok(options)
    }

    /// What cannot be asked of the compiler.
    ///
    /// # Errors
    /// [`Error::InvalidPtx`], as the assembler has it, which hears of these options when it is given PTX.
    pub fn check(&self) -> device::Result<()> {
        if self.target.is_some_and(is_forgotten) {
            return Err(Error::InvalidImage("no image is for such a device".into()));
        }
        let numbers = [self.optimization, self.tuning.min_blocks];
        if let Some(number) = numbers.into_iter().flatten().find(|number| i32::try_from(*number).is_err()) {
            return Err(Error::InvalidPtx(format!("{number}, of an option, is out of range")));
        }
        if self.for_debugging == Some(true) && self.optimization.is_some_and(|level| level > 0) {
            let text = "code that is to be debugged cannot be optimized";
            return Err(Error::InvalidPtx(text.into()));
        }
        if self.obsolete {
            return Err(Error::InvalidPtx("the option CU_JIT_NEW_SM3X_OPT is not known any more".into()));
        }
        Ok(())
    }

    /// A text with what is asked of the compiler in it.
    pub fn tuned(&self, text: String, sm: u32, remarks: &mut Vec<String>) -> device::Result<String> {
        if !self.tuning.is_any() {
            return Ok(text);
        }
        let (text, new) = Code::tune(&text, self.tuning, sm)?;
        remarks.extend(new);
        Ok(text)
    }

    /// Takes over what the options of a whole link ask of the compiler where these say nothing.
    pub fn complete_with(&mut self, link: &JitOptions) {
        self.tuning = self.tuning.or(link.tuning);
        self.optimization = self.optimization.or(link.optimization);
        self.for_debugging = self.for_debugging.or(link.for_debugging);
        self.obsolete |= link.obsolete;
    }

    /// 10 · major + minor of the compute capability that code is for.
    pub fn sm(&self) -> CuResult<u32> {
        self.target.map_or_else(images::sm, Ok)
    }

    /// The same for a link.
    ///
    /// # Errors
    /// `CUDA_ERROR_INVALID_IMAGE` for what compilers do not know any more.
    pub fn sm_for_links(&self) -> CuResult<u32> {
        let sm = self.sm()?;
        if is_forgotten(sm) { Err(CUDA_ERROR_INVALID_IMAGE.into()) } else { Ok(sm) }
    }

    /// Whether the code is for the device that there is.
    ///
    /// # Errors
    /// `CUDA_ERROR_INVALID_SOURCE` if it is not.
    pub fn check_device(&mut self) -> CuResult {
        let device = images::sm()?;
        match self.target {
            Some(target) if target != device => {
                self.complain(&format!("the code is for sm_{target}, and the device has sm_{device}"));
                Err(CUDA_ERROR_INVALID_SOURCE.into())
            }
            _ => Ok(()),
        }
    }

    /// Variables that images only declare, and the addresses where they are.
    pub fn placed(&self) -> &[(String, u64)] {
        &self.placed
    }

    /// Whether something is asked of the compiler.
    pub fn are_for_compiler(&self) -> bool {
        self.for_compiler
    }

    /// Whether the log of what is worth knowing is to say more.
    pub fn is_verbose(&self) -> bool {
        self.verbose.unwrap_or(false)
    }

    /// Adds a line to the log of what is worth knowing.
    pub fn inform(&mut self, line: &str) {
        self.info_log.append(line, self.cells);
        self.info_log.append("\n", self.cells);
    }

    /// Adds to the log of what went wrong.
    pub fn complain(&mut self, text: &str) {
        self.error_log.append(text, self.cells);
    }

    /// Fills in what is told at the end: the time it took, and log sizes that messages did not set.
    pub fn finish(&mut self) {
        self.info_log.append("", self.cells);
        self.error_log.append("", self.cells);
        if let Some(index) = self.wall_time {
            let milliseconds = self.started.elapsed().as_secs_f32() * 1e3;
            let cell = std::ptr::without_provenance_mut(milliseconds.to_bits() as usize);
            self.cells.set(index, cell).expect("the option was read from the array");
        }
    }
}

/// The compute capability that a number of `CUjit_target` names: 10 · major + minor, or that with the base of what only this
/// architecture (`sm_90a`) or its family (`sm_100f`) has.
fn target(number: u32) -> CuResult<u32> {
    const KNOWN: &[u32] = &[
        30, 32, 35, 37, 50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 88, 89, 90, 100, 101, 103, 110, 120,
        121,
    ];
    const ARCHITECTURE: u32 = 0x1_0000;
    const FAMILY: u32 = 0x2_0000;
    let sm = number & 0xffff;
    let is_known = KNOWN.contains(&sm)
        && match number - sm {
            0 => true,
            ARCHITECTURE => sm >= 90,
            FAMILY => sm >= 100,
            _ => false,
        };
    if is_known || number < 10 { Ok(sm) } else { Err(CUDA_ERROR_INVALID_VALUE.into()) }
}

/// Whether an architecture is one that compilers have stopped to know.
fn is_forgotten(sm: u32) -> bool {
    sm < 50 || matches!(sm, 53 | 62)
}

/// The caller's variables: their names in device code and their addresses.
fn read_placed(
    names: Array<*const c_char>,
    addresses: Array<*mut c_void>,
    count: usize,
) -> CuResult<Vec<(String, u64)>> {
    let mut all: Vec<(String, u64)> = Vec::new();
    for index in 0..count {
        // SAFETY: a text, as the caller promised of the array.
        let name = unsafe { Text::new(names.get(index)?) };
        let name = name.get()?.to_str().map_err(|_| CUDA_ERROR_INVALID_VALUE)?;
        let address = addresses.get(index)?.expose_provenance() as u64;
        // A variable is somewhere, and at one place.
        let is_elsewhere = all.iter().any(|(known, other)| known == name && *other != address);
        if address == 0 || is_elsewhere {
            return Err(CUDA_ERROR_INVALID_VALUE.into());
        }
        all.push((name.to_owned(), address));
    }
    Ok(all)
}

impl Log {
    const NONE: Log = Log { buffer: std::ptr::null_mut(), size: 0, used: 0, size_cell: None };

    fn set_size(&mut self, index: usize, size: u32) {
        (self.size, self.size_cell) = (size as usize, Some(index));
    }

    /// Sets the buffer: one that is given needs a size, and a size a buffer.
    fn set_buffer(&mut self, buffer: Option<*mut c_void>) -> CuResult {
        match (buffer, self.size_cell) {
            (None, None) => {}
            (Some(buffer), Some(_)) if !buffer.is_null() => self.buffer = buffer.cast(),
            _ => return Err(CUDA_ERROR_INVALID_VALUE.into()),
        }
        Ok(())
    }

    /// Appends as much as fits before the ending NUL, and says how many bytes are used: all of them, with the NUL, where
    /// something did not fit.
    fn append(&mut self, text: &str, cells: Array<*mut c_void>) {
        if !self.buffer.is_null() && self.size > self.used {
            let room = self.size - self.used - 1;
            let bytes = &text.as_bytes()[..text.len().min(room)];
            // SAFETY: the caller's buffer has `size` bytes, of which `used` hold earlier text; `bytes` and a NUL fit.
            unsafe {
                let end = self.buffer.add(self.used);
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), end, bytes.len());
                end.add(bytes.len()).write(0);
            }
            self.used = if text.len() > room { self.size } else { self.used + bytes.len() };
        }
        if let Some(index) = self.size_cell {
            let cell = std::ptr::without_provenance_mut(self.used);
            cells.set(index, cell).expect("the option was read from the array");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(names: &mut [CUjit_option], cells: &mut [*mut c_void]) -> CuResult<JitOptions> {
        // SAFETY: the arrays outlive the options in every test below.
        let (names_array, cells_array) =
            unsafe { (Array::new(names.as_mut_ptr()), Array::new(cells.as_mut_ptr())) };
        JitOptions::read(names.len() as u32, names_array, cells_array, Use::Load)
    }

    fn number(value: usize) -> *mut c_void {
        std::ptr::without_provenance_mut(value)
    }

    #[test]
    fn logs_are_cut_to_their_buffers_and_sizes_told() {
        let (mut info, mut error) = ([0x55u8; 8], [0x55u8; 16]);
        let mut names = [
            CU_JIT_INFO_LOG_BUFFER,
            CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
            CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
            CU_JIT_ERROR_LOG_BUFFER,
        ];
        let mut cells = [info.as_mut_ptr().cast(), number(4), number(16), error.as_mut_ptr().cast()];
        let mut options = read(&mut names, &mut cells).ok().unwrap();
        options.inform("information");
        options.complain("two ");
        options.complain("pieces");
        options.finish();
        assert_eq!(&info, b"inf\0\x55\x55\x55\x55");
        assert_eq!(&error[..11], b"two pieces\0");
        assert_eq!((cells[1] as usize, cells[2] as usize), (4, 10));
    }

    #[test]
    fn a_size_of_zero_or_no_buffer_is_left_alone() {
        let mut byte = [0x55u8; 1];
        let mut names = [CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES];
        let mut cells = [byte.as_mut_ptr().cast(), number(0)];
        let mut options = read(&mut names, &mut cells).ok().unwrap();
        options.inform("text");
        options.complain("text");
        options.finish();
        assert_eq!(byte, [0x55]);
        assert_eq!(cells[1] as usize, 0);
    }

    #[test]
    fn the_time_is_a_float_in_the_cell() {
        let mut names = [CU_JIT_WALL_TIME, CU_JIT_MAX_REGISTERS];
        let mut cells = [number(0), number(32)];
        let mut options = read(&mut names, &mut cells).ok().unwrap();
        options.finish();
        let milliseconds = f32::from_bits(cells[0] as usize as u32);
        assert!(milliseconds >= 0.0, "{milliseconds}");
    }

    #[test]
    fn unknown_options_and_missing_arrays_are_refused() {
        assert_eq!(
            read(&mut [CUjit_option(999)], &mut [number(0)]).err(),
            Some(CUDA_ERROR_INVALID_VALUE.into())
        );
        // SAFETY: null is allowed.
        let (names, cells) = unsafe { (Array::new(std::ptr::null_mut()), Array::new(std::ptr::null_mut())) };
        assert_eq!(JitOptions::read(1, names, cells, Use::Load).err(), Some(CUDA_ERROR_INVALID_VALUE.into()));
        assert!(JitOptions::read(0, names, cells, Use::Load).is_ok());
    }
}
