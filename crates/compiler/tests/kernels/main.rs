//! PTX to running code: through the library as programs use it, and in this process on every CPU level.

mod launch;

use jit::Jit;
use jit::compiler::{Compiler, CompilerLibrary, Source};
use kernel_abi::artifact::Artifact;
use kernel_abi::{CompileError, FaultKind};
use launch::Launch;

/// The compiler linked in, for a CPU of the test's choice.
struct InProcess(&'static str);

impl Compiler for InProcess {
    fn identity(&self) -> String {
        format!("in process {}", self.0)
    }

    fn compile(&self, source: &Source<'_>) -> Result<Artifact, CompileError> {
        anywarp_compiler::compile(
            source.ptx,
            source.entry,
            source.shape,
            self.0,
            source.approximations,
            source.tier,
        )
    }
}

/// Back ends for the levels that code can run for here, and the library.
fn backends() -> Vec<(&'static str, Jit)> {
    let mut all = vec![("library", Jit::new(Box::new(CompilerLibrary::default()), None))];
    let levels = [
        ("baseline", true),
        ("avx2", is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")),
        ("avx512", is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("avx512vl")),
        ("native", true),
    ];
    for (name, _) in levels.into_iter().filter(|(_, here)| *here) {
        all.push((name, Jit::new(Box::new(InProcess(name)), None)));
    }
    all
}

fn module(body: &str) -> String {
    format!(".version 8.3\n.target sm_80\n.address_size 64\n{body}")
}

const SAXPY: &str = "
.visible .entry saxpy(.param .u32 n, .param .f32 a, .param .u64 x, .param .u64 y)
{
    .reg .pred %p; .reg .b32 %r<6>; .reg .f32 %f<4>; .reg .b64 %rd<6>;
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
    mad.lo.s32 %r5, %r2, %r3, %r4;
    setp.ge.s32 %p, %r5, %r1;
    @%p bra done;
    ld.param.f32 %f0, [a]; ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y];
    mul.wide.s32 %rd3, %r5, 4;
    add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;
    ld.global.f32 %f1, [%rd4]; ld.global.f32 %f2, [%rd5];
    fma.rn.f32 %f3, %f0, %f1, %f2;
    st.global.f32 [%rd5], %f3;
done:
    ret;
}";

#[test]
fn saxpy_touches_its_elements_alone() {
    for (name, jit) in backends() {
        for (n, block) in [(1000_usize, 256), (1, 32), (33, 48), (4096, 1024)] {
            let x: Vec<f32> = (0..n + 64).map(|i| i as f32).collect();
            let mut y: Vec<f32> = (0..n + 64).map(|i| 1.0 + i as f32).collect();
            let launch = Launch::new(n.div_ceil(block) as u32, block as u32)
                .param(n as u32)
                .param(2.0_f32.to_bits())
                .param(x.as_ptr() as u64)
                .param(y.as_mut_ptr() as u64);
            launch.run(&jit, &module(SAXPY), "saxpy").unwrap_or_else(|fault| panic!("{name}: {fault:?}"));
            for (i, value) in y.iter().enumerate() {
                let expected = if i < n { 3.0 * i as f32 + 1.0 } else { 1.0 + i as f32 };
                assert_eq!(*value, expected, "{name}: element {i} of {n}");
            }
        }
    }
}

/// Its device decides what it loads; a device may say that it is newer than usual.
#[test]
fn code_for_a_newer_architecture_is_compiled() {
    let newer = module(SAXPY).replace(".version 8.3", ".version 8.7").replace("sm_80", "sm_120");
    for (name, jit) in backends() {
        let (x, mut y) = ([3.0_f32; 32], [1.0_f32; 32]);
        let launch = Launch::new(1, 32)
            .param(32_u32)
            .param(2.0_f32.to_bits())
            .param(x.as_ptr() as u64)
            .param(y.as_mut_ptr() as u64);
        launch.run(&jit, &newer, "saxpy").unwrap_or_else(|fault| panic!("{name}: {fault:?}"));
        assert_eq!(y, [7.0; 32], "{name}");
    }
}

/// Sums a block's threads in shared memory, halving the number of threads at work.
const REDUCE: &str = "
.visible .entry reduce(.param .u64 in, .param .u64 out)
{
    .shared .align 4 .b8 cell[4096];
    .reg .pred %p<3>; .reg .b32 %r<16>; .reg .b64 %rd<8>;
    ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out];
    mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x;
    mad.lo.s32 %r4, %r2, %r3, %r1;
    mul.wide.u32 %rd3, %r4, 4; add.s64 %rd4, %rd1, %rd3;
    ld.global.u32 %r5, [%rd4];
    mov.u32 %r6, cell; shl.b32 %r7, %r1, 2; add.u32 %r8, %r6, %r7;
    st.shared.u32 [%r8], %r5;
    bar.sync 0;
    shr.u32 %r9, %r3, 1;
loop:
    setp.eq.u32 %p0, %r9, 0;
    @%p0 bra end;
    setp.ge.u32 %p1, %r1, %r9;
    @%p1 bra next;
    shl.b32 %r10, %r9, 2; add.u32 %r11, %r8, %r10;
    ld.shared.u32 %r12, [%r11]; ld.shared.u32 %r13, [%r8];
    add.u32 %r14, %r12, %r13; st.shared.u32 [%r8], %r14;
next:
    bar.sync 0;
    shr.u32 %r9, %r9, 1;
    bra loop;
end:
    setp.ne.u32 %p2, %r1, 0;
    @%p2 bra done;
    ld.shared.u32 %r15, [cell];
    mul.wide.u32 %rd5, %r2, 4; add.s64 %rd6, %rd2, %rd5;
    st.global.u32 [%rd6], %r15;
done:
    ret;
}";

#[test]
fn a_reduction_meets_at_its_barriers() {
    for (name, jit) in backends() {
        for block in [32_u32, 256, 1024] {
            let grid = 3;
            let input: Vec<u32> = (0..grid * block).map(|i| i * i % 1001).collect();
            let mut output = vec![0_u32; grid as usize];
            let launch =
                Launch::new(grid, block).param(input.as_ptr() as u64).param(output.as_mut_ptr() as u64);
            launch.run(&jit, &module(REDUCE), "reduce").unwrap_or_else(|fault| panic!("{name}: {fault:?}"));
            let expected: Vec<u32> = input.chunks(block as usize).map(|part| part.iter().sum()).collect();
            assert_eq!(output, expected, "{name}: blocks of {block}");
        }
    }
}

#[test]
fn faults_end_the_launch_and_not_the_process() {
    let store = "
.visible .entry store(.param .u64 to)
{
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [to];
    st.global.u32 [%rd1], 7;
    ret;
}
.visible .entry stop() { trap; }";
    for (name, jit) in backends() {
        let run = |entry: &str, to: u64| Launch::new(1, 32).param(to).run(&jit, &module(store), entry);
        let fault = run("store", 0).unwrap_err();
        assert_eq!(fault.kind, FaultKind::IllegalAddress, "{name}: {fault:?}");
        assert_eq!(run("stop", 0).unwrap_err().kind, FaultKind::Trap, "{name}");
        let mut cell = 0_u32;
        let unaligned = run("store", &raw mut cell as u64 + 1).unwrap_err();
        assert_eq!(unaligned.kind, FaultKind::Misaligned, "{name}");
        assert_eq!(run("store", &raw mut cell as u64), Ok(()), "{name}");
        assert_eq!(cell, 7);
    }
}

/// Stores for each thread at an address that follows from its number and is odd from a thread on, or that a table says, or where it has loaded.
const STORES: &str = "
.visible .entry by_number(.param .u64 to, .param .u64 from, .param .u32 odd)
{
    .reg .pred %p; .reg .b32 %r<6>; .reg .b64 %rd<8>;
    ld.param.u64 %rd1, [to]; ld.param.u64 %rd2, [from]; ld.param.u32 %r0, [odd];
    mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r1, %r2, %r3;
    mul.wide.s32 %rd3, %r4, 4;
    setp.ge.s32 %p, %r4, %r0;
    selp.u64 %rd4, 1, 0, %p;
    add.s64 %rd3, %rd3, %rd4;
    add.s64 %rd5, %rd1, %rd3;
    st.global.u32 [%rd5], 7;
    ret;
}
.visible .entry by_table(.param .u64 to, .param .u64 from, .param .u32 odd)
{
    .reg .b32 %r<6>; .reg .b64 %rd<8>;
    ld.param.u64 %rd1, [to]; ld.param.u64 %rd2, [from];
    mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r1, %r2, %r3;
    mul.wide.s32 %rd3, %r4, 4;
    add.s64 %rd4, %rd2, %rd3;
    ld.global.s32 %r5, [%rd4];
    cvt.s64.s32 %rd5, %r5;
    add.s64 %rd6, %rd1, %rd5;
    st.global.u32 [%rd6], 7;
    ret;
}
.visible .entry in_place(.param .u64 to, .param .u64 from, .param .u32 odd)
{
    .reg .b32 %r<6>; .reg .b64 %rd<8>;
    ld.param.u64 %rd1, [to];
    mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r1, %r2, %r3;
    mul.wide.s32 %rd3, %r4, 4;
    add.s64 %rd5, %rd1, %rd3;
    ld.global.u32 %r5, [%rd5];
    add.u32 %r5, %r5, 1;
    st.global.u32 [%rd5], %r5;
    ret;
}";

/// Two pages of which the second may not be accessed.
struct Guarded(*mut u8);

const PAGE: usize = 4096;

impl Guarded {
    fn new() -> Guarded {
        // SAFETY: new memory.
        let pages = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                2 * PAGE,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        assert_ne!(pages, libc::MAP_FAILED);
        // SAFETY: the second page of the two.
        assert_eq!(unsafe { libc::mprotect(pages.byte_add(PAGE), PAGE, libc::PROT_NONE) }, 0);
        Guarded(pages.cast())
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`.
        unsafe { libc::munmap(self.0.cast(), 2 * PAGE) };
    }
}

#[test]
fn faults_name_block_and_warp() {
    // The page ends in the middle of block 10, which begins with thread 960: before its last warp.
    let memory = Guarded::new();
    let to = memory.0 as u64;
    let places: Vec<i32> = (0..20 * 96).map(|i| 4 * i).collect();
    for (name, jit) in backends() {
        for entry in ["by_number", "by_table", "in_place"] {
            let launch = |odd: u32| Launch::new(20, 96).param(to).param(places.as_ptr() as u64).param(odd);
            let fault = launch(u32::MAX >> 1).run(&jit, &module(STORES), entry).unwrap_err();
            assert_eq!(fault.kind, FaultKind::IllegalAddress, "{name}, {entry}: {fault:?}");
            // An access of all lanes at once is known by one of its vectors.
            let warp = to + PAGE as u64..to + PAGE as u64 + 128;
            assert!(
                fault.address.is_some_and(|address| warp.contains(&address)),
                "{name}, {entry}: {fault:?}"
            );
            assert_eq!((fault.ctaid, fault.warp), ([10, 0, 0], 2), "{name}, {entry}: {fault:?}");
        }
        let launch = Launch::new(8, 96).param(to).param(places.as_ptr() as u64).param(96_u32 * 7 + 40);
        let fault = launch.run(&jit, &module(STORES), "by_number").unwrap_err();
        let found = (fault.kind, fault.ctaid, fault.warp, fault.lane);
        assert_eq!(found, (FaultKind::Misaligned, [7, 0, 0], 1, Some(8)), "{name}: {fault:?}");
    }
}

#[test]
fn what_is_wrong_with_a_text_is_said() {
    for (name, jit) in backends() {
        let error = |ptx: &str, entry| Launch::new(1, 32).compile(&jit, ptx, entry).err().unwrap();
        let syntax = error(&module(".visible .entry f() { bogus.u32 %r1, %r2; }"), "f");
        assert!(syntax.message.contains("line 4"), "{name}: {syntax}");
        let missing = error(&module(SAXPY), "daxpy");
        assert!(missing.message.contains("daxpy"), "{name}: {missing}");
    }
}
