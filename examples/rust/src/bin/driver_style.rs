//! The driver's way in Rust: a device, a context, a module, a stream, all named.

use anywarp::{Device, Error, ErrorKind, LaunchConfig};

const KERNELS: &str = include_str!("../kernels.ptx");

fn main() -> Result<(), Error> {
    let device = Device::get(0)?;
    let (major, minor) = device.compute_capability();
    println!("device 0 of {}: {}, compute capability {major}.{minor}", Device::count()?, device.name());

    let context = device.create_context()?;
    let module = context.load_ptx(KERNELS)?;
    let saxpy = module.function("saxpy")?;
    let stream = context.create_stream()?;

    let n = 1_000_003;
    let a = 2.5_f32;
    let host_x: Vec<f32> = (0..n).map(|i| i as f32 * 0.5).collect();
    let host_y: Vec<f32> = (0..n).map(|i| 1.0 / (i + 1) as f32).collect();
    let x = context.buffer_from(&host_x)?;
    let mut y = context.buffer_from(&host_y)?;

    // The number of arguments and their types are checked against the kernel's before anything runs.
    let config = LaunchConfig::for_threads(n, 256);
    // SAFETY: nothing is launched: the second argument has the wrong type.
    let refused = unsafe { saxpy.launch(&stream, config, (n, 2_u32, &x, &mut y)) };
    let reason = refused.expect_err("an integer for a float");
    assert_eq!(reason.kind(), ErrorKind::Arguments);
    println!("refused, as it should be: {reason}");

    let (begin, end) = (context.create_event()?, context.create_event()?);
    begin.record(&stream)?;
    // SAFETY: saxpy reads and writes n elements of each buffer, which is as many as they have.
    unsafe { saxpy.launch(&stream, config, (n, a, &x, &mut y))? };
    end.record(&stream)?;
    end.synchronize()?;
    println!("{:.3} ms by the stream's events", end.elapsed_since(&begin)?.as_secs_f64() * 1e3);

    for (i, found) in y.to_vec()?.into_iter().enumerate() {
        let expected = a.mul_add(host_x[i], host_y[i]);
        assert_eq!(found, expected, "element {i}");
    }
    println!("ok: {n} elements, each equal to the host's");
    Ok(())
}
