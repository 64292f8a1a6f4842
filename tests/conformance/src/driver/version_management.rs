//! Version management.

use super::common::*;

pub fn the_version_is_13_or_later() {
    let mut version = 0;
    cu!(cuDriverGetVersion(&mut version));
    assert!((13000..20000).contains(&version), "{version}");
    fails!(CUDA_ERROR_INVALID_VALUE, cuDriverGetVersion(null_mut()));
}
