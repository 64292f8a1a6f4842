//! `docs/ptx-support.md` says what the instruction table has and which tests show it. `BLESS=1` writes it anew.

use std::path::Path;

use kernel_tests::support::Support;

#[test]
fn the_page_of_supported_instructions_is_true() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let support = Support::read(&root.join("tests")).expect("the tests can be read");
    let (path, page) = (root.join("docs/ptx-support.md"), support.page());
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &page).expect("the page can be written");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    let first = page.lines().zip(written.lines()).find(|(new, old)| new != old);
    assert!(page == written, "docs/ptx-support.md is not up to date (BLESS=1 writes it): {first:?}");
}
