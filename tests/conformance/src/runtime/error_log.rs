//! Error log management: the driver's log, through the runtime.

use super::common::*;

pub fn a_failure_is_logged_and_told() {
    unsafe extern "C" fn count(
        datum: *mut c_void,
        _: driver::CUlogLevel,
        message: *mut c_char,
        length: usize,
    ) {
        // SAFETY: the test's counter, and a text.
        unsafe {
            assert_eq!(CStr::from_ptr(message).count_bytes(), length);
            *datum.cast::<usize>() += 1;
        }
    }
    let mut heard = 0usize;
    let (mut handle, mut place) = (cudaLogsCallbackHandle::NULL, 0);
    let datum: *mut c_void = (&raw mut heard).cast();
    cuda!(cudaLogsRegisterCallback(Some(count), datum, &mut handle); cudaLogsCurrent(&mut place, 0));
    let from = place;
    fails!(cudaErrorMemoryAllocation, cudaMalloc(&mut null_mut(), 1 << 50));
    // SAFETY: no call is on its way.
    let once = unsafe { datum.cast::<usize>().read() };
    assert!(once > 0);
    let mut buffer = [0u8; 8192];
    let mut bytes = buffer.len();
    cuda!(cudaLogsDumpToMemory(&mut place, buffer.as_mut_ptr().cast(), &mut bytes, 0));
    assert!(bytes > 0 && buffer[bytes] == 0);

    let path = std::env::temp_dir().join(format!("conformance-runtime-log-{}.txt", std::process::id()));
    let name = CString::new(path.to_str().expect("a plain path")).expect("no NUL");
    let mut again = from;
    cuda!(cudaLogsDumpToFile(&mut again, name.as_ptr(), 0));
    let written = std::fs::read(&path).expect("the file is there");
    std::fs::remove_file(&path).expect("it can be removed");
    assert_eq!(written, buffer[..bytes]);

    cuda!(cudaLogsUnregisterCallback(handle));
    fails!(cudaErrorMemoryAllocation, cudaMalloc(&mut null_mut(), 1 << 50));
    // SAFETY: as above.
    assert_eq!(unsafe { datum.cast::<usize>().read() }, once);
    fails!(cudaErrorInvalidValue, cudaLogsCurrent(null_mut(), 0));
    cuda!(cudaLogsCurrent(&mut place, 1));
    fails!(cudaErrorInvalidValue, cudaLogsDumpToFile(&mut place, null(), 0));
    fails!(cudaErrorInvalidValue, cudaLogsDumpToMemory(&mut place, null_mut(), &mut bytes, 0));
    fails!(cudaErrorInvalidValue, cudaLogsRegisterCallback(None, null_mut(), &mut handle));
}
