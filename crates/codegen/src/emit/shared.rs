//! Functions of a module that its code calls where it would else have the same instructions in many places.

use simt_ir::{Access, Space, Type as IrType, Value as IrValue};

use super::LANES;
use super::function::Emitter;
use crate::llvm::{Function, Linkage, Type, Value};

impl<'c> Emitter<'_, 'c> {
    /// The function of this name and type, whose blocks `body` emits, from the first on, if it is not there yet. The name tells all that the body
    /// depends on.
    pub(super) fn shared_function(
        &self,
        name: &str,
        result: Type<'c>,
        params: &[Type<'c>],
        body: impl FnOnce(Function<'c>),
    ) -> Function<'c> {
        let b = self.unit.b;
        b.module().function(name).unwrap_or_else(|| {
            let here = b.block();
            let function = b.module().add_function(name, result, params, Linkage::Internal);
            self.unit.machine.set_attributes(function);
            function.add_attribute("noinline");
            b.position_at_end(function.append_block("entry"));
            body(function);
            b.position_at_end(here);
            function
        })
    }

    /// Loads an element for each active lane by a call, in code of which there is to be little, where that is less to LLVM: elements that are less than a
    /// word, and those at addresses that have the same added to them in all lanes, which takes several registers each time.
    pub(super) fn load_by_call(
        &mut self,
        address: IrValue,
        access: Access,
        lane: Type<'c>,
    ) -> Option<Value<'c>> {
        let size = lane.scalar_bits() / 8;
        let p = self.p;
        let fits = access.lanes == 1
            && !access.anywhere
            && access.space != Space::Local
            && p.func.ty(address) == IrType::I64;
        let takes = self.wants_less_code() && self.unit.lanes <= LANES && self.has_gather(4) && fits;
        if !takes || !p.shapes.of(address).is_varying() || !p.shapes.checks(address).is_empty() {
            return None;
        }
        let b = self.unit.b;
        let (start, moves) = self.before_moves(address);
        let window = self.window_scalar(access.space);
        let further = moves.into_iter().fold(window, |sum, by| b.add(sum, self.natural(by)));
        let further = self.offset(further, access.offset);
        if self.has_gather(size) && further.as_int() == Some(0) {
            return None;
        }
        let mask = self.active();
        let (start, mask) = (self.vector(start), b.mask_to_int(mask));
        // Elements are bits there.
        let bits = lane.to_int();
        let ty = bits.vector(self.unit.lanes);
        let name = format!("load{}", bits.scalar_bits());
        let function = self.shared_function(&name, ty, &[start.ty(), further.ty(), mask.ty()], |function| {
            let further = b.splat(function.param(1), self.unit.lanes);
            let addresses = b.add(function.param(0), further);
            let mask = b.int_to_mask(function.param(2));
            let (in_runs, apart) = (function.append_block("in.runs"), function.append_block("apart"));
            let runs = self.two_runs(addresses, size);
            b.cond_br(runs.hold, in_runs, apart);
            b.position_at_end(in_runs);
            let mut elements = ty.zero();
            for (start, lanes) in runs.runs {
                let (ptr, lanes) = (b.inttoptr(start), b.and(mask, lanes));
                elements = b.masked_load(ty, ptr, size, lanes, elements);
            }
            b.ret(elements);
            b.position_at_end(apart);
            b.ret(self.gather_here(bits, addresses, mask));
        });
        let elements = b.call(function, &[start, further, mask]);
        Some(b.bitcast(elements, lane.vector(self.unit.lanes)))
    }
}
