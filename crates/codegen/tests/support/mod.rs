//! Compiles one operation for a CPU and runs it on many operands.

use codegen::llvm::{Builder, Context, Linkage};
use codegen::math::{Lowering, value_type};
use codegen::target::{Cpu, Level, Machine};
use jit::object::LoadedObject;
use simt_ir::{Op, Type};

/// An operation with its operand types and its result type.
#[derive(Clone, Debug)]
pub struct Case {
    pub op: Op,
    pub types: Vec<Type>,
    pub result: Type,
}

/// The CPUs that code for can run here.
pub fn cpus() -> Vec<Cpu> {
    let native = Cpu::native().unwrap();
    let levels = [Level::Baseline, Level::Avx2, Level::Avx512];
    let mut cpus: Vec<_> =
        levels.into_iter().filter(|&level| level <= native.level()).map(Cpu::level_cpu).collect();
    cpus.push(native);
    cpus
}

type Entry = unsafe extern "C" fn(*const u64, *const u64, *const u64, *mut u64);

/// A compiled operation: `f(a, b, c, results)` over `lanes` elements, each in eight bytes.
pub struct Compiled {
    _object: LoadedObject,
    entry: Entry,
    lanes: usize,
    flushing: bool,
}

impl Compiled {
    /// `flushing` leaves it to the processor to flush subnormals.
    pub fn new(case: &Case, cpu: &Cpu, lanes: u32, flushing: bool) -> Self {
        let context = Context::new();
        let machine = Machine::for_cpu(cpu).unwrap();
        let module = context.module("test");
        machine.prepare(module);
        let (ptr, i64) = (context.ptr(), context.int(64));
        let function = module.add_function("f", context.void(), &[ptr; 4], Linkage::External);
        machine.set_attributes(function);
        if flushing {
            machine.set_flushing(function);
        }
        let b = Builder::new(module);
        b.position_at_end(function.append_block("entry"));
        let words = if lanes == 1 { i64 } else { i64.vector(lanes) };
        let args: Vec<_> = case
            .types
            .iter()
            .enumerate()
            .map(|(index, &ty)| {
                let word = b.load(words, function.param(index as u32), 8);
                let llvm = value_type(&context, ty).shaped_like(words);
                b.bitcast(b.int_resize(word, llvm.to_int(), false), llvm)
            })
            .collect();
        let result =
            Lowering::new(&b, cpu).flushing(flushing).op(case.op, &args, &case.types, case.result).unwrap();
        let bits = b.bitcast(result, result.ty().to_int());
        b.store(b.int_resize(bits, i64, false), function.param(3), 8);
        b.ret_void();
        machine.optimize(module).unwrap_or_else(|error| panic!("{case:?}: {error}"));
        let bytes = machine.emit_object(module).unwrap();
        let object =
            LoadedObject::load(&bytes, &jit::host_symbol).unwrap_or_else(|e| panic!("{case:?}: {e}"));
        let address = object.symbol("f").unwrap().address as *const ();
        // SAFETY: the function was built with this signature.
        let entry = unsafe { std::mem::transmute::<*const (), Entry>(address) };
        Self { _object: object, entry, lanes: lanes as usize, flushing }
    }

    /// Results for operands of which there are as many as a multiple of the lanes.
    pub fn run(&self, operands: &[Vec<u64>]) -> Vec<u64> {
        let count = operands[0].len();
        let mut results = vec![0; count];
        for start in (0..count).step_by(self.lanes) {
            let at = |index: usize| {
                operands.get(index).map_or(std::ptr::null(), |values| values[start..].as_ptr())
            };
            // SAFETY: each array has `lanes` elements from `start` on; the control register is put back at once.
            unsafe {
                if self.flushing {
                    set_mxcsr(0x9fc0);
                }
                (self.entry)(at(0), at(1), at(2), results[start..].as_mut_ptr());
                set_mxcsr(0x1f80);
            }
        }
        results
    }
}

/// # Safety
/// No Rust code that computes with floats runs before the default, 0x1f80, is back.
unsafe fn set_mxcsr(value: u32) {
    // SAFETY: reads four bytes.
    unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &value) };
}

/// A small generator of reproducible numbers.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}

/// Bit patterns at which operations of a type change their ways.
pub fn edges(ty: Type) -> Vec<u64> {
    let mask = ty.mask();
    if !ty.is_float() {
        let mut all =
            vec![0, 1, 2, 3, 5, 7, 31, 32, 33, 63, 64, 100, mask, mask - 1, mask >> 1, (mask >> 1) + 1];
        all.extend((0..ty.bits()).map(|bit| 1 << bit));
        return all.into_iter().map(|value| value & mask).collect();
    }
    let format = simt_ir::soft::Format::of(ty);
    let (one, normal, infinity) = (format.one(), format.min_normal(), format.infinity());
    let unit = format.min_normal(); // one step of the exponent
    let mut all = vec![
        0,
        1,
        2,
        3,
        normal - 1,
        normal,
        normal + 1,
        normal | normal >> 1,
        2 * normal,
        one - 1,
        one,
        one + 1,
        one + unit,
        one + unit / 2,
        one + unit / 2 + 1,
        one - unit,
        one + 8 * unit + 5,
        infinity - 1,
        infinity,
        infinity | format.quiet(),
        infinity | 1,
        format.sign() - 1,
        infinity - unit,
        one | 3,
    ];
    for integer in [31, 32, 63, 64, 15, 16, 7, 8] {
        // Powers of two around the limits of integer types, where the format has them.
        let power = one + integer * unit;
        if power < infinity {
            all.extend([power - 1, power, power + 1]);
        }
    }
    let negative: Vec<_> = all.iter().map(|bits| bits | format.sign()).collect();
    all.extend(negative);
    all
}

/// Operand arrays: all combinations of edges, then random ones of several kinds. A multiple of 32 long.
pub fn operands(types: &[Type], random_count: usize) -> Vec<Vec<u64>> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let edges: Vec<_> = types.iter().map(|&ty| edges(ty)).collect();
    let mut tuples: Vec<Vec<u64>> = Vec::new();
    let combinations: usize = edges.iter().map(Vec::len).product();
    let stride = (combinations / 20_000).max(1);
    for mut index in (0..combinations).step_by(stride) {
        index += (random.next() as usize) % stride;
        let mut index = index.min(combinations - 1);
        let tuple = edges
            .iter()
            .map(|values| {
                let value = values[index % values.len()];
                index /= values.len();
                value
            })
            .collect();
        tuples.push(tuple);
    }
    for count in 0..random_count {
        let mut tuple: Vec<u64> = types.iter().map(|ty| random.next() & ty.mask()).collect();
        if count % 2 == 0 {
            // Related magnitudes, so that sums cancel and products meet the third operand.
            for (value, ty) in tuple.iter_mut().zip(types) {
                if ty.is_float() {
                    let format = simt_ir::soft::Format::of(*ty);
                    let keep = format.fraction_mask() | format.sign();
                    let spread = random.next() % 8 * format.min_normal();
                    let base = if count % 4 == 0 { format.one() } else { format.min_normal() };
                    *value = *value & keep | (base + spread);
                } else {
                    *value >>= random.next() % u64::from(ty.bits());
                }
            }
        }
        tuples.push(tuple);
    }
    tuples.truncate(tuples.len() / 32 * 32);
    (0..types.len()).map(|index| tuples.iter().map(|tuple| tuple[index]).collect()).collect()
}
