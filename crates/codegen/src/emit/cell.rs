//! Cells: values that wait in the warp's state.
//!
//! A cell takes no register and is saved nowhere: it is in memory all the time. A kernel whose lanes have places of their own keeps there
//! what one region computes for another, so that a region is compiled with what it uses itself, however many there are.

use simt_ir::{Cell, Value as IrValue};

use super::LANES;
use super::function::Emitter;
use crate::llvm::{Type, Value};
use crate::math::value_type;
use crate::target::Level;

/// Where the cells of a function lie in a warp's state.
pub struct Cells<'c> {
    /// Stack memory with the state's address, once a cell is used.
    state: Option<Value<'c>>,
    offsets: Vec<u32>,
    /// Bytes of all of them.
    bytes: u32,
}

impl Cells<'_> {
    /// No cells.
    pub fn new() -> Self {
        Cells { state: None, offsets: Vec::new(), bytes: 0 }
    }
}

impl<'c> Emitter<'_, 'c> {
    /// Puts the values of the active lanes into a cell.
    pub(super) fn keep(&mut self, cell: Cell, value: IrValue) {
        let b = self.unit.b;
        let (place, ty, align) = self.cell(cell);
        let value = self.vector(value);
        let full = self.is_full();
        let mask = self.active();
        // Nothing of what others have there is carried in registers from one keeping to the next.
        let old = || b.mark_volatile(b.load(ty, place, align));
        let new = if ty.is_vector() {
            if !full && self.unit.machine.cpu().level() >= Level::Avx512 {
                b.masked_store(value, place, align, mask);
                return;
            }
            if full { value } else { b.select(mask, value, old()) }
        } else {
            let (bits, mask) = (b.mask_to_int(value), b.mask_to_int(mask));
            let kept = b.and(old(), b.not(mask));
            b.or(kept, b.and(bits, mask))
        };
        b.store(new, place, align);
    }

    /// Takes the lanes' values from a cell.
    pub(super) fn recall(&mut self, cell: Cell, result: IrValue) {
        let b = self.unit.b;
        let (place, ty, align) = self.cell(cell);
        // Passes would carry it in registers from block to block, all the way that any lane may take to here.
        let value = b.mark_volatile(b.load(ty, place, align));
        let value = if ty.is_vector() { value } else { self.unit.int_to_mask(value) };
        self.define(result, value);
    }

    /// Bytes that the cells take at the beginning of a warp's state.
    pub(super) fn cell_bytes(&self) -> u32 {
        self.cells.bytes
    }

    /// Tells where the warp's state is; the builder stands at the prologue's end.
    pub(super) fn set_cells(&self, state: Value<'c>) {
        if let Some(place) = self.cells.state {
            self.unit.b.store(state, place, 8);
        }
    }

    /// A cell's address, what lies there, and its alignment. Of predicates there is a bit for each lane.
    fn cell(&mut self, cell: Cell) -> (Value<'c>, Type<'c>, u32) {
        if self.cells.state.is_none() {
            self.cells.state = Some(self.stack(self.unit.types.ptr));
            for ty in &self.p.func.cells {
                let (size, align) = match ty {
                    simt_ir::Type::Pred => (4, 4),
                    ty => (LANES * ty.bits() / 8, 64),
                };
                let offset = self.cells.bytes.next_multiple_of(align);
                self.cells.offsets.push(offset);
                self.cells.bytes = offset + size;
            }
        }
        let state = self.cells.state.expect("it has just been made");
        let state = self.unit.b.load(self.unit.types.ptr, state, 8);
        let place = self.unit.b.ptr_offset(state, self.cells.offsets[cell.index()].into());
        match self.p.func.cells[cell.index()] {
            simt_ir::Type::Pred => (place, self.unit.types.i32, 4),
            ty => (place, value_type(self.unit.context(), ty).vector(LANES), 64),
        }
    }
}
