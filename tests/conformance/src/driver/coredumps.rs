//! Coredump attributes.

use super::common::*;
use std::process::Command;

fn global(attribute: CUcoredumpSettings, room: usize) -> Vec<u8> {
    let (mut value, mut size) = (vec![0xee_u8; room], room);
    cu!(cuCoredumpGetAttributeGlobal(attribute, value.as_mut_ptr().cast(), &mut size));
    value
}

fn of_context(attribute: CUcoredumpSettings, room: usize) -> Vec<u8> {
    let (mut value, mut size) = (vec![0xee_u8; room], room);
    cu!(cuCoredumpGetAttribute(attribute, value.as_mut_ptr().cast(), &mut size));
    value
}

fn text(bytes: &[u8]) -> &str {
    let end = bytes.iter().position(|byte| *byte == 0).expect("a NUL");
    assert!(bytes[end..].iter().all(|byte| *byte == 0), "NULs fill the rest");
    std::str::from_utf8(&bytes[..end]).expect("ASCII")
}

pub fn nothing_is_dumped_unless_asked_for() {
    new_context();
    assert_eq!(of_context(CU_COREDUMP_ENABLE_ON_EXCEPTION, 1), [0]);
    assert_eq!(of_context(CU_COREDUMP_TRIGGER_HOST, 1), [1]);
    assert_eq!(of_context(CU_COREDUMP_LIGHTWEIGHT, 1), [0]);
    assert_eq!(of_context(CU_COREDUMP_GENERATION_FLAGS, 4), [0; 4]);
    assert_eq!(global(CU_COREDUMP_ENABLE_USER_TRIGGER, 1), [0]);
}

pub fn settings_are_kept() {
    new_context();
    let (mut yes, mut no, mut one, mut four) = (1_u8, 0_u8, 1, 4);
    let (mut flags, mut name, mut len) = (0x2f_u32, *b"/tmp/x\0", 7);
    cu!(
        cuCoredumpSetAttribute(CU_COREDUMP_ENABLE_ON_EXCEPTION, (&raw mut yes).cast(), &mut one);
        cuCoredumpSetAttribute(CU_COREDUMP_TRIGGER_HOST, (&raw mut no).cast(), &mut one);
        cuCoredumpSetAttribute(CU_COREDUMP_GENERATION_FLAGS, (&raw mut flags).cast(), &mut four);
        cuCoredumpSetAttribute(CU_COREDUMP_FILE, name.as_mut_ptr().cast(), &mut len);
    );
    assert_eq!(of_context(CU_COREDUMP_ENABLE_ON_EXCEPTION, 1), [1]);
    // Whether the process ends, and whether the report is short, are flags too.
    assert_eq!(of_context(CU_COREDUMP_TRIGGER_HOST, 1), [1]);
    assert_eq!(of_context(CU_COREDUMP_LIGHTWEIGHT, 1), [1]);
    assert_eq!(of_context(CU_COREDUMP_GENERATION_FLAGS, 4), 0x2f_u32.to_ne_bytes());
    cu!(cuCoredumpSetAttribute(CU_COREDUMP_TRIGGER_HOST, (&raw mut no).cast(), &mut one));
    assert_eq!(of_context(CU_COREDUMP_TRIGGER_HOST, 1), [0]);
    assert_eq!(text(&of_context(CU_COREDUMP_FILE, 1024)), "/tmp/x");
    cu!(cuCoredumpSetAttributeGlobal(CU_COREDUMP_LIGHTWEIGHT, (&raw mut yes).cast(), &mut one));
    assert_eq!(global(CU_COREDUMP_LIGHTWEIGHT, 1), [1]);
    // No bytes change nothing.
    cu!(cuCoredumpSetAttribute(CU_COREDUMP_ENABLE_ON_EXCEPTION, null_mut(), &mut one));
    assert_eq!(of_context(CU_COREDUMP_ENABLE_ON_EXCEPTION, 1), [1]);
}

pub fn a_setting_has_its_size() {
    new_context();
    let (mut value, mut size) = ([0_u8; 2000], 0);
    for (attribute, room) in
        [(CU_COREDUMP_ENABLE_ON_EXCEPTION, 1), (CU_COREDUMP_FILE, 1024), (CU_COREDUMP_GENERATION_FLAGS, 4)]
    {
        cu!(cuCoredumpGetAttribute(attribute, null_mut(), &mut size));
        assert_eq!(size, room);
        cu!(cuCoredumpGetAttributeGlobal(attribute, null_mut(), &mut size));
        assert_eq!(size, room);
    }
    for (attribute, mut wrong) in [(CU_COREDUMP_ENABLE_ON_EXCEPTION, 4), (CU_COREDUMP_GENERATION_FLAGS, 1)] {
        let value = value.as_mut_ptr().cast();
        fails!(CUDA_ERROR_INVALID_VALUE, cuCoredumpGetAttribute(attribute, value, &mut wrong));
        fails!(CUDA_ERROR_INVALID_VALUE, cuCoredumpSetAttribute(attribute, value, &mut wrong));
    }
    value.fill(b'a');
    let mut len = 1501;
    let place = value.as_mut_ptr().cast();
    fails!(CUDA_ERROR_INVALID_VALUE, cuCoredumpSetAttribute(CU_COREDUMP_FILE, place, &mut len));
    fails!(CUDA_ERROR_INVALID_VALUE, cuCoredumpGetAttribute(CU_COREDUMP_FILE, place, null_mut()));
    fails!(CUDA_ERROR_INVALID_VALUE, cuCoredumpSetAttribute(CU_COREDUMP_FILE, place, null_mut()));
    for unknown in [0, 8].map(CUcoredumpSettings) {
        fails!(CUDA_ERROR_INVALID_VALUE, cuCoredumpGetAttribute(unknown, place, &mut size));
    }
}

pub fn what_users_trigger_is_of_the_process() {
    new_context();
    let (mut yes, mut one, mut pipe, mut len) = (1_u8, 1, *b"/tmp/p\0", 7);
    let place = (&raw mut yes).cast();
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuCoredumpGetAttribute(CU_COREDUMP_ENABLE_USER_TRIGGER, place, &mut one)
    );
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuCoredumpSetAttribute(CU_COREDUMP_ENABLE_USER_TRIGGER, place, &mut one)
    );
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuCoredumpSetAttribute(CU_COREDUMP_PIPE, pipe.as_mut_ptr().cast(), &mut len)
    );
    cu!(cuCoredumpSetAttributeGlobal(CU_COREDUMP_ENABLE_USER_TRIGGER, place, &mut one));
    assert_eq!(global(CU_COREDUMP_ENABLE_USER_TRIGGER, 1), [1]);
    if ours_only("NVIDIA's driver names the pipe once the debugger's part of it is there") {
        assert!(text(&global(CU_COREDUMP_PIPE, 1024)).starts_with("corepipe_"));
    }
    fails!(
        CUDA_ERROR_NOT_SUPPORTED,
        cuCoredumpSetAttributeGlobal(CU_COREDUMP_PIPE, pipe.as_mut_ptr().cast(), &mut len)
    );
}

pub fn contexts_have_settings_and_the_process_before_them() {
    let (mut yes, mut one) = (1_u8, 1);
    let place = (&raw mut yes).cast();
    init();
    cu!(cuCoredumpSetAttributeGlobal(CU_COREDUMP_LIGHTWEIGHT, place, &mut one));
    fails!(
        CUDA_ERROR_INVALID_CONTEXT,
        cuCoredumpGetAttribute(CU_COREDUMP_ENABLE_ON_EXCEPTION, place, &mut one)
    );
    create_context();
    assert_eq!(of_context(CU_COREDUMP_LIGHTWEIGHT, 1), [1]);
}

pub fn a_context_may_be_made_with_reports() {
    new_context();
    let (mut with, mut flags) = (CUcontext::NULL, 0);
    cu!(cuCtxCreate_v4(&mut with, null_mut(), CU_CTX_SCHED_YIELD | CU_CTX_COREDUMP_ENABLE, 0); cuCtxGetFlags(&mut flags));
    assert_eq!(flags, CU_CTX_SCHED_YIELD | CU_CTX_COREDUMP_ENABLE);
    if ours_only("NVIDIA's driver needs the debugger's part of it") {
        assert_eq!(of_context(CU_COREDUMP_ENABLE_ON_EXCEPTION, 1), [1]);
        let (without, mut popped) = (create_context(), CUcontext::NULL);
        assert_eq!(of_context(CU_COREDUMP_ENABLE_ON_EXCEPTION, 1), [0]);
        cu!(cuCtxSetFlags(CU_CTX_COREDUMP_ENABLE));
        assert_eq!(of_context(CU_COREDUMP_ENABLE_ON_EXCEPTION, 1), [1]);
        cu!(cuCtxPopCurrent_v2(&mut popped));
        assert_eq!(popped, without);
    }
    cu!(cuCtxDestroy_v2(with));
}

pub fn the_environment_names_the_file() {
    set_env("CUDA_COREDUMP_FILE", "/tmp/core.%p");
    new_context();
    assert_eq!(text(&of_context(CU_COREDUMP_FILE, 1024)), format!("/tmp/core.{}", std::process::id()));
}

const BAD: &str = ".version 8.0
.target sm_80
.address_size 64
.visible .entry bad()
{
    .reg .b64 %rd<2>;
    mov.u64 %rd1, 16;
    st.global.u32 [%rd1], 1;
    ret;
}
";

/// What a process that is told where its reports go does with a kernel that fails.
fn fail_apart(report: &str, flags: &str) -> std::process::ExitStatus {
    if std::env::var_os("CUDA_ENABLE_COREDUMP_ON_EXCEPTION").is_some() {
        new_context();
        assert_eq!(launch(function(load(BAD), c"bad"), 1, 1, CUstream::NULL, &mut []), CUDA_SUCCESS);
        fails!(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
        std::process::exit(0);
    }
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(std::env::args_os().skip(1));
    command.env("CUDA_ENABLE_COREDUMP_ON_EXCEPTION", "1").env("CUDA_COREDUMP_FILE", report);
    command.env("CUDA_COREDUMP_GENERATION_FLAGS", flags).status().expect("the program runs")
}

pub fn a_failed_kernel_leaves_a_report() {
    if !is_ours() {
        skip("NVIDIA's driver needs the debugger's part of it");
    }
    let report = format!("/tmp/anywarp-report-{}", std::process::id());
    let status = fail_apart(&report, "skip_abort");
    assert!(status.success(), "{status}");
    let text = std::fs::read_to_string(&report).expect("a report");
    for wanted in
        ["kernel      bad", "block       (0,0,0)", "thread      (0,0,0)", "address     0x10", "PTX line"]
    {
        assert!(text.contains(wanted), "no {wanted} in:\n{text}");
    }
    std::fs::remove_file(&report).expect("the report is ours");
}

pub fn a_report_ends_the_process_too() {
    if !is_ours() {
        skip("NVIDIA's driver needs the debugger's part of it");
    }
    use std::os::unix::process::ExitStatusExt;
    let report = format!("/tmp/anywarp-report-{}", std::process::id());
    let status = fail_apart(&report, "");
    assert_eq!(status.signal(), Some(libc::SIGABRT));
    std::fs::remove_file(&report).expect("a report");
}
