//! The suite over a `libcuda.so.1`: the one in `dist/lib`, or that which `ANYWARP_TEST_LIBCUDA` names.

mod suite;

use anywarp::{ErrorKind, Platform, runtime};
use std::path::PathBuf;

/// The platform under test, where it is there.
pub fn platform() -> Option<Platform> {
    let path = match std::env::var_os("ANYWARP_TEST_LIBCUDA") {
        Some(path) => PathBuf::from(path),
        None => PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../dist/lib/libcuda.so.1")),
    };
    if !path.is_file() {
        println!("skipped: there is no {}: make build", path.display());
        return None;
    }
    // SAFETY: this is Anywarp's driver, or the one that whoever runs the test has named.
    let platform = unsafe { Platform::library(&path) }.unwrap();
    // Every test of the runtime's way is over this driver; only the first to say so counts.
    let _ = runtime::use_platform(platform.clone());
    Some(platform)
}

#[test]
fn what_is_no_driver_is_refused_with_the_reason() {
    // SAFETY: the files are no libraries, or one whose loading does nothing.
    let open = |path: &str| unsafe { Platform::library(path) }.err().unwrap();
    let absent = open("/no/such/libcuda.so.1");
    assert_eq!((absent.kind(), absent.code()), (ErrorKind::Other, 303));
    assert!(absent.message().contains("/no/such/libcuda.so.1"), "{absent}");
    let text = open(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));
    assert_eq!(text.code(), 303, "{text}");
    assert_eq!(open("a\0b").kind(), ErrorKind::Arguments);
    let other = open("libc.so.6");
    assert_eq!(other.code(), 302);
    assert!(other.message().contains("cuInit"), "{other}");
}

#[test]
fn objects_of_two_platforms_do_not_meet() {
    let Some(platform) = platform() else { return };
    let there = platform.device(0).unwrap().create_context().unwrap();
    let here = Platform::embedded().unwrap().device(0).unwrap().create_context().unwrap();
    let (event, stream) = (there.create_event().unwrap(), here.create_stream().unwrap());
    assert_eq!(event.record(&stream).unwrap_err().kind(), ErrorKind::Arguments);
    assert_eq!(stream.wait_for(&event).unwrap_err().kind(), ErrorKind::Arguments);
    let (mut to, from) = (here.zeroed::<u32>(1).unwrap(), there.zeroed::<u32>(1).unwrap());
    assert_eq!(stream.copy(&mut to, &from).unwrap_err().message(), "the source is of another context");
}
