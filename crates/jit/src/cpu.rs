//! Which CPU code is compiled for.

use kernel_abi::CompileError;
use std::arch::x86_64::__cpuid_count;
use std::env;
use std::fmt::Write;

/// The CPU that `ANYWARP_CPU` names: `native` (the default), `baseline`, `avx2` or `avx512`. Refused if this CPU cannot run
/// code for it.
pub fn chosen() -> Result<String, CompileError> {
    let name = env::var("ANYWARP_CPU").unwrap_or_default();
    let lacking = match name.as_str() {
        "" | "native" => return Ok("native".into()),
        "baseline" => !is_x86_feature_detected!("sse4.2"),
        "avx2" => !(is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")),
        "avx512" => !(is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("avx512vl")),
        _ => {
            let message = format!("ANYWARP_CPU is `{name}`: expected native, baseline, avx2 or avx512");
            return Err(CompileError::new(message));
        }
    };
    if lacking {
        return Err(CompileError::new(format!("ANYWARP_CPU is `{name}`, which this CPU is not")));
    }
    Ok(name)
}

/// Tells this CPU from others that may have other features: what `native` means.
pub fn fingerprint() -> String {
    // The leaves that tell family and features. Bits that differ between the cores of one machine (the APIC id in leaf 1)
    // stay out.
    let mut text = String::new();
    let highest = __cpuid_count(0, 0).eax;
    let add = |text: &mut String, leaf: u32, subleaf: u32, with_ebx: bool| {
        let answer = __cpuid_count(leaf, subleaf);
        let ebx = if with_ebx { answer.ebx } else { 0 };
        // Writing to a string cannot fail.
        let _ = write!(text, "{:x}.{:x}.{:x}.{:x} ", answer.eax, ebx, answer.ecx & !(1 << 27), answer.edx);
    };
    add(&mut text, 0, 0, true);
    add(&mut text, 1, 0, false);
    if highest >= 7 {
        add(&mut text, 7, 0, true);
        add(&mut text, 7, 1, true);
    }
    add(&mut text, 0x8000_0001, 0, true);
    // What the operating system lets programs use.
    let _ = write!(text, "{}{}", is_x86_feature_detected!("avx2"), is_x86_feature_detected!("avx512f"));
    text
}
