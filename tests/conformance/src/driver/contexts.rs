//! Contexts.

use super::common::*;

pub fn a_new_context_is_current() {
    let context = new_context();
    assert_eq!(current(), context);
    cu!(cuCtxDestroy_v2(context));
}
