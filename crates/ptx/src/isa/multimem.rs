//! Accesses to all copies of a multicast object at once. A device that is alone in its team has one copy, and an H100 treats ordinary memory
//! as just that: a reduction over the copies is a load, the others are a store and an atomic operation.

use super::atomic::atom;
use super::memory::{load, store};
use super::syntax::Chosen;
use super::{Form, Ty, form};

pub(super) const FORMS: &[Form] = &[
    form("multimem.ld_reduce.order{weak}?.space{global}?.op{and,or,xor}.T{b32,b64} d=T, a:address", load).effect().since(8, 1, 90),
    form("multimem.ld_reduce.order{weak}?.space{global}?.op{min,max,add}.T{u32,s32,u64,s64} d=T, a:address", load).effect().since(8, 1, 90).only_if(integers),
    form("multimem.ld_reduce.order{weak}?.space{global}?.op{add}.T{f32,f64} d=T, a:address", load).effect().since(8, 1, 90),
    form("multimem.ld_reduce.order{weak}?.space{global}?.op{add}.vec{v2,v4}.T{f32} d=T*, a:address", load).effect().since(8, 1, 90),
    form("multimem.ld_reduce.order{weak}?.space{global}?.op{min,max,add}.acc::f32?.vec{v2,v4,v8}?.T{f16,bf16,f16x2,bf16x2} d=T*, a:address", load).effect().since(8, 1, 90).later(LATER).only_if(halves),
    form("multimem.ld_reduce.order{relaxed,acquire}.scope{$scope}.space{global}?.op{and,or,xor}.T{b32,b64} d=T, a:address", load).effect().since(8, 1, 90),
    form("multimem.ld_reduce.order{relaxed,acquire}.scope{$scope}.space{global}?.op{min,max,add}.T{u32,s32,u64,s64} d=T, a:address", load).effect().since(8, 1, 90).only_if(integers),
    form("multimem.ld_reduce.order{relaxed,acquire}.scope{$scope}.space{global}?.op{add}.T{f32,f64} d=T, a:address", load).effect().since(8, 1, 90),
    form("multimem.ld_reduce.order{relaxed,acquire}.scope{$scope}.space{global}?.op{add}.vec{v2,v4}.T{f32} d=T*, a:address", load).effect().since(8, 1, 90),
    form("multimem.ld_reduce.order{relaxed,acquire}.scope{$scope}.space{global}?.op{min,max,add}.acc::f32?.vec{v2,v4,v8}?.T{f16,bf16,f16x2,bf16x2} d=T*, a:address", load).effect().since(8, 1, 90).later(LATER).only_if(halves),
    form("multimem.st.order{weak}?.space{global}?.T{b32,b64,u32,s32,u64,s64,f32,f64} a:address, b:T", store).effect().since(8, 1, 90),
    form("multimem.st.order{weak}?.space{global}?.vec{v2,v4}.T{f32} a:address, b:T*", store).effect().since(8, 1, 90),
    form("multimem.st.order{weak}?.space{global}?.vec{v2,v4,v8}?.T{f16,bf16,f16x2,bf16x2} a:address, b:T*", store).effect().since(8, 1, 90).only_if(halves),
    form("multimem.st.order{relaxed,release}.scope{$scope}.space{global}?.T{b32,b64,u32,s32,u64,s64,f32,f64} a:address, b:T", store).effect().since(8, 1, 90),
    form("multimem.st.order{relaxed,release}.scope{$scope}.space{global}?.vec{v2,v4}.T{f32} a:address, b:T*", store).effect().since(8, 1, 90),
    form("multimem.st.order{relaxed,release}.scope{$scope}.space{global}?.vec{v2,v4,v8}?.T{f16,bf16,f16x2,bf16x2} a:address, b:T*", store).effect().since(8, 1, 90).only_if(halves),
    form("multimem.red.order{relaxed,release}?.scope{$scope}?.space{global}?.op{and,or,xor}.T{b32,b64} a:address, b:T", atom).effect().since(8, 1, 90).only_if(scoped),
    form("multimem.red.order{relaxed,release}?.scope{$scope}?.space{global}?.op{min,max,add}.T{u32,s32,u64,s64} a:address, b:T", atom).effect().since(8, 1, 90).only_if(scoped_integers),
    form("multimem.red.order{relaxed,release}?.scope{$scope}?.space{global}?.op{add}.T{f32,f64} a:address, b:T", atom).effect().since(8, 1, 90).only_if(scoped),
    form("multimem.red.order{relaxed,release}?.scope{$scope}?.space{global}?.op{add}.vec{v2,v4}.T{f32} a:address, b:T*", atom).effect().since(8, 1, 90).only_if(scoped),
    form("multimem.red.order{relaxed,release}?.scope{$scope}?.space{global}?.op{min,max,add}.vec{v2,v4,v8}?.T{f16,bf16,f16x2,bf16x2} a:address, b:T*", atom).effect().since(8, 1, 90).only_if(scoped_halves),
];

/// Precisions that sums have.
const LATER: &[(&str, u32, u32, u32)] = &[("acc::f32", 8, 2, 90)];

/// Halves come in pairs, and up to 128 bits together.
fn halves(chosen: &Chosen) -> Result<(), &'static str> {
    let bits = chosen.ty("T").map_or(0, Ty::bits) * chosen.lanes() as u32;
    let extreme = matches!(chosen.word("op"), Some("min" | "max"));
    if !(32..=128).contains(&bits) {
        Err("32 to 128 bits are accessed")
    } else if extreme && chosen.has("acc::f32") {
        Err("only sums have a precision")
    } else if extreme && chosen.has("red") && chosen.lanes() == 1 {
        Err("a vector is required")
    } else {
        Ok(())
    }
}

/// Sums are the same for signed numbers.
fn integers(chosen: &Chosen) -> Result<(), &'static str> {
    let signed = chosen.word("op") == Some("add") && chosen.word("T") == Some("s64");
    if signed { Err("sums of 64 bits are unsigned") } else { Ok(()) }
}

/// An order has a scope, and no scope stands alone.
fn scoped(chosen: &Chosen) -> Result<(), &'static str> {
    match (chosen.word("order"), chosen.word("scope")) {
        (Some(_), None) => Err("an order needs a scope"),
        (None, Some(_)) => Err("a scope needs an order"),
        _ => Ok(()),
    }
}

fn scoped_integers(chosen: &Chosen) -> Result<(), &'static str> {
    scoped(chosen).and_then(|()| integers(chosen))
}

fn scoped_halves(chosen: &Chosen) -> Result<(), &'static str> {
    scoped(chosen).and_then(|()| halves(chosen))
}
