//! A fat binary from a program: whatever the bytes are, every entry is read, or refused.
#![no_main]

use fatbin::{Container, Entry, EntryKind, Target};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(container) = Container::parse(bytes) else { return };
    for entry in container.entries().flatten() {
        read(&entry);
    }
    if let Ok(Some(entry)) = container.choose_ptx(Target::new(90)) {
        assert!(entry.kind == EntryKind::Ptx && entry.sm <= 90, "chose an entry that cannot run");
    }
});

/// Each part may be refused; none may do anything else.
fn read(entry: &Entry<'_>) {
    let _ = (entry.source_name(), entry.options());
    if let Ok(payload) = entry.payload() {
        assert!(payload.len() as u64 <= entry.payload_len(), "a payload is longer than it says");
    }
}
