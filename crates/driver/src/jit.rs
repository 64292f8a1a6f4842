//! Options of the just-in-time compiler and linker.

use crate::error::CuResult;
use cuda_abi::args::{Array, Text};
use cuda_abi::driver::*;
use std::ffi::{c_char, c_void};
use std::ptr::null_mut;
use std::time::Instant;

/// The options of one load or link: what they ask for, and where their answers go.
///
/// Each option's value is a pointer-sized cell, which holds a number, a pointer, or the place for an answer.
pub struct JitOptions {
    cells: Array<*mut c_void>,
    info_log: Log,
    error_log: Log,
    wall_time: Option<usize>,
    max_registers: Option<u32>,
    verbose: bool,
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
            max_registers: None,
            verbose: false,
            placed: Vec::new(),
            started: Instant::now(),
        }
    }

    /// Reads `count` options. The arrays hold as many elements.
    pub fn read(count: u32, names: Array<CUjit_option>, cells: Array<*mut c_void>) -> CuResult<Self> {
        let mut options = JitOptions { cells, ..JitOptions::none() };
        let (mut symbols, mut addresses, mut symbol_count) = (null_mut(), null_mut(), 0);
        for index in 0..count as usize {
            let (name, cell) = (names.get(index)?, cells.get(index)?);
            // Cells hold pointers or small numbers.
            let number = cell as usize as u32;
            match name {
                CU_JIT_INFO_LOG_BUFFER => options.info_log.buffer = cell.cast(),
                CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES => options.info_log.set_size(index, number),
                CU_JIT_ERROR_LOG_BUFFER => options.error_log.buffer = cell.cast(),
                CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES => options.error_log.set_size(index, number),
                CU_JIT_WALL_TIME => options.wall_time = Some(index),
                CU_JIT_MAX_REGISTERS => options.max_registers = Some(number).filter(|number| *number > 0),
                CU_JIT_LOG_VERBOSE => options.verbose = number != 0,
                // No image is for such a device.
                CU_JIT_TARGET if !(30..=121).contains(&number) => {
                    return Err(CUDA_ERROR_INVALID_IMAGE.into());
                }
                CU_JIT_GLOBAL_SYMBOL_NAMES => symbols = cell,
                CU_JIT_GLOBAL_SYMBOL_ADDRESSES => addresses = cell,
                CU_JIT_GLOBAL_SYMBOL_COUNT => symbol_count = number,
                // The rest says how to compile or for what; whatever it says, code is compiled for this machine, and its meaning
                // stays the same.
                known if known.name().is_some() => {}
                _ => return Err(CUDA_ERROR_INVALID_VALUE.into()),
            }
        }
        if [&options.info_log, &options.error_log].iter().any(|log| log.size > 0 && log.buffer.is_null()) {
            return Err(CUDA_ERROR_INVALID_VALUE.into());
        }
        // SAFETY: the caller of the entry point gave the arrays, of which the count tells the length.
        let (symbols, addresses) = unsafe { (Array::new(symbols.cast()), Array::new(addresses.cast())) };
        options.placed = (0..symbol_count as usize)
            .map(|index| placed(symbols, addresses, index))
            .collect::<CuResult<_>>()?;
        Ok(options)
    }

    /// Variables that images only declare, and the addresses where they are.
    pub fn placed(&self) -> &[(String, u64)] {
        &self.placed
    }

    /// Registers of a thread that the compiler may use at most.
    pub fn max_registers(&self) -> Option<u32> {
        self.max_registers
    }

    /// Whether the log of what is worth knowing is to say more.
    pub fn is_verbose(&self) -> bool {
        self.verbose
    }

    /// Adds to the log of what is worth knowing.
    pub fn inform(&mut self, text: &str) {
        self.info_log.append(text, self.cells);
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

/// One of the caller's variables: its name in device code and its address.
fn placed(
    names: Array<*const c_char>,
    addresses: Array<*mut c_void>,
    index: usize,
) -> CuResult<(String, u64)> {
    // SAFETY: a text, as the caller promised of the array.
    let name = unsafe { Text::new(names.get(index)?) };
    let name = name.get()?.to_str().map_err(|_| CUDA_ERROR_INVALID_VALUE)?;
    Ok((name.to_owned(), addresses.get(index)?.expose_provenance() as u64))
}

impl Log {
    const NONE: Log = Log { buffer: std::ptr::null_mut(), size: 0, used: 0, size_cell: None };

    fn set_size(&mut self, index: usize, size: u32) {
        (self.size, self.size_cell) = (size as usize, Some(index));
    }

    /// Appends as much as fits before the ending NUL, and says how many bytes are used.
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
            self.used += bytes.len();
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
        JitOptions::read(names.len() as u32, names_array, cells_array)
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
        assert_eq!((cells[1] as usize, cells[2] as usize), (3, 10));
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
        assert_eq!(JitOptions::read(1, names, cells).err(), Some(CUDA_ERROR_INVALID_VALUE.into()));
        assert!(JitOptions::read(0, names, cells).is_ok());
    }
}
