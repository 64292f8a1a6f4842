//! Approximations with the hardware's bits, which the environment asks for: a process of its own.

mod common;
use common::*;

const LOGARITHM: &str = ".version 8.0 .target sm_90 .address_size 64
    .visible .entry k(.param .u64 to) {
        .reg .b64 %to; .reg .f32 %x;
        ld.param.u64 %to, [to]; mov.f32 %x, 0f3F000000; lg2.approx.f32 %x, %x;
        st.global.f32 [%to], %x; ret;
    }";

#[test]
fn the_environment_chooses_the_bits_of_the_hardware() {
    // SAFETY: this process has one test, and it has not read the environment yet.
    unsafe { std::env::set_var("ANYWARP_APPROX", "hardware") };
    let context = new_context();
    let logarithm = function(load(LOGARITHM), "k");
    let mut place = alloc(4);
    let mut params = [(&raw mut place).cast::<c_void>()];
    assert_eq!(launch(logarithm, 1, 1, CUstream::NULL, &mut params), CUDA_SUCCESS);
    cu!(cuCtxSynchronize());
    // The fast form gives -1 (0xbf800000), as it should be.
    assert_eq!(read::<u32>(place, 1), [0xbf7f_fffe]);
    cu!(cuCtxDestroy_v2(context));
}
