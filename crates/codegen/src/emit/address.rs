//! Where the lanes of an access are: host addresses, by the shape of the address.

use simt_ir::{Access, IntBinary, Op, Space, Type as IrType, Value as IrValue};
use transform::{LaneShape, Offsets};

use super::function::Emitter;
use crate::llvm::Value;

/// Host addresses of an access.
#[derive(Clone)]
pub enum Address<'c> {
    /// The same for all lanes.
    Uniform(Value<'c>),
    /// A base and constants.
    Affine(Value<'c>, Offsets),
    /// A base for each row of the block and what they have been moved by, and constants.
    Rows { bases: Value<'c>, moved: Option<Value<'c>>, offsets: Offsets },
    /// One for each lane.
    Varying(Value<'c>),
    /// A base, and signed indices of 32 bits of elements of so many bytes.
    Indexed(Value<'c>, Value<'c>, u32),
}

impl<'c> Emitter<'_, 'c> {
    /// The host addresses of an access.
    pub(super) fn address(&mut self, value: IrValue, access: Access) -> Address<'c> {
        let b = self.unit.b;
        let i64 = self.unit.types.i64;
        let shape = self.p.shapes.of(value).clone();
        let narrow = self.p.func.ty(value) == IrType::I32;
        if access.space == Space::Local {
            let address = self.vector(value);
            let address = self.in_window(address, narrow, access.offset);
            return Address::Varying(b.add(address, self.local_windows()));
        }
        let window = self.window_scalar(access.space);
        // Lanes that far apart may be on both sides of where addresses of 32 bits wrap.
        let far = |offsets: &Offsets| narrow && offsets.iter().any(|offset| offset.abs() > 1 << 30);
        match shape {
            LaneShape::Uniform => {
                let address = self.natural(value);
                let address = if narrow { b.sext(address, i64) } else { address };
                Address::Uniform(self.offset(b.add(address, window), access.offset))
            }
            LaneShape::Affine(offsets) if !far(&offsets) => {
                // In the shared window a lane's address is far below 2^31, so the base may be taken as signed: it stands for
                // a lane that need not be active.
                let base = self.natural(value);
                let base = if narrow { b.sext(base, i64) } else { base };
                let base = b.add(base, window);
                Address::Affine(self.offset(base, access.offset), offsets)
            }
            LaneShape::Rows(offsets) if !far(&offsets) => {
                if narrow {
                    let bases = b.sext(self.natural(value), i64);
                    let bases = b.add(bases, b.splat(window, self.unit.rows()));
                    return Address::Rows { bases: self.offset(bases, access.offset), moved: None, offsets };
                }
                let (start, moves) = self.before_moves(value);
                let moved = moves.into_iter().map(|by| self.natural(by)).reduce(|sum, by| b.add(sum, by));
                let bases = b.add(self.row_bases(start), b.splat(window, self.unit.rows()));
                let offsets = offsets.iter().map(|offset| offset + access.offset).collect();
                Address::Rows { bases, moved, offsets }
            }
            LaneShape::Affine(_) | LaneShape::Rows(_) | LaneShape::Varying => {
                // With a sign they are the indices of 32 bits that processors gather and scatter by.
                let address = self.vector(value);
                let address = self.offset(address, access.offset);
                let address = if narrow { b.sext(address, i64) } else { address };
                Address::Varying(b.add(address, b.splat(window, self.unit.lanes)))
            }
        }
    }

    /// What an address was before it moved by numbers that are the same for all lanes, and these.
    pub(super) fn before_moves(&mut self, mut address: IrValue) -> (IrValue, Vec<IrValue>) {
        let p = self.p;
        let mut moves = Vec::new();
        while let Some(data) = p.func.def_inst(address)
            && data.op == Op::Int(IntBinary::Add)
            && let Some(at) = (0..2).find(|at| p.shapes.of(data.args[*at]).is_uniform())
            && data.args.iter().all(|arg| self.is_at_hand(*arg))
        {
            moves.push(data.args[at]);
            address = data.args[1 - at];
        }
        (address, moves)
    }

    pub(super) fn in_window(&self, address: Value<'c>, narrow: bool, offset: i64) -> Value<'c> {
        let moved = self.offset(address, offset);
        if narrow { self.unit.b.zext(moved, self.unit.types.i64) } else { moved }
    }

    /// The address of one lane, which may serve those whose distance from it is known.
    pub(super) fn place_of_lane(&self, address: &Address<'c>, lane: u32) -> Value<'c> {
        let b = self.unit.b;
        match address {
            Address::Affine(base, offsets) => self.offset(*base, offsets[lane as usize]),
            Address::Rows { bases, moved, offsets } => {
                let first = b.extract(*bases, lane / self.unit.row_lanes());
                self.offset(moved.map_or(first, |moved| b.add(first, moved)), offsets[lane as usize])
            }
            Address::Uniform(address) | Address::Varying(address) | Address::Indexed(address, ..) => *address,
        }
    }

    /// The addresses of all lanes as a vector.
    pub(super) fn all_addresses(&self, address: &Address<'c>) -> Value<'c> {
        match address {
            Address::Uniform(address) => self.unit.b.splat(*address, self.unit.lanes),
            Address::Affine(base, offsets) => self.widen(*base, &LaneShape::Affine(offsets.clone())),
            Address::Rows { bases, moved, offsets } => {
                let bases = match moved {
                    Some(moved) => self.unit.b.add(*bases, self.unit.b.splat(*moved, self.unit.rows())),
                    None => *bases,
                };
                self.widen(bases, &LaneShape::Rows(offsets.clone()))
            }
            Address::Varying(addresses) => *addresses,
            Address::Indexed(base, indices, bytes) => {
                let (b, i64) = (self.unit.b, self.unit.types.i64);
                let wide = b.sext(*indices, i64);
                b.add(b.splat(*base, self.unit.lanes), b.mul(wide, wide.ty().int_const((*bytes).into())))
            }
        }
    }

    /// The addresses of the first lanes.
    pub(super) fn first_lanes(&self, address: &Address<'c>, lanes: u32) -> Address<'c> {
        let first = |all: Value<'c>| self.unit.b.subvector(all, 0, lanes);
        match address {
            Address::Uniform(address) => Address::Uniform(*address),
            Address::Affine(base, offsets) => Address::Affine(*base, offsets[..lanes as usize].into()),
            Address::Indexed(base, indices, bytes) => Address::Indexed(*base, first(*indices), *bytes),
            Address::Rows { .. } | Address::Varying(_) => {
                Address::Varying(first(self.all_addresses(address)))
            }
        }
    }

    pub(super) fn offset(&self, address: Value<'c>, offset: i64) -> Value<'c> {
        if offset == 0 {
            return address;
        }
        self.unit.b.add(address, address.ty().int_const(offset as u64))
    }
}
