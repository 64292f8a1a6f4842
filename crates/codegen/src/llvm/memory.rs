//! Loads, stores, their masked forms, atomics, fences and addresses.

use super::builder::Builder;
use super::types::Type;
use super::value::{Value, enum_attribute};
use super::{UNNAMED, count};
use llvm_sys::LLVMAtomicOrdering;
use llvm_sys::LLVMAtomicRMWBinOp;
use llvm_sys::core;

/// How an atomic access orders the accesses around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ordering {
    /// Atomic, without ordering.
    Relaxed,
    /// Later accesses stay behind it.
    Acquire,
    /// Earlier accesses stay before it.
    Release,
    /// Both.
    AcquireRelease,
    /// Both, and one order of all of these.
    SequentiallyConsistent,
}

/// What an atomic read-modify-write does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the usual operations")]
pub enum AtomicOp {
    Exchange,
    Add,
    Sub,
    And,
    Or,
    Xor,
    /// Signed maximum.
    Max,
    /// Signed minimum.
    Min,
    /// Unsigned maximum.
    UMax,
    /// Unsigned minimum.
    UMin,
    FAdd,
    /// `old >= value ? 0 : old + 1`.
    IncrementWrap,
    /// `old == 0 || old > value ? value : old - 1`.
    DecrementWrap,
}

impl<'c> Builder<'c> {
    /// Reads a `ty` at `ptr`, which is a multiple of `align`.
    #[track_caller]
    pub fn load(&self, ty: Type<'c>, ptr: Value<'c>, align: u32) -> Value<'c> {
        self.ready();
        is_pointer(ptr);
        let align = power_of_two(align);
        // SAFETY: positioned; operand checked; the alignment is set on the load just built.
        unsafe {
            let load = core::LLVMBuildLoad2(self.raw(), ty.raw(), ptr.raw(), UNNAMED);
            core::LLVMSetAlignment(load, align);
            self.value(load)
        }
    }

    /// Writes `value` at `ptr`, which is a multiple of `align`. Returns the store.
    #[track_caller]
    pub fn store(&self, value: Value<'c>, ptr: Value<'c>, align: u32) -> Value<'c> {
        self.ready();
        is_pointer(ptr);
        let align = power_of_two(align);
        // SAFETY: positioned; operand checked; the alignment is set on the store just built.
        unsafe {
            let store = core::LLVMBuildStore(self.raw(), value.raw(), ptr.raw());
            core::LLVMSetAlignment(store, align);
            self.value(store)
        }
    }

    /// Atomically reads an integer or float of 1, 2, 4, 8 or 16 bytes at its natural alignment.
    #[track_caller]
    pub fn load_atomic(&self, ty: Type<'c>, ptr: Value<'c>, ordering: Ordering) -> Value<'c> {
        assert!(!matches!(ordering, Ordering::Release | Ordering::AcquireRelease), "a load cannot release");
        let load = self.load(ty, ptr, atomic_size(ty));
        // SAFETY: the load just built.
        unsafe { core::LLVMSetOrdering(load.raw(), raw_ordering(ordering)) };
        load
    }

    /// Atomically writes an integer or float of 1, 2, 4, 8 or 16 bytes at its natural alignment.
    #[track_caller]
    pub fn store_atomic(&self, value: Value<'c>, ptr: Value<'c>, ordering: Ordering) -> Value<'c> {
        assert!(!matches!(ordering, Ordering::Acquire | Ordering::AcquireRelease), "a store cannot acquire");
        let store = self.store(value, ptr, atomic_size(value.ty()));
        // SAFETY: the store just built.
        unsafe { core::LLVMSetOrdering(store.raw(), raw_ordering(ordering)) };
        store
    }

    /// Makes a load or store happen exactly as written: neither removed, merged nor invented.
    pub fn mark_volatile(&self, access: Value<'c>) -> Value<'c> {
        assert!(access.is_instruction());
        // SAFETY: callers pass a load or a store, which is never folded.
        unsafe {
            assert!(
                !core::LLVMIsALoadInst(access.raw()).is_null()
                    || !core::LLVMIsAStoreInst(access.raw()).is_null()
            );
            core::LLVMSetVolatile(access.raw(), 1);
        }
        access
    }

    /// Reads the lanes of `mask` from consecutive elements at `ptr`; the others are those of `inactive` and are not
    /// touched in memory.
    #[track_caller]
    pub fn masked_load(
        &self,
        ty: Type<'c>,
        ptr: Value<'c>,
        align: u32,
        mask: Value<'c>,
        inactive: Value<'c>,
    ) -> Value<'c> {
        is_pointer(ptr);
        let load = self.intrinsic("llvm.masked.load", &[ty, ptr.ty()], &[ptr, mask, inactive]);
        self.align_argument(load, 0, align)
    }

    /// Writes the lanes of `mask` to consecutive elements at `ptr`.
    #[track_caller]
    pub fn masked_store(&self, value: Value<'c>, ptr: Value<'c>, align: u32, mask: Value<'c>) -> Value<'c> {
        is_pointer(ptr);
        let store = self.intrinsic("llvm.masked.store", &[value.ty(), ptr.ty()], &[value, ptr, mask]);
        self.align_argument(store, 1, align)
    }

    /// Reads the lanes of `mask`, each at its own pointer; the others are those of `inactive`.
    #[track_caller]
    pub fn gather(
        &self,
        ty: Type<'c>,
        ptrs: Value<'c>,
        align: u32,
        mask: Value<'c>,
        inactive: Value<'c>,
    ) -> Value<'c> {
        let load = self.intrinsic("llvm.masked.gather", &[ty, ptrs.ty()], &[ptrs, mask, inactive]);
        self.align_argument(load, 0, align)
    }

    /// Writes the lanes of `mask`, each at its own pointer, from lane 0 upwards: of two at one address, the higher lane
    /// stays.
    #[track_caller]
    pub fn scatter(&self, value: Value<'c>, ptrs: Value<'c>, align: u32, mask: Value<'c>) -> Value<'c> {
        let store = self.intrinsic("llvm.masked.scatter", &[value.ty(), ptrs.ty()], &[value, ptrs, mask]);
        self.align_argument(store, 1, align)
    }

    /// `ptr` moved by `offset` bytes. Either may be a vector. The sum may leave the object: nothing is assumed.
    #[track_caller]
    pub fn ptr_add(&self, ptr: Value<'c>, offset: Value<'c>) -> Value<'c> {
        self.ptr_index(ptr, offset, 1)
    }

    /// `ptr` moved by so many elements of so many bytes, a signed number; either may be a vector.
    #[track_caller]
    pub fn ptr_index(&self, ptr: Value<'c>, index: Value<'c>, bytes: u32) -> Value<'c> {
        self.ready();
        assert!(ptr.ty().is_ptr() && index.ty().is_int(), "address of {} and {}", ptr.ty(), index.ty());
        let (a, b) = (ptr.ty().lanes(), index.ty().lanes());
        assert!(a == b || a == 1 || b == 1, "{a} pointers and {b} offsets");
        // An integer of another size is laid out as if it had more bytes.
        let element = match bytes.is_power_of_two() {
            true => self.context().int(8 * bytes),
            false => self.context().int(8).array(bytes.into()),
        };
        // SAFETY: positioned; operands checked.
        self.value(unsafe {
            core::LLVMBuildGEP2(self.raw(), element.raw(), ptr.raw(), &mut index.raw(), 1, UNNAMED)
        })
    }

    /// `ptr` moved by a constant number of bytes.
    #[track_caller]
    pub fn ptr_offset(&self, ptr: Value<'c>, offset: i64) -> Value<'c> {
        if offset == 0 { ptr } else { self.ptr_add(ptr, self.context().int(64).int_const(offset as u64)) }
    }

    /// Memory of the frame for one `ty`, until the function returns. Belongs at the start of the entry block.
    #[track_caller]
    pub fn alloca(&self, ty: Type<'c>, align: u32) -> Value<'c> {
        self.ready();
        let align = power_of_two(align);
        // SAFETY: positioned; the alignment is set on the alloca just built.
        unsafe {
            let alloca = core::LLVMBuildAlloca(self.raw(), ty.raw(), UNNAMED);
            core::LLVMSetAlignment(alloca, align);
            self.value(alloca)
        }
    }

    /// Copies `length` bytes between areas that do not overlap.
    #[track_caller]
    pub fn memcpy(&self, to: Value<'c>, from: Value<'c>, length: Value<'c>, align: u32) {
        self.ready();
        is_pointer(to);
        is_pointer(from);
        assert_eq!(length.ty(), self.context().int(64));
        let align = power_of_two(align);
        // SAFETY: positioned; operands checked.
        unsafe { core::LLVMBuildMemCpy(self.raw(), to.raw(), align, from.raw(), align, length.raw()) };
    }

    /// Sets `length` bytes to `byte`.
    #[track_caller]
    pub fn memset(&self, to: Value<'c>, byte: Value<'c>, length: Value<'c>, align: u32) {
        self.ready();
        is_pointer(to);
        assert_eq!(length.ty(), self.context().int(64));
        assert_eq!(byte.ty(), self.context().int(8));
        // SAFETY: positioned; operands checked.
        unsafe { core::LLVMBuildMemSet(self.raw(), to.raw(), byte.raw(), length.raw(), power_of_two(align)) };
    }

    /// Atomically replaces the integer at `ptr` by `new` if it equals `expected`. Returns what it was, and whether it
    /// was replaced.
    #[track_caller]
    pub fn compare_exchange(
        &self,
        ptr: Value<'c>,
        expected: Value<'c>,
        new: Value<'c>,
        ordering: Ordering,
    ) -> (Value<'c>, Value<'c>) {
        self.ready();
        is_pointer(ptr);
        assert!(
            expected.ty() == new.ty() && new.ty().is_int(),
            "exchange of {} by {}",
            expected.ty(),
            new.ty()
        );
        let size = atomic_size(new.ty());
        let failure = match ordering {
            Ordering::Release => Ordering::Relaxed,
            Ordering::AcquireRelease => Ordering::Acquire,
            other => other,
        };
        // SAFETY: positioned; operands checked; the result is a pair of the old value and one bit.
        unsafe {
            let pair = core::LLVMBuildAtomicCmpXchg(
                self.raw(),
                ptr.raw(),
                expected.raw(),
                new.raw(),
                raw_ordering(ordering),
                raw_ordering(failure),
                0,
            );
            core::LLVMSetAlignment(pair, size);
            let old = core::LLVMBuildExtractValue(self.raw(), pair, 0, UNNAMED);
            let replaced = core::LLVMBuildExtractValue(self.raw(), pair, 1, UNNAMED);
            (self.value(old), self.value(replaced))
        }
    }

    /// Atomically combines the value at `ptr` with `value`. Returns what it was.
    #[track_caller]
    pub fn atomic_rmw(
        &self,
        op: AtomicOp,
        ptr: Value<'c>,
        value: Value<'c>,
        ordering: Ordering,
    ) -> Value<'c> {
        use LLVMAtomicRMWBinOp::*;
        self.ready();
        is_pointer(ptr);
        let size = atomic_size(value.ty());
        let fits = match op {
            AtomicOp::Exchange => true,
            AtomicOp::FAdd => value.ty().is_float(),
            _ => value.ty().is_int(),
        };
        assert!(fits, "{op:?} of {}", value.ty());
        let op = match op {
            AtomicOp::Exchange => LLVMAtomicRMWBinOpXchg,
            AtomicOp::Add => LLVMAtomicRMWBinOpAdd,
            AtomicOp::Sub => LLVMAtomicRMWBinOpSub,
            AtomicOp::And => LLVMAtomicRMWBinOpAnd,
            AtomicOp::Or => LLVMAtomicRMWBinOpOr,
            AtomicOp::Xor => LLVMAtomicRMWBinOpXor,
            AtomicOp::Max => LLVMAtomicRMWBinOpMax,
            AtomicOp::Min => LLVMAtomicRMWBinOpMin,
            AtomicOp::UMax => LLVMAtomicRMWBinOpUMax,
            AtomicOp::UMin => LLVMAtomicRMWBinOpUMin,
            AtomicOp::FAdd => LLVMAtomicRMWBinOpFAdd,
            AtomicOp::IncrementWrap => LLVMAtomicRMWBinOpUIncWrap,
            AtomicOp::DecrementWrap => LLVMAtomicRMWBinOpUDecWrap,
        };
        // SAFETY: positioned; operands checked.
        unsafe {
            let old =
                core::LLVMBuildAtomicRMW(self.raw(), op, ptr.raw(), value.raw(), raw_ordering(ordering), 0);
            core::LLVMSetAlignment(old, size);
            self.value(old)
        }
    }

    /// Orders the accesses before it against those behind it.
    #[track_caller]
    pub fn fence(&self, ordering: Ordering) {
        self.ready();
        assert_ne!(ordering, Ordering::Relaxed, "a relaxed fence is none");
        // SAFETY: positioned.
        unsafe { core::LLVMBuildFence(self.raw(), raw_ordering(ordering), 0, UNNAMED) };
    }

    /// Memory accesses before and after stay there, as this thread sees them. No instruction.
    #[track_caller]
    pub fn order_memory(&self) {
        self.ready();
        let ordering = raw_ordering(Ordering::SequentiallyConsistent);
        // SAFETY: positioned.
        unsafe { core::LLVMBuildFence(self.raw(), ordering, 1, UNNAMED) };
    }

    /// Gives the pointer argument `index` of `call` an alignment.
    #[track_caller]
    fn align_argument(&self, call: Value<'c>, index: usize, align: u32) -> Value<'c> {
        let attribute = enum_attribute(self.context().raw(), "align", power_of_two(align).into());
        // SAFETY: a call that was just built, with more than `index` arguments; never folded.
        unsafe { core::LLVMAddCallSiteAttribute(call.raw(), count(index + 1), attribute) };
        call
    }
}

#[track_caller]
fn is_pointer(ptr: Value<'_>) {
    assert!(ptr.ty().is_ptr() && !ptr.ty().is_vector(), "an address of {}", ptr.ty());
}

#[track_caller]
fn power_of_two(align: u32) -> u32 {
    assert!(align.is_power_of_two(), "an alignment of {align}");
    align
}

#[track_caller]
fn atomic_size(ty: Type<'_>) -> u32 {
    assert!((ty.is_int() || ty.is_float()) && !ty.is_vector(), "atomic access of {ty}");
    let bits = ty.scalar_bits();
    assert!(matches!(bits, 8 | 16 | 32 | 64 | 128), "atomic access of {ty}");
    bits / 8
}

fn raw_ordering(ordering: Ordering) -> LLVMAtomicOrdering {
    use LLVMAtomicOrdering::*;
    match ordering {
        Ordering::Relaxed => LLVMAtomicOrderingMonotonic,
        Ordering::Acquire => LLVMAtomicOrderingAcquire,
        Ordering::Release => LLVMAtomicOrderingRelease,
        Ordering::AcquireRelease => LLVMAtomicOrderingAcquireRelease,
        Ordering::SequentiallyConsistent => LLVMAtomicOrderingSequentiallyConsistent,
    }
}
