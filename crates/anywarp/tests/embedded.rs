//! The suite over the device that is part of the crate, and what only that has.

mod suite;

use anywarp::{ContextOptions, Device, ErrorKind, LaunchConfig, Platform, Scheduling, runtime};

/// The platform under test.
pub fn platform() -> Option<Platform> {
    Some(Platform::embedded().unwrap())
}

#[test]
fn a_fault_stays_in_its_context_and_names_kernel_and_thread() {
    let device = Device::get(0).unwrap();
    let options = ContextOptions::default().with_scheduling(Scheduling::Block);
    let (sick, healthy) = (device.create_context_with(options).unwrap(), device.create_context().unwrap());
    let module = sick.load_ptx(suite::KERNELS).unwrap();
    let store = module.function("store").unwrap();
    // SAFETY: nothing lies at this address.
    unsafe { store.launch(&sick.default_stream(), LaunchConfig::new(1, 1), (16_u64, 0_u32)).unwrap() };
    let error = sick.synchronize().unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Fault, 700));
    for detail in ["store", "0x10", "thread (0,0,0)", "line"] {
        assert!(error.message().contains(detail), "{error}");
    }
    assert_eq!(healthy.buffer_from(&[1_u8, 2]).unwrap().to_vec().unwrap(), [1, 2]);
}

#[test]
fn the_runtime_is_embedded_unless_told_otherwise_in_time() {
    assert!(runtime::device().unwrap().name().starts_with("Anywarp"));
    let late = runtime::use_platform(Platform::embedded().unwrap()).unwrap_err();
    assert_eq!(late.code(), 401);
}

#[test]
fn shortcuts_lead_to_the_embedded_platform() {
    let platform = Platform::embedded().unwrap();
    assert_eq!(Device::count().unwrap(), platform.device_count().unwrap());
    let (one, other) = (Device::get(0).unwrap(), platform.device(0).unwrap());
    assert!(one.primary_context().unwrap().is_same(&other.primary_context().unwrap()));
}

#[test]
fn everything_can_be_sent_and_shared() {
    fn both<T: Send + Sync>() {}
    both::<Platform>();
    both::<Device>();
    both::<anywarp::Context>();
    both::<anywarp::Module<'_>>();
    both::<anywarp::Function<'_>>();
    both::<anywarp::Stream<'_>>();
    both::<anywarp::Event<'_>>();
    both::<anywarp::Buffer<'_, f32>>();
    both::<anywarp::View<'_, f32>>();
    both::<anywarp::ViewMut<'_, f32>>();
    both::<anywarp::PinnedBuffer<'_, f32>>();
    both::<anywarp::ManagedBuffer<'_, f32>>();
    both::<runtime::Kernel>();
    both::<anywarp::Error>();
}
