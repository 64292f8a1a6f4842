//! A PTX text from a program: it parses, or is refused with a place inside the text. What parses can be
//! printed and read again, and its names can be looked up.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let text = ptx::text_of_image(bytes);
    match ptx::parse(&text) {
        Err(errors) => assert!(!errors.list().is_empty(), "refused without a reason"),
        Ok(module) => {
            let _ = ptx::resolve::check(&text, &module);
            let printed = module.to_string();
            assert_eq!(ptx::parse(&printed).as_ref(), Ok(&module));
        }
    }
});
