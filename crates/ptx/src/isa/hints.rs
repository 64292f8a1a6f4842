//! Instructions that only advise the hardware. They are checked, and there is nothing to do.

use simt_ir::Type;

use super::{Form, form};
use crate::lower::expander::Expander;

pub(super) const FORMS: &[Form] = &[
    form("prefetch.space{global,local}?.level{L1,L2} a:address", nothing).effect().since(2, 0, 20),
    form("prefetch.space{global}.level{L2::evict_last,L2::evict_normal} a:address", nothing).effect().since(7, 4, 80),
    form("prefetch.space{const,param}?.tensormap a:address", nothing).effect().since(8, 0, 90),
    form("prefetchu.L1 a:address", nothing).effect().since(2, 0, 20),
    form("applypriority.space{global}?.L2::evict_normal a:address, size:imm", nothing).effect().since(7, 4, 80),
    form("discard.space{global}?.L2 a:address, size:imm", nothing).effect().since(7, 4, 80),
    form("createpolicy.fractional.primary{L2::evict_last,L2::evict_normal,L2::evict_first,L2::evict_unchanged}.secondary{L2::evict_first,L2::evict_unchanged}?.b64 d=b64, fraction?:f32", no_policy).since(7, 4, 80),
    form("createpolicy.range.space{global}?.primary{L2::evict_last,L2::evict_normal,L2::evict_first,L2::evict_unchanged}.secondary{L2::evict_first,L2::evict_unchanged}?.b64 d=b64, a:address, primary:u32, total:u32", no_policy).since(7, 4, 80),
    form("createpolicy.cvt.L2.b64 d=b64, a:b64", no_policy).since(7, 4, 80),
    form("pmevent a:imm", nothing).effect().since(1, 4, 10),
    form("pmevent.mask a:imm", nothing).effect().since(3, 0, 20),
    form("setmaxnreg.action{inc,dec}.sync.aligned.u32 count:imm", nothing).effect().since(8, 0, 90),
    // Launches do not overlap here, so what a kernel waits for has happened.
    form("griddepcontrol.action{launch_dependents,wait}", nothing).effect().since(7, 8, 90),
];

fn nothing(_: &mut Expander<'_, '_>) {}

/// A policy that accesses are free to ignore, as they do.
fn no_policy(x: &mut Expander<'_, '_>) {
    let d = x.imm(Type::I64, 0);
    x.set("d", d);
}
