//! Modules, kernels, launches.

use super::{KERNELS, context, refused};
use crate::platform;
use anywarp::{ByValue, ErrorKind, Image, JitOptions, LaunchConfig, Limit, runtime};
use std::fmt::Write;

#[test]
fn a_kernel_sees_its_arguments_and_changes_the_buffer() {
    let context = context!();
    let module = context.load_ptx(KERNELS).unwrap();
    let scale = module.function("scale").unwrap();
    assert_eq!((scale.name(), scale.parameter_count()), ("scale", 2));
    let mut values = context.buffer_from(&[1.0_f32, -2.0, 0.5, 8.0]).unwrap();
    let (stream, config) = (context.default_stream(), LaunchConfig::new(2, 2));
    // SAFETY: four threads, four elements.
    unsafe { scale.launch(&stream, config, (&mut values, 4.0_f32)).unwrap() };
    assert_eq!(values.to_vec().unwrap(), [4.0, -8.0, 2.0, 32.0]);
    // SAFETY: two threads, two elements.
    unsafe {
        let mut middle = values.slice_mut(1..3).unwrap();
        scale.launch(&stream, LaunchConfig::new(1, 2), (&mut middle, 0.5_f32)).unwrap();
    }
    assert_eq!(values.to_vec().unwrap(), [4.0, -4.0, 1.0, 32.0]);
}

#[test]
fn arguments_of_every_size_go_to_their_places() {
    let context = context!();
    let module = context.load_ptx(KERNELS).unwrap();
    let sum = module.function("sum").unwrap();
    let mut out = context.zeroed::<f64>(1).unwrap();
    let (stream, one) = (context.create_stream().unwrap(), LaunchConfig::new(1, 1));
    let arguments = (&mut out, 200_u8, -300_i16, 70_000_u32, -5_000_000_000_i64, 0.5_f32, 0.25_f64, 9_u32);
    // SAFETY: the kernel writes one element.
    unsafe { sum.launch(&stream, one, arguments).unwrap() };
    let expected = f64::from(200 - 300 + 70_000 + 9) - 5e9 + 0.75;
    assert_eq!(out.to_vec().unwrap(), [expected]);
}

#[test]
fn arguments_are_checked_before_anything_runs() {
    let context = context!();
    let other = platform().unwrap().device(0).unwrap().create_context().unwrap();
    let module = context.load_ptx(KERNELS).unwrap();
    let scale = module.function("scale").unwrap();
    let (stream, one) = (context.default_stream(), LaunchConfig::new(1, 1));
    let mut values = context.zeroed::<f32>(1).unwrap();
    let mut foreign = other.zeroed::<f32>(1).unwrap();
    macro_rules! reason {
        ($stream:expr, $($argument:expr),*) => {{
            // SAFETY: nothing is launched.
            let error = refused(unsafe { scale.launch($stream, one, ($($argument,)*)) });
            assert_eq!((error.kind(), error.code()), (ErrorKind::Arguments, 1));
            error.message().to_owned()
        }};
    }
    assert_eq!(reason!(&stream, &mut values), "the kernel takes 2 arguments, 1 were given");
    assert_eq!(reason!(&stream, &mut values, 2_u32), "argument 1: the kernel takes a floating-point number");
    assert_eq!(reason!(&stream, &mut values, 2_f64), "argument 1: the kernel takes 4 bytes, 8 were given");
    assert_eq!(reason!(&stream, 1_f64, 1_f32), "argument 0: the kernel takes an integer or a pointer");
    assert_eq!(reason!(&stream, &mut foreign, 1_f32), "argument 0: the memory is of another context");
    assert_eq!(reason!(&other.default_stream(), &mut values, 1_f32), "the stream is of another context");
}

#[test]
fn structures_go_by_value_and_variables_can_be_read_and_written() {
    let context = context!();
    let module = context.load_ptx(KERNELS).unwrap();
    let count = module.function("count").unwrap();
    assert_eq!(module.read_variable::<u32>("counter").unwrap(), 5);
    let steps = ByValue([9_u32, 2]);
    // SAFETY: the kernel touches its own variable.
    unsafe { count.launch(&context.create_stream().unwrap(), LaunchConfig::new(3, 4), (steps,)).unwrap() };
    assert_eq!(module.read_variable::<u32>("counter").unwrap(), 5 + 3 * 4 * 2);
    module.write_variable("counter", 1_u32).unwrap();
    assert_eq!(module.read_variable::<u32>("counter").unwrap(), 1);
    assert_eq!(module.variable("counter").unwrap().1, 4);
    assert_eq!(refused(module.read_variable::<u64>("counter")).message(), "counter has 4 bytes, not 8");
    let absent = refused(module.read_variable::<u32>("absent"));
    assert_eq!((absent.kind(), absent.code()), (ErrorKind::NotFound, 500));
    assert_eq!(absent.message(), "the module has no absent");
}

#[test]
fn kernels_are_found_by_name() {
    let context = context!();
    let module = context.load_ptx(KERNELS).unwrap();
    let mut names = module.function_names().unwrap();
    names.sort();
    assert_eq!(names, ["count", "scale", "small_blocks", "store", "sum", "through_shared"]);
    for absent in ["no such kernel", "counter", "", "sca\0le"] {
        assert_eq!(refused(module.function(absent)).kind(), ErrorKind::NotFound, "{absent:?}");
    }
}

#[test]
fn a_module_has_its_own_variables_in_each_context() {
    let (one, other) = (context!(), context!());
    assert!(!one.is_same(&other));
    let (first, second) = (one.load_ptx(KERNELS).unwrap(), other.load_ptx(KERNELS).unwrap());
    first.write_variable("counter", 77_u32).unwrap();
    assert_eq!(second.read_variable::<u32>("counter").unwrap(), 5);
}

#[test]
fn wrong_ptx_is_named_with_its_line() {
    let context = context!();
    let error = refused(context.load_ptx(".version 8.0\n.target sm_80\n.adress_size 64\n"));
    assert_eq!((error.kind(), error.code_name()), (ErrorKind::Ptx, Some("CUDA_ERROR_INVALID_PTX")));
    assert!(error.message().contains('3'), "{error}");
    assert_eq!(refused(context.load_ptx("no PTX at all")).code(), 200);
    assert_eq!(refused(context.load_ptx("")).kind(), ErrorKind::Ptx);
    let absent = refused(context.load_ptx_file("/no/such/file.ptx"));
    assert_eq!((absent.kind(), absent.code()), (ErrorKind::NotFound, 301));
    assert!(absent.message().contains("/no/such/file.ptx"), "{absent}");
    assert_eq!(refused(context.load_with(&[], &JitOptions::default())).kind(), ErrorKind::Arguments);
}

#[test]
fn fat_binaries_are_loaded_and_damaged_ones_refused() {
    use fatbin::writer::{ContainerWriter, EntryWriter};
    let context = context!();
    let bytes = ContainerWriter::new().entry(EntryWriter::ptx(80, KERNELS)).finish();
    let module = context.load_fatbin(&bytes).unwrap();
    let scale = module.function("scale").unwrap();
    let mut values = context.buffer_from(&[3.0_f32]).unwrap();
    // SAFETY: one thread, one element.
    unsafe {
        scale.launch(&context.default_stream(), LaunchConfig::new(1, 1), (&mut values, 2.0_f32)).unwrap()
    };
    assert_eq!(values.to_vec().unwrap(), [6.0]);

    for len in [0, 8, 16, bytes.len() / 2, bytes.len() - 1] {
        assert_eq!(refused(context.load_fatbin(&bytes[..len])).kind(), ErrorKind::Ptx, "{len} bytes");
    }
    assert_eq!(refused(context.load_fatbin(&ContainerWriter::new().finish())).code(), 209);
}

#[test]
fn several_images_are_linked() {
    let context = context!();
    let head = ".version 8.0\n.target sm_80\n.address_size 64\n";
    let caller = format!(
        "{head}.extern .func (.param .b32 result) twice (.param .b32 x);
        .visible .entry main (.param .u64 out)
        {{
            .reg .u32 %r; .reg .u64 %rd;
            {{
                .param .b32 x; .param .b32 result;
                st.param.b32 [x], 21;
                call (result), twice, (x);
                ld.param.b32 %r, [result];
            }}
            ld.param.u64 %rd, [out];
            st.global.u32 [%rd], %r;
            ret;
        }}"
    );
    let callee = format!(
        "{head}.visible .func (.param .b32 result) twice (.param .b32 x)
        {{
            .reg .u32 %r;
            ld.param.b32 %r, [x];
            add.u32 %r, %r, %r;
            st.param.b32 [result], %r;
            ret;
        }}"
    );
    let images = [("caller.ptx", Image::Ptx(&caller)), ("callee.ptx", Image::Ptx(&callee))];
    let options = JitOptions::default()
        .with_optimization_level(3)
        .with_max_registers(64)
        .with_line_info(true)
        .with_verbose(true);
    let module = context.load_with(&images, &options).unwrap();
    let main = module.function("main").unwrap();
    let mut out = context.zeroed::<u32>(1).unwrap();
    // SAFETY: the kernel writes one element.
    unsafe { main.launch(&context.default_stream(), LaunchConfig::new(1, 1), (&mut out,)).unwrap() };
    assert_eq!(out.to_vec().unwrap(), [42]);

    let alone = refused(context.load_with(&images[..1], &options));
    assert_eq!(alone.kind(), ErrorKind::Ptx);
    assert!(alone.message().contains("twice"), "{alone}");
    let both = refused(context.load_with(&[images[1], images[1]], &options));
    assert_eq!(both.kind(), ErrorKind::Ptx, "{} {both}", both.code());
    assert!(both.message().contains("twice"), "{both}");
}

#[test]
fn functions_tell_what_they_need_and_how_many_fit() {
    let context = context!();
    let module = context.load_ptx(KERNELS).unwrap();
    let small = module.function("small_blocks").unwrap();
    let attributes = small.attributes().unwrap();
    assert_eq!(attributes.max_threads_per_block, 64);
    assert_eq!(attributes.ptx_version, (8, 0));
    assert_eq!(attributes.binary_version, context.device().compute_capability());
    assert_eq!(attributes.shared_bytes, 0);
    let per_processor = small.blocks_per_multiprocessor(64, 0).unwrap();
    assert!(per_processor > 0);
    // The kernel's own limit does not count.
    let larger = small.blocks_per_multiprocessor(65, 0).unwrap();
    assert!(larger > 0 && larger < per_processor, "{larger} of {per_processor}");
    assert_eq!(small.blocks_per_multiprocessor(u32::MAX, 0).unwrap(), 0);
    assert_eq!(refused(small.blocks_per_multiprocessor(0, 0)).kind(), ErrorKind::Arguments);
    let best = small.best_config(0).unwrap();
    assert_eq!(best.block, [64, 1, 1]);
    assert!(best.grid[0] >= context.device().multiprocessors());
}

#[test]
fn much_dynamic_shared_memory_must_be_asked_for() {
    let context = context!();
    let module = context.load_ptx(KERNELS).unwrap();
    let kernel = module.function("through_shared").unwrap();
    let (stream, bytes) = (context.create_stream().unwrap(), 64_u32 << 10);
    let mut out = context.zeroed::<u32>(1).unwrap();
    let config = LaunchConfig::new(1, 1).with_shared(bytes);
    // SAFETY: nothing is launched.
    let error = refused(unsafe { kernel.launch(&stream, config, (&mut out, bytes, 7_u32)) });
    assert_eq!(error.kind(), ErrorKind::Arguments);
    kernel.set_max_dynamic_shared(bytes).unwrap();
    assert_eq!(kernel.attributes().unwrap().max_dynamic_shared, bytes);
    // SAFETY: the kernel writes its shared memory and one element.
    unsafe { kernel.launch(&stream, config, (&mut out, bytes, 7_u32)).unwrap() };
    assert_eq!(out.to_vec().unwrap(), [7]);
    let most = context.device().limits().shared_per_block;
    assert!(kernel.set_max_dynamic_shared(most).is_ok());
    for too_much in [most + 1, u32::MAX] {
        assert_eq!(refused(kernel.set_max_dynamic_shared(too_much)).kind(), ErrorKind::Arguments);
    }
}

#[test]
fn launches_beyond_the_limits_are_refused() {
    let context = context!();
    let module = context.load_ptx(KERNELS).unwrap();
    let (count, small) = (module.function("count").unwrap(), module.function("small_blocks").unwrap());
    let stream = context.default_stream();
    let too_much_shared = LaunchConfig::new(1, 1).with_shared(1 << 20);
    let deep = LaunchConfig { block: [1, 1, 65], ..LaunchConfig::new(1, 1) };
    for config in
        [LaunchConfig::new(0, 1), LaunchConfig::new(1, 0), LaunchConfig::new(1, 1025), deep, too_much_shared]
    {
        // SAFETY: nothing is launched.
        let error = refused(unsafe { count.launch(&stream, config, (ByValue([0_u32; 2]),)) });
        assert_eq!(error.kind(), ErrorKind::Arguments, "{config:?}");
    }
    // SAFETY: nothing is launched.
    let error = refused(unsafe { small.launch(&stream, LaunchConfig::new(1, 65), ()) });
    assert!(error.message().contains("small_blocks"), "{error}");
    let many = LaunchConfig::new(1 << 20, 1024).cooperative();
    // SAFETY: nothing is launched.
    let error = refused(unsafe { count.launch(&stream, many, (ByValue([0_u32; 2]),)) });
    assert_eq!(error.code_name(), Some("CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE"));
    context.synchronize().unwrap();
    // SAFETY: the kernel does nothing.
    unsafe { small.launch(&stream, LaunchConfig::new(2, 64).cooperative(), ()).unwrap() };
    context.synchronize().unwrap();
}

#[test]
fn a_failed_kernel_fails_what_comes_after_it() {
    let context = context!();
    let module = context.load_ptx(KERNELS).unwrap();
    let store = module.function("store").unwrap();
    let (stream, event) = (context.create_stream().unwrap(), context.create_event().unwrap());
    let buffer = context.zeroed::<u32>(1).unwrap();
    let (pinned, mut output) = (context.pinned::<u32>(1).unwrap(), [0]);
    // SAFETY: nothing lies at this address.
    unsafe { store.launch(&stream, LaunchConfig::new(1, 1), (16_u64, 1_u32)).unwrap() };
    let (send, receive) = std::sync::mpsc::channel();
    let also = send.clone();
    let queued = stream.call_with_status(move |status| send.send(status.map_err(|e| e.code())).unwrap());
    let _ = stream.call(move || also.send(Ok(())).unwrap());
    let error = refused(stream.synchronize());
    assert_eq!((error.kind(), error.code()), (ErrorKind::Fault, 700));
    // If the callback was queued before the kernel had failed, it is told; what is only for success is not called.
    let told: Vec<_> = receive.iter().collect();
    assert!(told.is_empty() && queued.is_err() || told == [Err(700)], "{told:?}");
    for outcome in [
        context.synchronize(),
        event.record(&stream),
        context.zeroed::<u8>(1).map(drop),
        buffer.to_vec().map(drop),
        context.load_ptx(KERNELS).map(drop),
        context.create_stream().map(drop),
        context.limit(Limit::StackSize).map(drop),
        stream.scope(|scope| scope.copy_to_host(&mut output, &buffer)),
    ] {
        assert_eq!(refused(outcome).kind(), ErrorKind::Fault);
    }
    drop((buffer, pinned, event, stream));
}

#[test]
fn limits_are_kept_and_bounded() {
    let context = context!();
    assert_eq!(context.limit(Limit::StackSize).unwrap(), 1024);
    for (limit, value) in
        [(Limit::StackSize, 4096), (Limit::PrintfBuffer, 2 << 20), (Limit::MallocHeap, 32 << 20)]
    {
        context.set_limit(limit, value).unwrap();
        assert!(context.limit(limit).unwrap() >= value, "{limit:?}");
    }
    assert_eq!(refused(context.set_limit(Limit::StackSize, 1 << 30)).kind(), ErrorKind::Arguments);
}

#[test]
fn the_runtime_uses_one_primary_context_in_all_threads() {
    let Some(platform) = platform() else { return };
    runtime::set_device(0).unwrap();
    assert_eq!(refused(runtime::set_device(usize::MAX)).kind(), ErrorKind::NoDevice);
    let here = runtime::context().unwrap();
    let there = std::thread::spawn(|| runtime::context().unwrap()).join().unwrap();
    assert!(here.is_same(there) && std::ptr::eq(here, there));
    assert!(here.is_same(&platform.device(0).unwrap().primary_context().unwrap()));
    let mut values = runtime::buffer_from(&[3.0_f32; 32]).unwrap();
    let scale = runtime::kernel(KERNELS, "scale").unwrap();
    assert_eq!((scale.function().name(), scale.module().info_log().contains('\0')), ("scale", false));
    // SAFETY: as many threads as elements.
    unsafe { scale.launch(LaunchConfig::for_threads(32, 32), (&mut values, 0.5_f32)).unwrap() };
    runtime::synchronize().unwrap();
    assert_eq!(values.to_vec().unwrap(), [1.5; 32]);
    let stream = runtime::create_stream().unwrap();
    // SAFETY: as above.
    unsafe { scale.launch_in(&stream, LaunchConfig::for_threads(32, 32), (&mut values, 2_f32)).unwrap() };
    assert_eq!(values.to_vec().unwrap(), [3.0; 32]);
}

#[test]
fn platforms_and_devices_describe_themselves() {
    let Some(platform) = platform() else { return };
    assert!(platform.cuda_version().unwrap() >= (12, 0));
    let devices = platform.devices().unwrap();
    assert_eq!(devices.len(), platform.device_count().unwrap());
    let none = refused(platform.device(devices.len()));
    assert_eq!((none.kind(), none.code()), (ErrorKind::NoDevice, 101));
    assert_eq!(refused(platform.device(usize::MAX)).code(), 101);
    for (ordinal, device) in devices.iter().enumerate() {
        assert_eq!(device.ordinal(), ordinal);
        assert!(!device.name().is_empty() && device.multiprocessors() > 0);
        assert!(device.total_memory() > 0 && device.compute_capability().0 >= 5);
        let limits = device.limits();
        assert_eq!((limits.block, limits.threads_per_block), ([1024, 1024, 64], 1024));
        assert_eq!(limits.grid, [i32::MAX as u32, 65535, 65535]);
        let mut seen = String::new();
        write!(seen, "{} {}", limits.shared_per_block, limits.parameters).unwrap();
        assert!(limits.shared_per_block >= 48 << 10 && limits.parameters >= 4096, "{seen}");
    }
}
