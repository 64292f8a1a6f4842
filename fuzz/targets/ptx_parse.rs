//! A PTX text from a program: it parses, or is refused with a place inside the text.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Err(errors) = ptx::parse(text) {
        assert!(!errors.list().is_empty(), "refused without a reason");
    }
});
