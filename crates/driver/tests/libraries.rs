//! Object files and static libraries of the host as inputs of a link, and the functions that the device provides.

mod common;
use common::*;
use fatbin::writer::{ContainerWriter, EntryWriter};
use object::write::Object;
use object::{Architecture, BinaryFormat, Endianness, SectionKind};

const HEADER: &str = ".version 8.0\n.target sm_80\n.address_size 64\n";

/// Calls `triple`, which is elsewhere.
const CALLER: &str = ".extern .func (.param .b32 r) triple(.param .b32 x);
.visible .entry k(.param .u64 out)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [out];
    {
        .param .b32 p;
        .param .b32 q;
        st.param.b32 [p], 14;
        call.uni (q), triple, (p);
        ld.param.b32 %r1, [q];
    }
    st.global.u32 [%rd1], %r1;
    ret;
}
";

const TRIPLE: &str = ".visible .func (.param .b32 r) triple(.param .b32 x)
{
    .reg .b32 %r<3>;
    ld.param.b32 %r1, [x];
    mul.lo.s32 %r2, %r1, 3;
    st.param.b32 [r], %r2;
    ret;
}
";

/// An object file of the host with this device code.
fn object_file(container: ContainerWriter) -> Vec<u8> {
    let mut object = Object::new(BinaryFormat::Elf, Architecture::X86_64, Endianness::Little);
    let section = object.add_section(vec![], b"__nv_relfatbin".to_vec(), SectionKind::ReadOnlyData);
    object.append_section_data(section, &container.finish(), 8);
    object.write().unwrap()
}

/// A static library of these members.
fn archive(members: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = b"!<arch>\n".to_vec();
    for member in members {
        let len = member.len();
        bytes.extend(format!("{:<16}{:<12}{:<6}{:<6}{:<8}{len:<10}`\n", "a.o/", 0, 0, 0, 644).into_bytes());
        bytes.extend(member);
        bytes.resize(bytes.len().next_multiple_of(2), b'\n');
    }
    bytes
}

fn add(link: CUlinkState, kind: CUjitInputType, bytes: &[u8]) -> CUresult {
    let data = bytes.as_ptr().cast_mut().cast();
    // SAFETY: as many bytes as the call is told; it copies what it keeps.
    unsafe { cuLinkAddData_v2(link, kind, data, bytes.len(), text(c"input"), 0, no_array(), no_array()) }
}

/// Links the caller with an input of another kind and runs it; the code of the first call that fails, or what the kernel wrote.
fn run_with(kind: CUjitInputType, bytes: &[u8]) -> Result<u32, CUresult> {
    let context = new_context();
    let mut link = CUlinkState::NULL;
    cu!(cuLinkCreate_v2(0, no_array(), no_array(), out(&mut link)));
    let caller = format!("{HEADER}{CALLER}\0");
    assert_eq!(add(link, CU_JIT_INPUT_PTX, caller.as_bytes()), CUDA_SUCCESS);
    let (mut image, mut size, mut module) = (null_mut(), 0, CUmodule::NULL);
    let mut code = add(link, kind, bytes);
    if code == CUDA_SUCCESS {
        // SAFETY: places for the answers.
        code = unsafe { cuLinkComplete(link, out(&mut image), out(&mut size)) };
    }
    let result = if code == CUDA_SUCCESS {
        cu!(cuModuleLoadData(out(&mut module), image));
        let place = alloc(4);
        assert_eq!(launch(function(module, "k"), 1, 1, CUstream::NULL, &mut [arg(&place)]), CUDA_SUCCESS);
        Ok(read::<u32>(place, 1)[0])
    } else {
        Err(code)
    };
    cu!(cuLinkDestroy(link); cuCtxDestroy_v2(context));
    result
}

#[test]
fn device_code_of_object_files_and_libraries_is_linked() {
    let source = format!("{HEADER}{TRIPLE}");
    let both = ContainerWriter::new().entry(EntryWriter::elf(90, "code")).entry(EntryWriter::ptx(80, source));
    let object = object_file(both);
    assert_eq!(run_with(CU_JIT_INPUT_OBJECT, &object), Ok(42));
    assert_eq!(run_with(CU_JIT_INPUT_LIBRARY, &archive(std::slice::from_ref(&object))), Ok(42));
    // Without PTX for the device there is nothing to link, and the name stays open.
    let machine_code = object_file(ContainerWriter::new().entry(EntryWriter::elf(90, "code")));
    assert_eq!(run_with(CU_JIT_INPUT_LIBRARY, &archive(&[machine_code])), Err(CUDA_ERROR_INVALID_SOURCE));
    assert_eq!(run_with(CU_JIT_INPUT_LIBRARY, b"no library"), Err(CUDA_ERROR_INVALID_IMAGE));
    assert_eq!(run_with(CU_JIT_INPUT_OBJECT, &object[..100]), Err(CUDA_ERROR_INVALID_IMAGE));
}

/// A function of the library that kernels launch kernels by, as NVIDIA's is made: of a call that its driver answers.
const DEVICE_RUNTIME: &str = ".extern .func (.param .b32 r) cnpLaunchDeviceV2(.param .b64 a, .param .b64 b);
.visible .func (.param .b32 r) cudaLaunchDeviceV2(.param .b64 a, .param .b64 b)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [a];
    ld.param.u64 %rd2, [b];
    {
        .param .b64 p;
        .param .b64 q;
        .param .b32 s;
        st.param.b64 [p], %rd1;
        st.param.b64 [q], %rd2;
        call.uni (s), cnpLaunchDeviceV2, (p, q);
        ld.param.b32 %r1, [s];
    }
    st.param.b32 [r], %r1;
    ret;
}
";

#[test]
fn the_library_that_kernels_launch_kernels_by_is_there_already() {
    let member = |text: &str| {
        object_file(ContainerWriter::new().entry(EntryWriter::ptx(80, format!("{HEADER}{text}"))))
    };
    let library = archive(&[member(DEVICE_RUNTIME), member(TRIPLE)]);
    assert_eq!(run_with(CU_JIT_INPUT_LIBRARY, &library), Ok(42));
}

/// Each block writes its number, waits for the grid, and reads its neighbour's, over and over.
const MEETING: &str = ".extern .func (.param .b64 r) cudaCGGetIntrinsicHandle(.param .b32 scope);
.extern .func (.param .b32 r) cudaCGSynchronize(.param .b64 group, .param .b32 flags);
.visible .entry meet(.param .u64 words, .param .u64 errors)
{
    .reg .pred %p, %more;
    .reg .b32 %block, %blocks, %next, %seen, %round, %expected, %mine, %code, %thread;
    .reg .b64 %words, %errors, %at, %group;
    ld.param.u64 %words, [words];
    ld.param.u64 %errors, [errors];
    mov.u32 %block, %ctaid.x;
    mov.u32 %blocks, %nctaid.x;
    mov.u32 %thread, %tid.x;
    {
        .param .b32 s;
        .param .b64 g;
        st.param.b32 [s], 1;
        call.uni (g), cudaCGGetIntrinsicHandle, (s);
        ld.param.b64 %group, [g];
    }
    add.u32 %next, %block, 1;
    rem.u32 %next, %next, %blocks;
    mov.u32 %round, 1;
AGAIN:
    mad.lo.u32 %mine, %round, 1000, %block;
    mad.wide.u32 %at, %block, 4, %words;
    setp.ne.u32 %p, %thread, 0;
    @!%p st.volatile.global.u32 [%at], %mine;
    {
        .param .b64 g;
        .param .b32 f;
        .param .b32 s;
        st.param.b64 [g], %group;
        st.param.b32 [f], 0;
        call.uni (s), cudaCGSynchronize, (g, f);
        ld.param.b32 %code, [s];
    }
    mad.wide.u32 %at, %next, 4, %words;
    ld.volatile.global.u32 %seen, [%at];
    mad.lo.u32 %expected, %round, 1000, %next;
    setp.ne.u32 %p, %seen, %expected;
    @%p red.global.add.u32 [%errors], 1;
    red.global.add.u32 [%errors+4], %code;
    {
        .param .b64 g;
        .param .b32 f;
        .param .b32 s;
        st.param.b64 [g], %group;
        st.param.b32 [f], 0;
        call.uni (s), cudaCGSynchronize, (g, f);
        ld.param.b32 %code, [s];
    }
    add.u32 %round, %round, 1;
    setp.le.u32 %more, %round, 5;
    @%more bra AGAIN;
    ret;
}
";

#[test]
fn blocks_of_a_cooperative_grid_meet() {
    let context = new_context();
    let meet = function(load(&format!("{HEADER}{MEETING}")), "meet");
    let (words, errors) = (alloc(4 * 8), alloc(8));
    let run = |cooperative: bool| {
        cu!(cuMemsetD8_v2(errors, 0, 8));
        let mut parameters = [arg(&words), arg(&errors)];
        if cooperative {
            cu!(cuLaunchCooperativeKernel(
                meet,
                4,
                1,
                1,
                64,
                1,
                1,
                0,
                CUstream::NULL,
                parameters.as_mut_ptr()
            ));
        } else {
            assert_eq!(launch(meet, 1, 64, CUstream::NULL, &mut parameters), CUDA_SUCCESS);
        }
        read::<u32>(errors, 2)
    };
    assert_eq!(run(true), [0, 0]);
    // Elsewhere there is no group: 64 threads are told so in each of five rounds.
    assert_eq!(run(false)[1], 5 * 64);
    cu!(cuCtxDestroy_v2(context));
}
