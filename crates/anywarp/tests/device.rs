//! The crate as a program uses it: kernels from PTX, on the back end that the environment chooses.

use anywarp::{ByValue, Context, Device, Error, LaunchConfig, Module, runtime};

const KERNELS: &str = "
.version 8.0
.target sm_80
.address_size 64

.visible .global .align 4 .u32 counter = 5;

.visible .entry scale (.param .u64 values, .param .f32 factor)
{
    .reg .u32 %r<4>;
    .reg .u64 %rd<3>;
    .reg .f32 %f<3>;
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.u32 %r1, %r1, %r2, %r3;
    ld.param.u64 %rd1, [values];
    ld.param.f32 %f1, [factor];
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd1, %rd1, %rd2;
    ld.global.f32 %f2, [%rd1];
    mul.rn.f32 %f2, %f2, %f1;
    st.global.f32 [%rd1], %f2;
    ret;
}

.visible .entry count (.param .align 4 .b8 steps[8])
{
    .reg .u32 %r<3>;
    ld.param.u32 %r1, [steps + 4];
    atom.global.add.u32 %r2, [counter], %r1;
    ret;
}

.visible .entry fail (.param .u64 address)
{
    .reg .u64 %rd;
    ld.param.u64 %rd, [address];
    st.global.u32 [%rd], 1;
    ret;
}
";

fn context() -> Context {
    Device::get(0).unwrap().create_context().unwrap()
}

fn load(context: &Context) -> Module {
    context.load_ptx(KERNELS).unwrap()
}

#[test]
fn a_kernel_sees_its_arguments_and_changes_the_buffer() {
    let context = context();
    let scale = load(&context).function("scale").unwrap();
    let mut values = context.buffer_from(&[1.0_f32, -2.0, 0.5, 8.0]).unwrap();
    // SAFETY: four threads, four elements.
    unsafe {
        scale.launch(context.default_stream(), LaunchConfig::new(2, 2), (&mut values, 4.0_f32)).unwrap()
    };
    assert_eq!(values.to_vec().unwrap(), [4.0, -8.0, 2.0, 32.0]);
}

#[test]
fn structures_go_by_value_and_variables_can_be_read_and_written() {
    let context = context();
    let module = load(&context);
    let count = module.function("count").unwrap();
    assert_eq!(module.read_variable::<u32>("counter").unwrap(), 5);
    let steps = ByValue([9_u32, 2]);
    // SAFETY: the kernel touches its own variable.
    unsafe { count.launch(context.default_stream(), LaunchConfig::new(3, 4), (steps,)).unwrap() };
    assert_eq!(module.read_variable::<u32>("counter").unwrap(), 5 + 3 * 4 * 2);
    module.write_variable("counter", 1_u32).unwrap();
    assert_eq!(module.read_variable::<u32>("counter").unwrap(), 1);
    assert!(matches!(module.read_variable::<u64>("counter"), Err(Error::Arguments(_))));
    assert_eq!(module.read_variable::<u32>("absent"), Err(Error::NotFound("absent".into())));
}

#[test]
fn a_module_has_its_own_variables_in_each_context() {
    let (one, other) = (context(), context());
    let (first, second) = (load(&one), load(&other));
    first.write_variable("counter", 77_u32).unwrap();
    assert_eq!(second.read_variable::<u32>("counter").unwrap(), 5);
    assert!(one != other);
}

#[test]
fn a_fault_stays_in_its_context_and_names_the_kernel() {
    let (sick, healthy) = (context(), context());
    let fail = load(&sick).function("fail").unwrap();
    // SAFETY: nothing lies at this address.
    unsafe { fail.launch(sick.default_stream(), LaunchConfig::new(1, 1), (16_u64,)).unwrap() };
    let Err(Error::Fault(reason)) = sick.synchronize() else { panic!("no fault") };
    assert!(reason.contains("fail") && reason.contains("0x10"), "{reason}");
    assert!(matches!(sick.zeroed::<u8>(1), Err(Error::Fault(_))));
    assert_eq!(healthy.buffer_from(&[1_u8, 2]).unwrap().to_vec().unwrap(), [1, 2]);
}

#[test]
fn wrong_ptx_is_named_with_its_line() {
    let Err(Error::Ptx(log)) = context().load_ptx(".version 8.0\n.target sm_80\n.adress_size 64\n") else {
        panic!("accepted")
    };
    assert!(log.contains('3'), "{log}");
}

#[test]
fn streams_wait_for_events_and_call_the_host() {
    let context = context();
    let scale = load(&context).function("scale").unwrap();
    let (first, second) = (context.create_stream().unwrap(), context.create_stream().unwrap());
    let mut values = context.buffer_from(&[1.0_f32; 64]).unwrap();
    let (begin, end) = (context.create_event().unwrap(), context.create_event().unwrap());
    begin.record(&first).unwrap();
    for _ in 0..3 {
        // SAFETY: as many threads as elements.
        unsafe { scale.launch(&first, LaunchConfig::new(2, 32), (&mut values, 2.0_f32)).unwrap() };
    }
    end.record(&first).unwrap();
    second.wait_for(&end).unwrap();
    // SAFETY: as many threads as elements; the event keeps the launches apart.
    unsafe { scale.launch(&second, LaunchConfig::new(2, 32), (&mut values, 5.0_f32)).unwrap() };
    let (send, receive) = std::sync::mpsc::channel();
    second.call(move || send.send(42).unwrap()).unwrap();
    second.synchronize().unwrap();
    assert_eq!(receive.try_recv(), Ok(42));
    assert!(second.is_done().unwrap());
    assert_eq!(values.to_vec().unwrap(), [40.0; 64]);
    end.elapsed_since(&begin).unwrap();
}

#[test]
fn a_stream_of_another_context_is_refused() {
    let (one, other) = (context(), context());
    let count = load(&one).function("count").unwrap();
    let steps = ByValue([0_u32; 2]);
    // SAFETY: nothing is launched.
    let refused = unsafe { count.launch(other.default_stream(), LaunchConfig::new(1, 1), (steps,)) };
    assert_eq!(refused, Err(Error::Device("the stream is of another context".into())));
}

#[test]
fn launches_beyond_the_limits_are_refused() {
    let context = context();
    let count = load(&context).function("count").unwrap();
    let too_much_shared = LaunchConfig::new(1, 1).with_shared(1 << 20);
    for config in [LaunchConfig::new(0, 1), LaunchConfig::new(1, 1025), too_much_shared] {
        // SAFETY: nothing is launched.
        let refused = unsafe { count.launch(context.default_stream(), config, (ByValue([0_u32; 2]),)) };
        assert!(refused.is_err(), "{config:?}");
    }
    context.synchronize().unwrap();
}

#[test]
fn buffers_check_lengths_and_may_be_empty() {
    let context = context();
    let mut buffer = context.zeroed::<u16>(3).unwrap();
    assert_eq!(buffer.to_vec().unwrap(), [0, 0, 0]);
    assert!(matches!(buffer.copy_from(&[1, 2]), Err(Error::Arguments(_))));
    buffer.copy_from(&[1, 2, 3]).unwrap();
    assert_eq!(buffer.to_vec().unwrap(), [1, 2, 3]);
    assert!(context.buffer_from::<f64>(&[]).unwrap().is_empty());
    assert_eq!(context.zeroed::<u64>(usize::MAX).err(), Some(Error::OutOfMemory));
}

#[test]
fn the_runtime_uses_one_primary_context_in_all_threads() {
    runtime::set_device(0).unwrap();
    assert_eq!(runtime::set_device(usize::MAX), Err(Error::NoDevice));
    let here = runtime::context().unwrap();
    let there = std::thread::spawn(|| runtime::context().unwrap()).join().unwrap();
    assert!(here == there);
    let mut values = runtime::buffer_from(&[3.0_f32; 32]).unwrap();
    let scale = runtime::kernel(KERNELS, "scale").unwrap();
    // SAFETY: as many threads as elements.
    unsafe { scale.launch(LaunchConfig::for_threads(32, 32), (&mut values, 0.5_f32)).unwrap() };
    runtime::synchronize().unwrap();
    assert_eq!(values.to_vec().unwrap(), [1.5; 32]);
}

#[test]
fn the_device_describes_itself() {
    let device = Device::get(0).unwrap();
    assert!(Device::count().unwrap() >= 1);
    assert!(Device::get(usize::MAX).is_err());
    assert!(!device.name().is_empty() && device.multiprocessors() > 0 && device.total_memory() > 0);
    assert!(device.compute_capability().0 >= 5);
}
