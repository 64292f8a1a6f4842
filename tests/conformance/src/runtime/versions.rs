//! Version management.

use super::common::*;

pub fn versions_work_first_of_all() {
    let (mut driver, mut runtime) = (0, 0);
    cuda!(cudaDriverGetVersion(&mut driver); cudaRuntimeGetVersion(&mut runtime));
    assert!(driver >= runtime, "driver {driver}, runtime {runtime}");
    assert!(runtime >= 13000, "{runtime}");
    fails!(cudaErrorInvalidValue, cudaRuntimeGetVersion(null_mut()));
}
