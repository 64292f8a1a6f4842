//! What PTX ISA 9.0 has and the device's architecture has not: known by name, so that it is refused as such rather than as a mistake.

/// An instruction of a later architecture: known by its opcode, words that it alone has together, and perhaps how many operands it has.
#[derive(Clone, Copy, Debug)]
pub struct Later {
    /// Opcode and words, as a page can show them.
    pub name: &'static str,
    /// How many operands tell it from other instructions with these words.
    operands: Option<usize>,
    /// One, with registers `%r`, `%d`, `%q`, `%h`, `%f` and `%p` with numbers.
    pub example: &'static str,
}

const fn later(name: &'static str, example: &'static str) -> Later {
    Later { name, operands: None, example }
}

const fn with(name: &'static str, operands: usize, example: &'static str) -> Later {
    Later { name, operands: Some(operands), example }
}

const LATER: &[Later] = &[
    later("add.f32x2", "add.rn.f32x2 %d0, %d1, %d2;"),
    later("add.f32.f16", "add.f32.f16 %f0, %h0, %f1;"),
    later("add.f32.bf16", "add.rz.f32.bf16 %f0, %h0, %f1;"),
    later("sub.f32x2", "sub.rn.f32x2 %d0, %d1, %d2;"),
    later("sub.f32.f16", "sub.f32.f16 %f0, %h0, %f1;"),
    later("sub.f32.bf16", "sub.rz.f32.bf16 %f0, %h0, %f1;"),
    later("mul.f32x2", "mul.rn.f32x2 %d0, %d1, %d2;"),
    later("fma.f32x2", "fma.rn.f32x2 %d0, %d1, %d2, %d3;"),
    later("fma.f32.f16", "fma.rn.f32.f16 %f0, %h0, %h1, %f1;"),
    later("fma.f32.bf16", "fma.rn.f32.bf16 %f0, %h0, %h1, %f1;"),
    with("min.f32", 4, "min.ftz.NaN.f32 %f0, %f1, %f2, %f3;"),
    with("min.abs.f32", 4, "min.abs.f32 %f0, %f1, %f2, %f3;"),
    with("max.f32", 4, "max.ftz.NaN.f32 %f0, %f1, %f2, %f3;"),
    with("max.abs.f32", 4, "max.abs.f32 %f0, %f1, %f2, %f3;"),
    later(
        "cp.async.bulk.cp_mask",
        "cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%d0], [%r0], 128, %h0;",
    ),
    later(
        "cp.async.bulk.tensor.tile::gather4",
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile::gather4.mbarrier::complete_tx::bytes [%r0], [%d0, {%r1, %r2, %r3, %r4, %r5}], [%r6];",
    ),
    later(
        "cp.async.bulk.tensor.tile::scatter4",
        "cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group [%d0, {%r1, %r2, %r3, %r4, %r5}], [%r0];",
    ),
    later(
        "cp.async.bulk.tensor.im2col::w",
        "cp.async.bulk.tensor.3d.shared::cluster.global.im2col::w.mbarrier::complete_tx::bytes [%r0], [%d0, {%r1, %r2, %r3}], [%r6], {%h0, %h1};",
    ),
    later(
        "cp.async.bulk.tensor.im2col::w::128",
        "cp.async.bulk.tensor.3d.shared::cluster.global.im2col::w::128.mbarrier::complete_tx::bytes [%r0], [%d0, {%r1, %r2, %r3}], [%r6], {%h0, %h1};",
    ),
    later(
        "cp.async.bulk.tensor.cta_group::1",
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.cta_group::1 [%r0], [%d0, {%r1, %r2}], [%r6];",
    ),
    later(
        "cp.async.bulk.tensor.cta_group::2",
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.cta_group::2 [%r0], [%d0, {%r1, %r2}], [%r6];",
    ),
    later(
        "cp.async.bulk.prefetch.tensor.tile::gather4",
        "cp.async.bulk.prefetch.tensor.2d.L2.global.tile::gather4 [%d0, {%r1, %r2, %r3, %r4, %r5}];",
    ),
    later(
        "cp.async.bulk.prefetch.tensor.im2col::w",
        "cp.async.bulk.prefetch.tensor.3d.L2.global.im2col::w [%d0, {%r1, %r2, %r3}], {%h0, %h1};",
    ),
    later(
        "tensormap.replace.swizzle_atomicity",
        "tensormap.replace.tile.swizzle_atomicity.global.b1024.b32 [%d0], 1;",
    ),
    later("cvt.e2m1x2", "cvt.rn.satfinite.e2m1x2.f32 %b0, %f0, %f1;"),
    later("cvt.e2m3x2", "cvt.rn.satfinite.e2m3x2.f32 %h0, %f0, %f1;"),
    later("cvt.e3m2x2", "cvt.rn.satfinite.e3m2x2.f32 %h0, %f0, %f1;"),
    later("cvt.ue8m0x2", "cvt.rz.satfinite.ue8m0x2.f32 %h0, %f0, %f1;"),
    later("cvt.rs.e4m3x4", "cvt.rs.satfinite.e4m3x4.f32 %r0, {%f0, %f1, %f2, %f3}, %r1;"),
    later("cvt.rs.e5m2x4", "cvt.rs.satfinite.e5m2x4.f32 %r0, {%f0, %f1, %f2, %f3}, %r1;"),
    later("cvt.rs.e2m3x4", "cvt.rs.satfinite.e2m3x4.f32 %r0, {%f0, %f1, %f2, %f3}, %r1;"),
    later("cvt.rs.e3m2x4", "cvt.rs.satfinite.e3m2x4.f32 %r0, {%f0, %f1, %f2, %f3}, %r1;"),
    later("cvt.rs.e2m1x4", "cvt.rs.satfinite.e2m1x4.f32 %h0, {%f0, %f1, %f2, %f3}, %r1;"),
    later("cvt.rs.f16x2", "cvt.rs.f16x2.f32 %r0, %f0, %f1, %r1;"),
    later("cvt.rs.bf16x2", "cvt.rs.bf16x2.f32 %r0, %f0, %f1, %r1;"),
    later("st.bulk", "st.bulk.weak.shared::cta [%d0], 64, 0;"),
    later("st.async.mmio", "st.async.mmio.release.sys.global.b32 [%d0], %r0;"),
    later("red.async.mmio", "red.async.mmio.release.sys.global.add.u32 [%d0], %r0;"),
    later("ldmatrix.b8", "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r0, %r1}, [%r2];"),
    later("ldmatrix.b8x16.b6x16_p32", "ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b6x16_p32 {%r0}, [%r2];"),
    later("ldmatrix.b8x16.b4x16_p64", "ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b4x16_p64 {%r0}, [%r2];"),
    later("stmatrix.b8", "stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [%r2], {%r0};"),
    later("redux.f32", "redux.sync.min.f32 %f0, %f1, -1;"),
    later("redux.abs.f32", "redux.sync.max.abs.f32 %f0, %f1, -1;"),
    later("redux.NaN.f32", "redux.sync.max.NaN.f32 %f0, %f1, -1;"),
    later(
        "mma.kind::f8f6f4",
        "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e2m3.e3m2.f32 {%f0, %f1, %f2, %f3}, {%r0, %r1, %r2, %r3}, {%r4, %r5}, {%f4, %f5, %f6, %f7};",
    ),
    later(
        "mma.kind::mxf8f6f4",
        "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e5m2.f32.ue8m0 {%f0, %f1, %f2, %f3}, {%r0, %r1, %r2, %r3}, {%r4, %r5}, {%f4, %f5, %f6, %f7}, %r6, {0, 0}, %r7, {0, 0};",
    ),
    later(
        "mma.kind::mxf4",
        "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0 {%f0, %f1, %f2, %f3}, {%r0, %r1, %r2, %r3}, {%r4, %r5}, {%f4, %f5, %f6, %f7}, %r6, {0, 0}, %r7, {0, 0};",
    ),
    later(
        "mma.kind::mxf4nvf4",
        "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3 {%f0, %f1, %f2, %f3}, {%r0, %r1, %r2, %r3}, {%r4, %r5}, {%f4, %f5, %f6, %f7}, %r6, {0, 0}, %r7, {0, 0};",
    ),
    later("multimem.e4m3x4", "multimem.ld_reduce.add.acc::f16.v4.e4m3x4 {%r0, %r1, %r2, %r3}, [%d0];"),
    later("multimem.e5m2", "multimem.ld_reduce.min.v4.e5m2 {%b0, %b1, %b2, %b3}, [%d0];"),
    later("multimem.e5m2x4", "multimem.ld_reduce.max.e5m2x4 %r0, [%d0];"),
    later("multimem.e4m3", "multimem.st.v4.e4m3 [%d0], {%b0, %b1, %b2, %b3};"),
    later(
        "clusterlaunchcontrol.try_cancel",
        "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r0], [%r1];",
    ),
    later(
        "clusterlaunchcontrol.query_cancel.is_canceled",
        "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p0, %q0;",
    ),
    later(
        "clusterlaunchcontrol.query_cancel.get_first_ctaid",
        "clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r0, %r1, %r2, %r3}, %q0;",
    ),
    later("tcgen05.alloc", "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r0], 32;"),
    later("tcgen05.dealloc", "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r0, 32;"),
    later("tcgen05.relinquish_alloc_permit", "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;"),
    later("tcgen05.ld", "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r0}, [%r1];"),
    later("tcgen05.st", "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r1], {%r0};"),
    later("tcgen05.wait", "tcgen05.wait::ld.sync.aligned;"),
    later("tcgen05.cp", "tcgen05.cp.cta_group::1.128x256b [%r0], %d0;"),
    later("tcgen05.shift", "tcgen05.shift.cta_group::1.down [%r0];"),
    later("tcgen05.mma", "tcgen05.mma.cta_group::1.kind::f16 [%r0], %d0, %d1, %r1, %p0;"),
    later("tcgen05.mma.sp", "tcgen05.mma.sp.cta_group::1.kind::f16 [%r0], %d0, %d1, [%r2], %r1, %p0;"),
    later("tcgen05.mma.ws", "tcgen05.mma.ws.cta_group::1.kind::f16 [%r0], %d0, %d1, %r1, %p0;"),
    later("tcgen05.commit", "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r0];"),
    later("tcgen05.fence::before_thread_sync", "tcgen05.fence::before_thread_sync;"),
    later("tcgen05.fence::after_thread_sync", "tcgen05.fence::after_thread_sync;"),
];

/// All of them.
pub(super) fn all() -> &'static [Later] {
    LATER
}

/// Whether this is an opcode of PTX that is not supported in any form.
pub(super) fn is_opcode(name: &str) -> bool {
    OPCODES.contains(&name)
}

const OPCODES: [&str; 2] = ["clusterlaunchcontrol", "tcgen05"];

/// Whether the words and the number of operands make an instruction that is not supported.
pub(super) fn is_later<'m>(
    opcode: &str,
    words: impl Iterator<Item = &'m str> + Clone,
    operands: usize,
) -> bool {
    LATER.iter().any(|later| {
        let mut parts = later.name.split('.');
        parts.next() == Some(opcode)
            && parts.all(|part| words.clone().any(|word| word == part))
            && later.operands.is_none_or(|count| count == operands)
    })
}
