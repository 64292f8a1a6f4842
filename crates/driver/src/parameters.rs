//! A kernel's parameters, as the launch functions take them.

use crate::error::CuResult;
use cuda_abi::driver::*;
use std::ffi::c_void;

/// Place and size of one parameter in the block of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Bytes from the beginning.
    pub offset: usize,
    /// Bytes.
    pub size: usize,
}

/// Collects the parameters into one block of `len` bytes, from an array of pointers to them (`kernelParams`) or from a
/// block that the caller made (`extra`); never both, and one of them unless there are none. A list that ends at once says nothing.
///
/// # Safety
/// The pointers are null or as `cuLaunchKernel` asks: as many as there are parameters, each to as many bytes as it has;
/// `extra` a list that ends in `CU_LAUNCH_PARAM_END`.
pub unsafe fn pack(
    layout: impl ExactSizeIterator<Item = Parameter>,
    len: usize,
    kernel_params: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> CuResult<Vec<u8>> {
    let mut block = vec![0; len];
    // SAFETY: the caller's duty.
    unsafe { pack_into(&mut block, layout, kernel_params, extra) }?;
    Ok(block)
}

/// The same into a block that is all zeros.
///
/// # Safety
/// As for [`pack`].
pub unsafe fn pack_into(
    block: &mut [u8],
    layout: impl ExactSizeIterator<Item = Parameter>,
    kernel_params: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> CuResult {
    let len = block.len();
    // SAFETY: the list has at least its end.
    let no_list = extra.is_null() || unsafe { extra.read() } as usize == CU_LAUNCH_PARAM_END;
    match (kernel_params.is_null(), no_list) {
        (false, false) => return Err(CUDA_ERROR_INVALID_VALUE.into()),
        (true, true) if layout.len() == 0 => {}
        (true, true) => return Err(CUDA_ERROR_INVALID_VALUE.into()),
        (false, true) => {
            for (index, parameter) in layout.enumerate() {
                // SAFETY: the array has a pointer for each parameter.
                let pointer = unsafe { kernel_params.add(index).read() }.cast::<u8>();
                if pointer.is_null() {
                    return Err(CUDA_ERROR_INVALID_VALUE.into());
                }
                let place = &mut block[parameter.offset..parameter.offset + parameter.size];
                // SAFETY: the pointer is to as many bytes as the parameter has; the block is new.
                unsafe { std::ptr::copy_nonoverlapping(pointer, place.as_mut_ptr(), place.len()) };
            }
        }
        (true, false) => {
            // SAFETY: the caller's duty.
            let (buffer, size) = unsafe { read_extra(extra) }?;
            if size > len {
                return Err(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES.into());
            }
            if size == 0 && len > 0 || size > 0 && buffer.is_null() {
                return Err(CUDA_ERROR_INVALID_VALUE.into());
            }
            if size > 0 {
                // SAFETY: the caller says that the buffer has `size` bytes, of which the block has room.
                unsafe { std::ptr::copy_nonoverlapping(buffer, block.as_mut_ptr(), size) };
            }
        }
    }
    Ok(())
}

/// The buffer and its size from a list of names and values.
unsafe fn read_extra(extra: *mut *mut c_void) -> CuResult<(*const u8, usize)> {
    let (mut buffer, mut size) = (std::ptr::null(), 0);
    let mut index = 0;
    loop {
        // SAFETY: the list has not ended yet.
        let name = unsafe { extra.add(index).read() } as usize;
        if name == CU_LAUNCH_PARAM_END {
            return Ok((buffer, size));
        }
        // SAFETY: every name but the end has a value.
        let value = unsafe { extra.add(index + 1).read() };
        match name {
            CU_LAUNCH_PARAM_BUFFER_POINTER => buffer = value.cast::<u8>().cast_const(),
            CU_LAUNCH_PARAM_BUFFER_SIZE if !value.is_null() => {
                // SAFETY: the value of this name is a pointer to the size.
                size = unsafe { value.cast::<usize>().read_unaligned() };
            }
            _ => return Err(CUDA_ERROR_INVALID_VALUE.into()),
        }
        index += 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr::{null_mut, without_provenance_mut};

    const LAYOUT: [Parameter; 2] = [Parameter { offset: 0, size: 1 }, Parameter { offset: 4, size: 4 }];

    fn pack(kernel_params: *mut *mut c_void, extra: *mut *mut c_void) -> CuResult<Vec<u8>> {
        // SAFETY: the tests pass well-formed lists.
        unsafe { super::pack(LAYOUT.into_iter(), 8, kernel_params, extra) }
    }

    #[test]
    fn single_parameters_go_to_their_places() {
        let (mut byte, mut word) = (5u8, 0x0403_0201u32);
        let mut pointers = [(&raw mut byte).cast(), (&raw mut word).cast()];
        assert_eq!(pack(pointers.as_mut_ptr(), null_mut()), Ok(vec![5, 0, 0, 0, 1, 2, 3, 4]));
        pointers[1] = null_mut();
        assert_eq!(pack(pointers.as_mut_ptr(), null_mut()), Err(CUDA_ERROR_INVALID_VALUE.into()));
    }

    #[test]
    fn a_block_may_be_short_but_not_long() {
        let mut bytes = [1u8, 2, 3, 4, 5, 6, 7, 8, 9];
        let mut with_size = |mut size: usize| {
            let mut extra = [
                without_provenance_mut(CU_LAUNCH_PARAM_BUFFER_SIZE),
                (&raw mut size).cast(),
                without_provenance_mut(CU_LAUNCH_PARAM_BUFFER_POINTER),
                bytes.as_mut_ptr().cast(),
                null_mut(),
            ];
            pack(null_mut(), extra.as_mut_ptr())
        };
        assert_eq!(with_size(8), Ok(vec![1, 2, 3, 4, 5, 6, 7, 8]));
        assert_eq!(with_size(5), Ok(vec![1, 2, 3, 4, 5, 0, 0, 0]));
        assert_eq!(with_size(9), Err(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES.into()));
    }

    #[test]
    fn neither_and_both_are_refused() {
        assert_eq!(pack(null_mut(), null_mut()), Err(CUDA_ERROR_INVALID_VALUE.into()));
        let (mut byte, mut word, mut size) = (5u8, 0x0403_0201u32, 0usize);
        let mut pointers = [(&raw mut byte).cast(), (&raw mut word).cast()];
        let mut extra = [
            without_provenance_mut(CU_LAUNCH_PARAM_BUFFER_SIZE),
            (&raw mut size).cast(),
            without_provenance_mut(CU_LAUNCH_PARAM_END),
        ];
        let both = pack(pointers.as_mut_ptr(), extra.as_mut_ptr());
        assert_eq!(both, Err(CUDA_ERROR_INVALID_VALUE.into()));
        let mut empty = [without_provenance_mut(CU_LAUNCH_PARAM_END)];
        assert_eq!(pack(pointers.as_mut_ptr(), empty.as_mut_ptr()), Ok(vec![5, 0, 0, 0, 1, 2, 3, 4]));
        assert_eq!(pack(null_mut(), empty.as_mut_ptr()), Err(CUDA_ERROR_INVALID_VALUE.into()));
        // SAFETY: no parameters, no pointers.
        assert_eq!(unsafe { super::pack([].into_iter(), 0, null_mut(), null_mut()) }, Ok(vec![]));
    }
}
