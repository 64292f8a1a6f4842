//! Error log management.

use super::common::*;

/// The messages from a place on, and the place after them.
fn dump(from: Option<CUlogIterator>) -> (String, Option<CUlogIterator>) {
    let mut place = from;
    let mut buffer = [0x55u8; 32768];
    let mut size = buffer.len();
    let iterator = place.as_mut().map_or(null_mut(), |place| place);
    cu!(cuLogsDumpToMemory(iterator, buffer.as_mut_ptr().cast(), &mut size, 0));
    // Without a message nothing is written.
    assert_eq!(buffer[size], if size == 0 { 0x55 } else { 0 }, "the NUL after {size} bytes");
    (String::from_utf8_lossy(&buffer[..size]).into_owned(), place)
}

fn end() -> CUlogIterator {
    let mut end = 0;
    cu!(cuLogsCurrent(&mut end, 0));
    end
}

/// A call that fails, and leaves a message.
fn fail() {
    let mut context = CUcontext::NULL;
    fails!(CUDA_ERROR_INVALID_DEVICE, cuCtxCreate_v4(&mut context, null_mut(), 0, 99));
}

pub fn a_failure_leaves_a_message_that_names_the_function() {
    init();
    let before = end();
    assert_eq!(dump(Some(before)), (String::new(), Some(before)));
    fail();
    let (text, after) = dump(Some(before));
    // `[time][thread][CUDA][E] message`
    let last = text.lines().last().expect("a line");
    assert!(last.contains("][CUDA][E] Returning 101 (CUDA_ERROR_INVALID_DEVICE) from cuCtxCreate"), "{text}");
    assert!(text.ends_with('\n') && !text.contains('\0'), "{text:?}");
    assert_eq!(after, Some(end()));
    assert_ne!(after, Some(before));
    // Without a place all messages are meant.
    assert!(dump(None).0.contains(&text));
}

pub fn a_place_stays_where_it_is_until_it_is_read_from() {
    init();
    fail();
    let place = end();
    fail();
    let (once, _) = dump(Some(place));
    fail();
    let (twice, after) = dump(Some(place));
    assert!(twice.starts_with(&once) && twice.len() > once.len(), "{once:?} {twice:?}");
    assert_eq!(dump(after).0, "");
}

pub fn a_message_of_the_compiler_is_quoted() {
    new_context();
    let place = end();
    let ptx = c".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() { nonsense; ret; }\n";
    let mut module = CUmodule::NULL;
    fails!(CUDA_ERROR_INVALID_PTX, cuModuleLoadData(&mut module, ptx.as_ptr().cast()));
    let (text, _) = dump(Some(place));
    assert!(text.contains("cuModuleLoadData"), "{text}");
    if is_ours() {
        assert!(text.contains("nonsense"), "{text}");
    }
}

pub fn a_fault_is_logged() {
    new_context();
    let place = end();
    let trap = function(
        load(".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry stop() { trap; ret; }"),
        c"stop",
    );
    assert_eq!(launch(trap, 1, 1, CUstream::NULL, &mut []), CUDA_SUCCESS);
    fails!(CUDA_ERROR_LAUNCH_FAILED, cuCtxSynchronize());
    let (text, _) = dump(Some(place));
    if is_ours() {
        assert!(text.contains("stop") && text.contains("trap"), "{text}");
    }
}

pub fn old_messages_go_and_the_dump_says_so() {
    init();
    fail();
    let place = end();
    for _ in 0..2000 {
        fail();
    }
    let (text, _) = dump(Some(place));
    assert!(text.len() <= 25600 + 256, "{} bytes", text.len());
    let messages = text.lines().filter(|line| line.contains("cuCtxCreate")).count();
    assert!((10..2000).contains(&messages), "{messages} messages");
    assert_ne!(text.lines().count(), messages, "no line says that messages are lost");
}

pub fn a_short_buffer_gets_the_newest_messages() {
    init();
    let place = end();
    fail();
    let line = dump(Some(place)).0.len();
    for _ in 0..9 {
        fail();
    }
    fails!(CUDA_ERROR_INVALID_VALUE, cuDeviceGetCount(null_mut()));
    // More than is asked for: NVIDIA's driver forgets the line that says that there is more.
    let (mut buffer, most) = (vec![0x55u8; 8 * line], 4 * line - 1);
    let (mut size, mut from) = (most, place);
    cu!(cuLogsDumpToMemory(&mut from, buffer.as_mut_ptr().cast(), &mut size, 0));
    let text = String::from_utf8_lossy(&buffer[..size]).into_owned();
    assert!(text.lines().last().is_some_and(|line| line.contains("cuDeviceGetCount")), "{text}");
    assert_eq!(buffer[size], 0);
    if ours_only("NVIDIA's driver writes past a buffer that is too short for all messages") {
        assert!(size < most);
        assert_eq!(buffer[most], 0x55, "written past the size");
    }
    // Not even one fits.
    let mut size = 8;
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuLogsDumpToMemory(null_mut(), buffer.as_mut_ptr().cast(), &mut size, 0)
    );
    assert_eq!(size, 0);
}

pub fn a_file_gets_the_messages() {
    init();
    let path = std::env::temp_dir().join(format!("conformance-log-{}.txt", std::process::id()));
    let name = CString::new(path.to_str().expect("a plain path")).expect("no NUL");
    let mut place = end();
    fail();
    let (text, after) = dump(Some(place));
    cu!(cuLogsDumpToFile(&mut place, name.as_ptr(), 0));
    assert_eq!(Some(place), after);
    let written = std::fs::read_to_string(&path).expect("the file is there");
    std::fs::remove_file(&path).expect("it can be removed");
    assert_eq!(written, text);
    let nowhere = c"/there/is/no/such/folder/log.txt";
    fails!(CUDA_ERROR_INVALID_VALUE, cuLogsDumpToFile(null_mut(), nowhere.as_ptr(), 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuLogsDumpToFile(null_mut(), null(), 0));
}

unsafe extern "C" fn collect(datum: *mut c_void, level: CUlogLevel, message: *mut c_char, length: usize) {
    // SAFETY: the test registered its vector, and the message is a text.
    unsafe {
        let message = CStr::from_ptr(message);
        assert_eq!(message.count_bytes(), length);
        (*datum.cast::<Vec<(CUlogLevel, String)>>()).push((level, message.to_string_lossy().into_owned()));
    }
}

pub fn listeners_hear_of_failures_until_they_are_unregistered() {
    init();
    let mut heard: Vec<(CUlogLevel, String)> = Vec::new();
    let datum: *mut c_void = (&raw mut heard).cast();
    let mut handle = CUlogsCallbackHandle::NULL;
    cu!(cuLogsRegisterCallback(Some(collect), datum, &mut handle));
    fail();
    // SAFETY: no call is on its way.
    let first = unsafe { &*datum.cast::<Vec<(CUlogLevel, String)>>() }.clone();
    assert!(!first.is_empty());
    assert!(first.iter().all(|(level, _)| *level == CU_LOG_LEVEL_ERROR), "{first:?}");
    // What the call answered, without the time.
    let last = &first.last().expect("a message").1;
    assert!(last.starts_with("Returning 101 (CUDA_ERROR_INVALID_DEVICE) from cuCtxCreate"), "{first:?}");
    cu!(cuLogsUnregisterCallback(handle));
    fail();
    // SAFETY: as above.
    assert_eq!(unsafe { &*datum.cast::<Vec<(CUlogLevel, String)>>() }.len(), first.len());
    // The handle may be unwanted.
    cu!(cuLogsRegisterCallback(Some(collect), datum, null_mut()));
    fail();
    // SAFETY: as above.
    assert!(unsafe { &*datum.cast::<Vec<(CUlogLevel, String)>>() }.len() > first.len());
}

pub fn what_is_no_place_and_no_listener_is_refused() {
    init();
    let (mut place, mut size, mut byte) = (end(), 1, 0u8);
    let buffer: *mut c_char = (&raw mut byte).cast();
    fails!(CUDA_ERROR_INVALID_VALUE, cuLogsRegisterCallback(None, null_mut(), null_mut()));
    fails!(CUDA_ERROR_INVALID_VALUE, cuLogsCurrent(null_mut(), 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuLogsDumpToMemory(&mut place, null_mut(), &mut size, 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuLogsDumpToMemory(&mut place, buffer, null_mut(), 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuLogsDumpToFile(&mut place, null(), 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuLogsUnregisterCallback(CUlogsCallbackHandle::NULL));
    if ours_only("NVIDIA's driver follows a handle that is no listener's") {
        fails!(CUDA_ERROR_INVALID_VALUE, cuLogsUnregisterCallback(CUlogsCallbackHandle(0x1234_5678)));
    }
    if ours_only("NVIDIA's driver answers so only while there are no messages at all") {
        let (mut beyond, mut room) = (1_000_000, 1);
        cu!(cuLogsDumpToMemory(&mut beyond, buffer, &mut room, 0));
        assert_eq!((beyond, room), (1_000_000, 0));
    }
    // No flags are defined, and any are taken.
    let mut buffer = [0u8; 32768];
    for flags in [1, 77, u32::MAX] {
        let mut size = buffer.len();
        cu!(cuLogsDumpToMemory(null_mut(), buffer.as_mut_ptr().cast(), &mut size, flags));
        assert!(size > 0);
        cu!(cuLogsCurrent(&mut place, flags));
    }
}
