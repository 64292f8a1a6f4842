//! Textures and surfaces as kernels see them.
#![cfg(not(miri))] // reserved address space

mod common;

use std::sync::{Arc, Mutex};

use common::*;
use device::module::Code;
use device::texture::{Object, create, destroy};
use device::{Error, Module};
use kernel_abi::matrix::LaneWords;
use kernel_abi::texture::{Failure, encode};
use kernel_abi::{BlockFrame, FaultKind, KernelInfo};
use simt_ir::texture::{
    Access, Channel, Format, Geometry, ImageView, Level, Lod, Outside, Sample, Sampler, SurfaceAccess,
    TextureOp,
};

const PROGRAM: &str = "
.version 8.0
.target sm_90
.address_size 64
.global .texref picture;
.global .surfref board;
.visible .entry looks() { ret; }
";

const LOOK: Sample = Sample {
    geometry: Geometry::D1,
    integers: true,
    lod: Lod::Base,
    gather: None,
    offsets: false,
    halves: false,
    sampler: false,
};

fn plain(memory: &[u32]) -> ImageView {
    let (address, count) = (memory.as_ptr() as u64, memory.len() as u32);
    let level = Level { extent: [count, 1, 1], address, row_pitch: 0, slice_pitch: 0, tiles: None };
    ImageView {
        format: Format::new(Channel::U32, 1).unwrap(),
        levels: vec![level],
        is_linear: true,
        ..ImageView::default()
    }
}

/// What lane 3 gets for an instruction with these operands.
fn serve(frame: &mut BlockFrame, op: TextureOp, operands: &[u64]) -> Result<u64, Failure> {
    let mut registers: Vec<LaneWords> = vec![[u64::MAX; 32]; 8];
    for (register, operand) in registers.iter_mut().zip(operands) {
        register[3] = *operand;
    }
    // SAFETY: the frame of a running launch, and more registers than the instruction has.
    let status = unsafe {
        let texture = (*(*frame.launch).callbacks).texture;
        texture(frame, 1 << 3, encode(&op), registers.as_mut_ptr())
    };
    Failure::of(status).map_or(Ok(registers[0][3]), Err)
}

const BAD: Failure = Failure { kind: FaultKind::IllegalAddress, lane: 3 };

#[test]
fn a_launch_finds_what_its_references_are_bound_to() {
    let setup = Setup::new();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let found = seen.clone();
    let info = KernelInfo { globals: vec!["picture".into()], ..KernelInfo::default() };
    setup.define("looks", info, move |frame| {
        // SAFETY: the launch has the one name that the kernel's info asks for.
        let handle = unsafe { *(*frame.launch).globals };
        found.lock().unwrap().push(serve(frame, TextureOp::Sample(LOOK), &[handle, 1]));
        Ok(())
    });
    let module = Module::load(&setup.context, Code::from_ptx(PROGRAM, 90).unwrap()).unwrap();
    let looks = module.function("looks").unwrap();
    let picture = module.texture_reference("picture").unwrap();
    let look = || {
        launch(&looks, setup.context.legacy_stream(), &blocks(1), &[]).unwrap();
        setup.context.synchronize().unwrap();
    };
    let (first, second) = ([10, 11, 12], [20, 21]);
    look();
    picture.bind(Some(Object::Texture(plain(&first), Sampler::default())));
    look();
    picture.bind(Some(Object::Texture(plain(&second), Sampler::default())));
    look();
    picture.bind(None);
    look();
    // A reference that is not bound is read as an image without texels.
    assert_eq!(*seen.lock().unwrap(), [Ok(0), Ok(11), Ok(21), Ok(0)]);
    assert!(module.surface_reference("board").is_ok());
    for missing in [module.surface_reference("picture"), module.texture_reference("nothing")] {
        assert_eq!(missing.err(), Some(Error::NotFound));
    }
    assert_eq!(module.global("picture").err(), Some(Error::InvalidValue));
}

#[test]
fn bad_handles_and_places_are_faults() {
    let setup = Setup::new();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let found = seen.clone();
    let memory = [1_u32, 2, 3];
    let owner = setup.context.id();
    let texture = create(owner, Object::Texture(plain(&memory), Sampler::default()));
    let surface = create(owner, Object::Surface(plain(&memory)));
    let gone = create(owner, Object::Surface(plain(&memory)));
    destroy(gone);
    let mut nowhere = plain(&memory);
    nowhere.levels[0].address = 8;
    let nowhere = create(owner, Object::Texture(nowhere, Sampler::default()));
    let kernel = setup.kernel("tries", move |frame| {
        let load = |outside| {
            let access = Access::Load;
            TextureOp::Surface(SurfaceAccess {
                geometry: Geometry::D1,
                access,
                outside,
                bytes: 4,
                elements: 1,
            })
        };
        let look = TextureOp::Sample(LOOK);
        let mut found = found.lock().unwrap();
        for (op, operands) in [
            (look, [texture, 2]),
            (look, [texture, 3]),
            (look, [surface, 0]),
            (look, [0, 0]),
            (look, [nowhere, 0]),
            (load(Outside::Trap), [surface, 8]),
            (load(Outside::Trap), [surface, 12]),
            (load(Outside::Clamp), [surface, 12]),
            (load(Outside::Zero), [surface, 12]),
            (load(Outside::Zero), [texture, 0]),
            (load(Outside::Trap), [gone, 0]),
            (load(Outside::Trap), [1 << 40, 0]),
            (load(Outside::Zero), [surface, 6]),
        ] {
            found.push(serve(frame, op, &operands));
        }
        Ok(())
    });
    launch(&kernel, setup.context.legacy_stream(), &blocks(1), &[]).unwrap();
    setup.context.synchronize().unwrap();
    let bad = Err(BAD);
    let misaligned = Err(Failure { kind: FaultKind::Misaligned, ..BAD });
    // A surface is read as a texture, what is gone as an image without texels; a row is not seen by who wants an image.
    let expected = [Ok(3), Ok(0), Ok(1), Ok(0), bad, Ok(3), bad, Ok(3), Ok(0), Ok(0), Ok(0), bad, misaligned];
    assert_eq!(*seen.lock().unwrap(), expected);
}
