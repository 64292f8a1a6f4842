//! Textures and surfaces.
//!
//! An object is a `.u64` register with its handle, or a variable or parameter of an opaque type; both are a handle to the
//! IR. A sampler that stands apart is the handle of an object that has it.
//!
//! A value to compare with (`z`) is for textures of depth, which no function of CUDA's makes; with others the hardware does not
//! look at it.

use simt_ir::texture::{Access, Geometry, Lod, Outside, Query, Sample, SurfaceAccess, TextureOp};
use simt_ir::{AtomicOp, IntCmp, Op, Shift, Space, Type, Value};

use super::syntax::Chosen;
use super::{Form, Ty, form};
use crate::ast;
use crate::lower::expander::Expander;
use crate::lower::place::Memory;
use crate::resolve::{Operand, OperandKind, Symbol};

pub(super) const FORMS: &[Form] = &[
    form("tex.base?.geom{1d,2d,3d,a1d,a2d}.v4.T{u32,s32,f16,f32}.C{s32,f32} d=T%|p?=pred, a:image, e?:s32%", tex).effect().registers(registers),
    form("tex.base?.geom{1d,2d,3d,a1d,a2d}.v2.T{f16x2}.C{s32,f32} d=T%|p?=pred, a:image, e?:s32%", tex).effect().registers(registers).since(4, 2, 53),
    form("tex.base?.geom{cube,acube}.v4.T{u32,s32,f16,f32}.C{f32} d=T%|p?=pred, a:image", tex).effect().registers(registers).since(3, 0, 20),
    form("tex.base?.geom{cube,acube}.v2.T{f16x2}.C{f32} d=T%|p?=pred, a:image", tex).effect().registers(registers).since(4, 2, 53),
    form("tex.geom{2dms,a2dms}.v4.T{u32,s32,f16,f32}.C{s32} d=T%|p?=pred, a:image, e?:s32%", tex).effect().registers(registers).since(3, 2, 30),
    form("tex.geom{2dms,a2dms}.v2.T{f16x2}.C{s32} d=T%|p?=pred, a:image, e?:s32%", tex).effect().registers(registers).since(4, 2, 53),
    form("tex.level.geom{1d,2d,3d,a1d,a2d}.v4.T{u32,s32,f16,f32}.C{s32,f32} d=T%|p?=pred, a:image, l:C, e?:s32%", tex).effect().registers(registers).since(3, 1, 20),
    form("tex.level.geom{1d,2d,3d,a1d,a2d}.v2.T{f16x2}.C{s32,f32} d=T%|p?=pred, a:image, l:C, e?:s32%", tex).effect().registers(registers).since(4, 2, 53),
    form("tex.level.geom{cube,acube}.v4.T{u32,s32,f16,f32}.C{f32} d=T%|p?=pred, a:image, l:C", tex).effect().registers(registers).since(3, 1, 20),
    form("tex.level.geom{cube,acube}.v2.T{f16x2}.C{f32} d=T%|p?=pred, a:image, l:C", tex).effect().registers(registers).since(4, 2, 53),
    form("tex.grad.geom{1d,2d,3d,a1d,a2d}.v4.T{u32,s32,f16,f32}.C{s32,f32} d=T%|p?=pred, a:image, x:f32%, y:f32%, e?:s32%", tex).effect().registers(registers).since(3, 1, 20),
    form("tex.grad.geom{1d,2d,3d,a1d,a2d}.v2.T{f16x2}.C{s32,f32} d=T%|p?=pred, a:image, x:f32%, y:f32%, e?:s32%", tex).effect().registers(registers).since(4, 2, 53),
    form("tex.grad.geom{cube,acube}.v4.T{u32,s32,f16,f32}.C{f32} d=T%|p?=pred, a:image, x:f32%, y:f32%", tex).effect().registers(registers).since(4, 3, 20),
    form("tex.grad.geom{cube,acube}.v2.T{f16x2}.C{f32} d=T%|p?=pred, a:image, x:f32%, y:f32%", tex).effect().registers(registers).since(4, 3, 53),
    form("tex.base?.geom{1d,2d,a1d,a2d,cube,acube}.v4.T{u32,s32,f16,f32}.C{f32} d=T%|p?=pred, a:image, z:f32", tex).effect().registers(registers).since(4, 3, 20),
    form("tex.base?.geom{1d,2d,a1d,a2d,cube,acube}.v2.T{f16x2}.C{f32} d=T%|p?=pred, a:image, z:f32", tex).effect().registers(registers).since(4, 3, 53),
    form("tex.base?.geom{1d,2d,a1d,a2d}.v4.T{u32,s32,f16,f32}.C{f32} d=T%|p?=pred, a:image, e:s32%, z:f32", tex).effect().registers(registers).since(4, 3, 20),
    form("tex.base?.geom{1d,2d,a1d,a2d}.v2.T{f16x2}.C{f32} d=T%|p?=pred, a:image, e:s32%, z:f32", tex).effect().registers(registers).since(4, 3, 53),
    form("tex.level.geom{1d,2d,a1d,a2d,cube,acube}.v4.T{u32,s32,f16,f32}.C{f32} d=T%|p?=pred, a:image, l:C, z:f32", tex).effect().registers(registers).since(4, 3, 20),
    form("tex.level.geom{1d,2d,a1d,a2d,cube,acube}.v2.T{f16x2}.C{f32} d=T%|p?=pred, a:image, l:C, z:f32", tex).effect().registers(registers).since(4, 3, 53),
    form("tex.level.geom{1d,2d,a1d,a2d}.v4.T{u32,s32,f16,f32}.C{f32} d=T%|p?=pred, a:image, l:C, e:s32%, z:f32", tex).effect().registers(registers).since(4, 3, 20),
    form("tex.level.geom{1d,2d,a1d,a2d}.v2.T{f16x2}.C{f32} d=T%|p?=pred, a:image, l:C, e:s32%, z:f32", tex).effect().registers(registers).since(4, 3, 53),
    form("tex.grad.geom{1d,2d,a1d,a2d,cube,acube}.v4.T{u32,s32,f16,f32}.C{f32} d=T%|p?=pred, a:image, x:f32%, y:f32%, z:f32", tex).effect().registers(registers).since(4, 3, 20),
    form("tex.grad.geom{1d,2d,a1d,a2d,cube,acube}.v2.T{f16x2}.C{f32} d=T%|p?=pred, a:image, x:f32%, y:f32%, z:f32", tex).effect().registers(registers).since(4, 3, 53),
    form("tex.grad.geom{1d,2d,a1d,a2d}.v4.T{u32,s32,f16,f32}.C{f32} d=T%|p?=pred, a:image, x:f32%, y:f32%, e:s32%, z:f32", tex).effect().registers(registers).since(4, 3, 20),
    form("tex.grad.geom{1d,2d,a1d,a2d}.v2.T{f16x2}.C{f32} d=T%|p?=pred, a:image, x:f32%, y:f32%, e:s32%, z:f32", tex).effect().registers(registers).since(4, 3, 53),
    form("tld4.comp{r,g,b,a}.geom{2d,a2d}.v4.T{u32,s32,f32}.C{f32} d=T%|p?=pred, a:image, e?:s32%", tex).effect().registers(registers).since(2, 2, 20),
    form("tld4.comp{r,g,b,a}.geom{cube,acube}.v4.T{u32,s32,f32}.C{f32} d=T%|p?=pred, a:image", tex).effect().registers(registers).since(4, 3, 20),
    form("tld4.comp{r,g,b,a}.geom{2d,a2d,cube,acube}.v4.T{u32,s32,f32}.C{f32} d=T%|p?=pred, a:image, z:f32", tex).effect().registers(registers).since(4, 3, 20),
    form("tld4.comp{r,g,b,a}.geom{2d,a2d}.v4.T{u32,s32,f32}.C{f32} d=T%|p?=pred, a:image, e:s32%, z:f32", tex).effect().registers(registers).since(4, 3, 20),
    form("txq.query{width,height,depth,channel_data_type,channel_order,normalized_coords,array_size,num_mipmap_levels,num_samples,force_unnormalized_coords,filter_mode,addr_mode_0,addr_mode_1,addr_mode_2}.b32 d=b32, a:object", |x| query(x, false)).effect().since(1, 5, 10),
    form("txq.level.query{width,height,depth}.b32 d=b32, a:object, l:b32", |x| query(x, false)).effect().since(4, 3, 30),
    form("suq.query{width,height,depth,channel_data_type,channel_order,array_size,memory_layout}.b32 d=b32, a:object", |x| query(x, true)).effect().since(1, 5, 10),
    form("istypep.type{texref,samplerref,surfref} p=pred, a:u64", is_type).effect().since(4, 0, 30),
    form("suld.b.geom{1d,2d,3d,a1d,a2d}.cop{ca,cg,cs,cv}?.vec{v2,v4}?.T{b8,b16,b32,b64}.cop2{ca,cg,cs,cv}?.mode{trap,clamp,zero} d=T+*, a:surface", load).effect().since(1, 5, 20).only_if(one_access),
    form("sust.b.geom{1d,2d,3d,a1d,a2d}.cop{wb,cg,cs,wt}?.vec{v2,v4}?.T{b8,b16,b32,b64}.cop2{wb,cg,cs,wt}?.mode{trap,clamp,zero} a:surface, c:T+*", store).effect().since(1, 5, 20).only_if(one_access),
    form("sust.p.geom{1d,2d,3d,a1d,a2d}.vec{v2,v4}?.T{b32}.mode{trap,clamp,zero} a:surface, c:T*", store).effect().since(1, 5, 20),
    form("sured.b.op{add}.geom{1d,2d,3d}.T{u32,u64,s32}.mode{trap,clamp,zero} a:surface, c:T+", reduce).effect().since(3, 0, 20),
    form("sured.b.op{min,max}.geom{1d,2d,3d}.T{u32,s32,u64,s64}.mode{trap,clamp,zero} a:surface, c:T+", reduce).effect().since(3, 0, 20),
    form("sured.b.op{and,or}.geom{1d,2d,3d}.T{b32}.mode{trap,clamp,zero} a:surface, c:T+", reduce).effect().since(3, 0, 20),
    form("sured.p.op{add,min,max,and,or}.geom{1d,2d,3d}.T{b32}.mode{trap,clamp,zero} a:surface, c:T+", reduce).effect().since(3, 0, 20),
    form("sured.p.op{min,max}.geom{1d,2d,3d}.T{b64}.mode{trap,clamp,zero} a:surface, c:T+", reduce).effect().since(3, 0, 20),
];

/// Up to 128 bits, with one cache operator, wherever it stands.
fn one_access(chosen: &Chosen) -> Result<(), &'static str> {
    let bits = chosen.ty("T").map_or(0, Ty::bits) * chosen.lanes() as u32;
    if bits > 128 {
        Err("a vector of more than 128 bits")
    } else if chosen.word("cop").is_some() && chosen.word("cop2").is_some() {
        Err("more than one cache operator")
    } else {
        Ok(())
    }
}

/// Registers of results, and numbers in vectors of coordinates: those of three have a fourth, which is ignored.
fn registers(chosen: &Chosen, name: &str) -> usize {
    if name == "d" {
        return if chosen.has("f16x2") { 2 } else { 4 };
    }
    padded(geometry(chosen).coordinates())
}

fn padded(count: usize) -> usize {
    if count == 3 { 4 } else { count }
}

fn geometry(chosen: &Chosen) -> Geometry {
    match chosen.word("geom") {
        Some("1d") => Geometry::D1,
        Some("3d") => Geometry::D3,
        Some("a1d") => Geometry::D1Layered,
        Some("a2d" | "a2dms") => Geometry::D2Layered,
        Some("cube") => Geometry::Cube,
        Some("acube") => Geometry::CubeLayered,
        _ => Geometry::D2,
    }
}

/// Whether a number of a sample stands before the coordinates, after the layer.
fn has_samples(chosen: &Chosen) -> bool {
    matches!(chosen.word("geom"), Some("2dms" | "a2dms"))
}

/// What is in the brackets besides the object: how many numbers, and where the layer and the sample stand among them.
pub(super) struct Brackets {
    /// Numbers of the vector.
    pub numbers: usize,
    /// The first is a layer.
    pub layered: bool,
    /// One of them is the number of a sample.
    pub samples: bool,
}

/// What the brackets of an instruction hold.
pub(super) fn brackets(chosen: &Chosen) -> Brackets {
    let geometry = geometry(chosen);
    let (layered, samples) = (geometry.is_layered(), has_samples(chosen));
    let count = geometry.coordinates() + usize::from(layered) + usize::from(samples);
    Brackets { numbers: padded(count), layered, samples }
}

/// Whether a query can be about a handle in a register. The assembler takes the others too, but NVIDIA's driver (580, on an H200) then does
/// not load the module (code 801, `suq`) or does not find the kernel in it (code 500, `txq`).
pub(super) fn of_handles(query: &str) -> bool {
    matches!(query, "width" | "height" | "depth")
}

/// What a query may be about: samplers tell what they do where they stand apart from textures, and textures the rest.
pub(super) fn asked(opcode: &str, query: &str, samplers_apart: bool) -> &'static [ast::Type] {
    match query {
        _ if opcode == "suq" => &[ast::Type::Surfref],
        "force_unnormalized_coords" => &[ast::Type::Samplerref],
        _ if !samplers_apart => &[ast::Type::Texref, ast::Type::Samplerref],
        "filter_mode" | "addr_mode_0" | "addr_mode_1" | "addr_mode_2" => &[ast::Type::Samplerref],
        _ => &[ast::Type::Texref],
    }
}

/// What is wrong with an object of an instruction, which must be of one of these types if it is a variable: `None` if nothing is.
pub(super) fn object_problem(base: &Operand<'_, '_>, types: &[ast::Type]) -> Option<&'static str> {
    match &base.kind {
        OperandKind::Symbol(Symbol::Global(variable, _), 0) if !types.contains(&variable.ty) => {
            Some("a variable of another type is required")
        }
        OperandKind::Symbol(Symbol::Global(..) | Symbol::Local(_), 0) | OperandKind::Register(_) => None,
        _ => Some("a texture, a sampler or a surface is required"),
    }
}

/// The parts of `[object, sampler, coordinates]`.
fn parts<'r>(x: &Expander<'_, 'r>) -> Option<(&'r Operand<'r, 'r>, &'r [Operand<'r, 'r>])> {
    match &x.operand("a")?.kind {
        OperandKind::Address(address) => Some((&address.base, &address.rest)),
        _ => None,
    }
}

/// The handle of an object.
fn handle<'r>(x: &mut Expander<'_, 'r>, base: &'r Operand<'r, 'r>) -> Value {
    match &base.kind {
        OperandKind::Symbol(symbol @ Symbol::Global(..), offset) => x.body.address_of(*symbol, *offset, base),
        OperandKind::Symbol(Symbol::Local(_), _) => {
            let operand = x.operand("a").expect("the entry has it");
            match x.body.memory(operand, "param") {
                Memory::At { space: Space::Param, base, offset } => {
                    x.body.b.inst(Op::Load(simt_ir::Access::weak(Space::Param, offset)), &[base], Type::I64)
                }
                _ => {
                    x.refuse(base, "this cannot be a texture or a surface");
                    x.imm(Type::I64, 0)
                }
            }
        }
        _ => x.value_as(base, Type::I64),
    }
}

/// The numbers of a vector, or the one that stands for it.
fn numbers<'r>(
    x: &mut Expander<'_, 'r>,
    operand: &'r Operand<'r, 'r>,
    count: usize,
    ty: impl Fn(usize) -> Type,
) -> Vec<Value> {
    let list: Vec<&Operand<'_, '_>> = match &operand.kind {
        OperandKind::Vector(list) => list.iter().collect(),
        OperandKind::Register(id) if x.body.func.registers[id.0 as usize].vector.is_some() => {
            return (0..count)
                .map(|index| {
                    let value = x.body.read(*id, index);
                    x.fit(value, ty(index))
                })
                .collect();
        }
        _ => vec![operand],
    };
    list.into_iter().take(count).enumerate().map(|(index, number)| x.value_as(number, ty(index))).collect()
}

fn tex(x: &mut Expander<'_, '_>) {
    let Some((base, rest)) = parts(x) else { return };
    let geometry = geometry(x.chosen());
    let (integers, samples) = (x.ty("C") == Ty::S32, has_samples(x.chosen()));
    let ty = x.ty("T");
    let (lod, count) = match () {
        () if x.has("level") => (Lod::Level, geometry.coordinates()),
        () if x.has("grad") => (Lod::Gradients, geometry.coordinates()),
        () => (Lod::Base, geometry.coordinates()),
    };
    let op = Sample {
        geometry,
        integers,
        lod,
        gather: ["r", "g", "b", "a"].iter().position(|name| *name == x.word("comp")).map(|n| n as u8),
        offsets: x.operand("e").is_some(),
        halves: ty == Ty::F16x2 || ty == Ty::F16,
        sampler: rest.len() == 2,
    };
    let coordinate = if integers { Type::I32 } else { Type::F32 };
    let mut args = vec![handle(x, base)];
    if op.sampler {
        let sampler = handle(x, &rest[0]);
        args.push(sampler);
    }
    let layered = geometry.is_layered();
    let total = count + usize::from(layered) + usize::from(samples);
    let mut all = numbers(x, &rest[rest.len() - 1], total, |index| match index {
        0 if layered => Type::I32,
        _ => coordinate,
    });
    if samples {
        // There is one sample of each texel.
        all.remove(usize::from(layered));
    }
    args.extend(all);
    if lod == Lod::Level {
        let level = x.src("l");
        args.push(level);
    }
    if lod == Lod::Gradients {
        for name in ["x", "y"] {
            let operand = x.operand(name).expect("the entry has it");
            args.extend(numbers(x, operand, count, |_| Type::F32));
        }
    }
    if let Some(offsets) = x.operand("e") {
        args.extend(numbers(x, offsets, count, |_| Type::I32));
    }
    let op = TextureOp::Sample(op);
    let words = x.body.b.insts(Op::Texture(op), &args, &op.results());
    let results = match ty {
        Ty::F16 => words
            .into_iter()
            .flat_map(|pair| {
                let low = x.fit(pair, Type::I16);
                let sixteen = x.imm(Type::I32, 16);
                let high = x.op(Op::Shift(Shift::RightU), &[pair, sixteen]);
                [low, x.fit(high, Type::I16)]
            })
            .collect(),
        _ => words,
    };
    let moving = x.moving("d", ty);
    let results: Vec<Value> = results.into_iter().map(|word| x.fit(word, moving)).collect();
    x.set_lanes("d", ty, &results);
    if x.wants("p") {
        // All there is of an image is in memory.
        let resident = x.imm(Type::Pred, 1);
        x.set("p", resident);
    }
}

fn query(x: &mut Expander<'_, '_>, surface: bool) {
    let query = match x.word("query") {
        "width" => Query::Width,
        "height" => Query::Height,
        "depth" => Query::Depth,
        "channel_data_type" => Query::ChannelDataType,
        "channel_order" => Query::ChannelOrder,
        "normalized_coords" => Query::NormalizedCoords,
        "array_size" => Query::ArraySize,
        "num_mipmap_levels" => Query::NumMipmapLevels,
        "num_samples" => Query::NumSamples,
        "force_unnormalized_coords" => Query::ForceUnnormalizedCoords,
        "filter_mode" => Query::FilterMode,
        "addr_mode_0" => Query::AddrMode0,
        "addr_mode_1" => Query::AddrMode1,
        "addr_mode_2" => Query::AddrMode2,
        _ => Query::MemoryLayout,
    };
    let Some((base, _)) = parts(x) else { return };
    let level = x.operand("l").is_some();
    let mut args = vec![handle(x, base)];
    args.extend(x.src_if("l"));
    let d = x.op_ty(Op::Texture(TextureOp::Query { query, surface, level }), &args, Type::I32);
    x.set("d", d);
}

fn is_type(x: &mut Expander<'_, '_>) {
    let query = match x.word("type") {
        "texref" => Query::IsTexture,
        "samplerref" => Query::IsSampler,
        _ => Query::IsSurface,
    };
    let a = x.src("a");
    let op = TextureOp::Query { query, surface: false, level: false };
    let answer = x.op_ty(Op::Texture(op), &[a], Type::I32);
    let p = x.cmp_imm(IntCmp::Ne, answer, 0);
    x.set("p", p);
}

fn load(x: &mut Expander<'_, '_>) {
    let ty = x.ty("T");
    let op = TextureOp::Surface(surface(x, Access::Load));
    let Some(args) = place(x) else { return };
    let moving = x.moving("d", ty);
    let values = x.body.b.insts(Op::Texture(op), &args, &op.results());
    let values: Vec<Value> = values.into_iter().map(|value| x.fit(value, moving)).collect();
    x.set_lanes("d", ty, &values);
}

fn store(x: &mut Expander<'_, '_>) {
    let access = if x.has("p") { Access::StoreFormatted } else { Access::Store };
    let op = surface(x, access);
    let Some(mut args) = place(x) else { return };
    let element = op.element();
    args.extend(x.src_lanes("c", element));
    x.body.b.effect(Op::Texture(TextureOp::Surface(op)), &args);
}

fn reduce(x: &mut Expander<'_, '_>) {
    // What `.p` means by `.b32` depends on the texels, which are signed or not. Only the order of numbers tells.
    let signed = x.ty("T").is_signed();
    let op = match x.word("op") {
        "min" if signed => AtomicOp::MinS,
        "min" => AtomicOp::MinU,
        "max" if signed => AtomicOp::MaxS,
        "max" => AtomicOp::MaxU,
        "and" => AtomicOp::And,
        "or" => AtomicOp::Or,
        _ => AtomicOp::Add,
    };
    let op = surface(x, Access::Reduce { op, texels: x.has("p") });
    let Some(mut args) = place(x) else { return };
    let value = x.src("c");
    args.push(value);
    x.body.b.effect(Op::Texture(TextureOp::Surface(op)), &args);
}

fn surface(x: &Expander<'_, '_>, access: Access) -> SurfaceAccess {
    let outside = match x.word("mode") {
        "clamp" => Outside::Clamp,
        "zero" => Outside::Zero,
        _ => Outside::Trap,
    };
    let (bytes, elements) = (x.ty("T").bytes() as u8, x.lanes() as u8);
    SurfaceAccess { geometry: geometry(x.chosen()), access, outside, bytes, elements }
}

/// The surface and the place in it.
fn place(x: &mut Expander<'_, '_>) -> Option<Vec<Value>> {
    let (base, rest) = parts(x)?;
    let geometry = geometry(x.chosen());
    let mut args = vec![handle(x, base)];
    let count = geometry.coordinates() + usize::from(geometry.is_layered());
    args.extend(numbers(x, rest.first()?, count, |_| Type::I32));
    Some(args)
}
