//! Atomics that a thread keeps while it runs blocks, and does later: see [`kernel_abi::late`].
//!
//! A thread has a table of lines of the cache. The first operation that comes to a line is done at once, which shows that memory is there, and
//! the line is noted. Those that follow stay in the table: integers as one operand, which is what all of them come to; numbers of floating
//! point one by one, since each sum is rounded. They are done when a line has as many as it holds, when another line or another operation
//! wants its place, and when the thread has run its share of blocks.

use std::cell::RefCell;

use kernel_abi::late::{AtomicOp, SETTLE, Type, combined, decode, sums};

/// Lines of the table, a power of two.
const LINES: usize = 64;
/// Bytes of a line.
const LINE: u64 = 64;
/// Numbers of floating point that each element of a line holds.
const ROWS: usize = 16;
/// Words of a line, which are exchanged one by one.
const WORDS: usize = LINE as usize / 8;

/// The halves of a line's words, the low one first, or operands for its elements.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Row([u32; 2 * WORDS]);

impl Row {
    fn word(&self, at: usize) -> u64 {
        u64::from(self.0[2 * at]) | u64::from(self.0[2 * at + 1]) << 32
    }

    fn set_word(&mut self, at: usize, word: u64) {
        (self.0[2 * at], self.0[2 * at + 1]) = (word as u32, (word >> 32) as u32);
    }
}

/// What is kept for one line.
#[derive(Clone)]
struct Line {
    /// Where it is; 0 for none.
    address: u64,
    /// The operation.
    code: u32,
    /// Rows with operands.
    rows: usize,
    /// The elements that a row has operands for.
    masks: [u16; ROWS],
    operands: [Row; ROWS],
}

const EMPTY: Line =
    Line { address: 0, code: 0, rows: 0, masks: [0; ROWS], operands: [Row([0; 2 * WORDS]); ROWS] };

/// What a thread keeps.
struct Table {
    lines: Vec<Line>,
    /// Lines that are noted.
    used: Vec<u8>,
    /// The fault of an operation that could not be done when its time came.
    fault: Option<guard::Fault>,
}

thread_local! {
    static TABLE: RefCell<Option<Table>> = const { RefCell::new(None) };
}

/// See [`kernel_abi::late::LateFn`].
///
/// # Safety
/// `operands` points to an operand for each of 32 lanes.
pub unsafe extern "C" fn late(code: u32, start: u64, lanes: u32, operands: *const u8) -> u32 {
    if code == SETTLE {
        settle_before_more();
        return 0;
    }
    let Some((op, ty, one_place)) = decode(code) else { return lanes };
    TABLE.with_borrow_mut(|table| {
        let table = match table {
            Some(table) => table,
            None => guard::unguarded(|| table.insert(Table::new())),
        };
        // SAFETY: the caller's contract.
        unsafe {
            match (ty.bits(), one_place) {
                (32, false) => {
                    table.keep_adjacent(Kind { op, ty, code }, start, lanes, operands.cast::<u32>())
                }
                (32, true) => {
                    table.keep_in_one_place(Kind { op, ty, code }, start, lanes, operands.cast::<u32>())
                }
                (_, false) => {
                    table.keep_adjacent(Kind { op, ty, code }, start, lanes, operands.cast::<u64>())
                }
                (_, true) => {
                    table.keep_in_one_place(Kind { op, ty, code }, start, lanes, operands.cast::<u64>())
                }
            }
        }
    })
}

/// Does what this thread has kept, since an operation comes that must not come before.
fn settle_before_more() {
    TABLE.with_borrow_mut(|table| {
        if let Some(table) = table.as_mut().filter(|table| !table.used.is_empty()) {
            guard::unguarded(|| table.settle());
        }
    });
}

/// Does what this thread has kept, at the end of its share of a kernel's blocks. The first fault on the way is answered: memory that went away
/// while the kernel ran.
pub fn settle() -> Result<(), guard::Fault> {
    TABLE.with_borrow_mut(|table| {
        let Some(table) = table else { return Ok(()) };
        table.settle();
        table.fault.take().map_or(Ok(()), Err)
    })
}

/// Forgets what this thread has kept: the launch has failed.
pub fn forget() {
    TABLE.with_borrow_mut(|table| {
        let Some(table) = table else { return };
        for index in table.used.drain(..) {
            let line = &mut table.lines[usize::from(index)];
            (line.address, line.rows) = (0, 0);
        }
        table.fault = None;
    });
}

/// An operation, and its code.
#[derive(Clone, Copy)]
struct Kind {
    op: AtomicOp,
    ty: Type,
    code: u32,
}

impl Kind {
    /// Whether the order of operands, and their number, are part of the result.
    fn is_rounded(self) -> bool {
        matches!(self.op, AtomicOp::FAdd { .. })
    }
}

/// An element of memory.
trait Element: Copy {
    fn to_word(self) -> u64;
    fn of_word(word: u64) -> Self;
}

impl Element for u32 {
    fn to_word(self) -> u64 {
        self.into()
    }

    fn of_word(word: u64) -> u32 {
        word as u32
    }
}

impl Element for u64 {
    fn to_word(self) -> u64 {
        self
    }

    fn of_word(word: u64) -> u64 {
        word
    }
}

impl Table {
    fn new() -> Table {
        Table { lines: vec![EMPTY; LINES], used: Vec::with_capacity(LINES), fault: None }
    }

    /// # Safety
    /// `operands` has one of each lane.
    unsafe fn keep_adjacent<E: Element>(
        &mut self,
        kind: Kind,
        start: u64,
        lanes: u32,
        operands: *const E,
    ) -> u32 {
        let bytes = size_of::<E>() as u64;
        let (mut todo, mut left) = (lanes, 0);
        while todo != 0 {
            let first = todo.trailing_zeros();
            let address = start.wrapping_add(u64::from(first) * bytes);
            let element = (address % LINE / bytes) as usize;
            // Those up to the end of the line.
            let fit = (LINE / bytes) as usize - element;
            let own = todo & (((1u64 << fit) - 1) << first) as u32;
            todo &= !own;
            match self.line(kind, address - address % LINE) {
                None => left |= own,
                Some(line) => {
                    // SAFETY: the lanes' operands, as the caller promises, and elements up to the end of the line.
                    unsafe { line.add(kind, element, own >> first, operands.wrapping_add(first as usize)) };
                }
            }
        }
        left
    }

    /// # Safety
    /// `operands` has one of each lane.
    unsafe fn keep_in_one_place<E: Element>(
        &mut self,
        kind: Kind,
        place: u64,
        lanes: u32,
        operands: *const E,
    ) -> u32 {
        let element = (place % LINE) as usize / size_of::<E>();
        let mut todo = lanes;
        while todo != 0 {
            let lane = todo.trailing_zeros();
            let Some(line) = self.line(kind, place - place % LINE) else { break };
            // SAFETY: the caller's contract.
            unsafe { line.add(kind, element, 1, operands.wrapping_add(lane as usize)) };
            todo &= todo - 1;
        }
        todo
    }

    /// Where an operation on the line at `address` is kept. `None` if none was: it is noted for the next.
    fn line(&mut self, kind: Kind, address: u64) -> Option<&mut Line> {
        let index = (address / LINE) as usize % LINES;
        let known = (self.lines[index].address, self.lines[index].code);
        if known == (address, kind.code) {
            if self.lines[index].rows == ROWS {
                guard::unguarded(|| self.do_all(index));
            }
            return Some(&mut self.lines[index]);
        }
        match known.0 {
            0 => self.used.push(index as u8),
            _ => guard::unguarded(|| self.do_all(index)),
        }
        let line = &mut self.lines[index];
        (line.address, line.code) = (address, kind.code);
        None
    }

    /// Does all that is kept.
    fn settle(&mut self) {
        while let Some(index) = self.used.pop() {
            self.do_all(index.into());
            self.lines[usize::from(index)].address = 0;
        }
    }

    /// Does what is kept for a line.
    fn do_all(&mut self, index: usize) {
        if let Err(fault) = self.lines[index].do_all() {
            self.fault.get_or_insert(fault);
        }
    }
}

impl Line {
    /// Adds operands for elements from `first` on, of those that `mask` has: all of them are in the line, and it has room.
    ///
    /// # Safety
    /// `operands` has one for each element of the mask.
    unsafe fn add<E: Element>(&mut self, kind: Kind, first: usize, mask: u32, operands: *const E) {
        if self.rows == 0 || kind.is_rounded() {
            self.masks[self.rows] = 0;
            self.rows += 1;
        }
        let row = self.rows - 1;
        let known = self.masks[row] >> first;
        self.masks[row] |= (mask << first) as u16;
        let count = (u32::BITS - mask.leading_zeros()) as usize;
        let own = self.operands[row].0.as_mut_ptr().cast::<E>().wrapping_add(first);
        if known & mask as u16 == 0 && mask.count_ones() as usize == count {
            // SAFETY: as many elements are in the line, and as many operands are there.
            unsafe { own.copy_from_nonoverlapping(operands, count) };
            return;
        }
        for at in (0..count).filter(|at| mask >> at & 1 != 0) {
            // SAFETY: as above, of one of them.
            unsafe {
                let (old, new) = (own.add(at).read().to_word(), operands.add(at).read_unaligned().to_word());
                let new = if known >> at & 1 == 0 { new } else { combined(kind.op, kind.ty, old, new) };
                own.add(at).write(E::of_word(new));
            }
        }
    }

    /// Does what is kept.
    fn do_all(&mut self) -> Result<(), guard::Fault> {
        let rows = std::mem::take(&mut self.rows);
        let Some((op, ty, _)) = decode(self.code).filter(|_| rows > 0) else { return Ok(()) };
        let all = self.masks[..rows].iter().fold(0, |all, mask| all | mask);
        let elements = LINE as usize / (ty.bits() as usize / 8);
        let per_word = elements / WORDS;
        let of_word = |word: usize| all >> (word * per_word) & ((1 << per_word) - 1) != 0;
        let at = |word: usize| self.address + 8 * word as u64;
        let mut old = Row([0; 2 * WORDS]);
        for word in (0..WORDS).filter(|word| of_word(*word)) {
            // SAFETY: the kernel has accessed this line, as memory of the device; if it is that no more, the fault is answered.
            old.set_word(word, unsafe { guard::load::<u64>(at(word))? });
        }
        let mut new = self.done(rows, op, ty, old);
        for word in (0..WORDS).filter(|word| of_word(*word)) {
            loop {
                // SAFETY: as above.
                let seen = unsafe { guard::compare_exchange(at(word), old.word(word), new.word(word))? };
                if seen == old.word(word) {
                    break;
                }
                // Another thread came between.
                old.set_word(word, seen);
                new.set_word(word, self.done(rows, op, ty, old).word(word));
            }
        }
        Ok(())
    }

    /// What the kept operations make of a line.
    fn done(&self, rows: usize, op: AtomicOp, ty: Type, mut line: Row) -> Row {
        for (row, mask) in self.operands[..rows].iter().zip(&self.masks) {
            match (op, ty.bits()) {
                (AtomicOp::FAdd { ftz: true }, 32) => sums(&mut line.0, &row.0, *mask),
                (_, 32) => {
                    for at in (0..2 * WORDS).filter(|at| mask >> at & 1 != 0) {
                        line.0[at] = combined(op, ty, line.0[at].into(), row.0[at].into()) as u32;
                    }
                }
                _ => {
                    for at in (0..WORDS).filter(|at| mask >> at & 1 != 0) {
                        line.set_word(at, combined(op, ty, line.word(at), row.word(at)));
                    }
                }
            }
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel_abi::late::encode;

    /// Memory of two lines, aligned to one.
    #[repr(align(64))]
    struct Memory([u32; 32]);

    fn address(memory: &mut Memory) -> u64 {
        memory.0.as_mut_ptr().expose_provenance() as u64
    }

    fn call(op: AtomicOp, ty: Type, one_place: bool, start: u64, lanes: u32, operands: &[u32]) -> u32 {
        assert!(operands.len() * 4 >= 32 * ty.bits() as usize / 8);
        // SAFETY: there are operands of all lanes.
        unsafe { late(encode(op, ty, one_place).unwrap(), start, lanes, operands.as_ptr().cast()) }
    }

    #[test]
    fn a_line_is_noted_first_and_then_kept_until_all_is_settled() {
        let mut memory = Memory([0; 32]);
        let start = address(&mut memory) + 8;
        let ones = [1; 32];
        let add = |lanes| call(AtomicOp::Add, Type::I32, false, start, lanes, &ones);
        assert_eq!(add(u32::MAX >> 2), u32::MAX >> 2, "two lines, both new");
        assert_eq!(add(0x8000_0003), 0x8000_0000, "lane 31 is in a third");
        for _ in 0..100 {
            assert_eq!(add(0x0001_0003), 0);
        }
        assert_eq!(memory.0, [0; 32]);
        settle().unwrap();
        let mut wanted = [0; 32];
        (wanted[2], wanted[3], wanted[18]) = (101, 101, 100);
        assert_eq!(memory.0, wanted);
        assert_eq!(add(1), 1, "nothing is noted any more");
        settle().unwrap();
    }

    #[test]
    fn every_sum_is_rounded_as_if_it_were_done_by_itself() {
        let mut memory = Memory([0; 32]);
        let start = address(&mut memory);
        let mut wanted = [0f32; 2];
        for round in 0..50u32 {
            let operands: [u32; 32] =
                std::array::from_fn(|lane| (0.1f32 + (lane as u32 * round) as f32 * 1e3).to_bits());
            let left = call(AtomicOp::FAdd { ftz: true }, Type::F32, false, start, 3, &operands);
            assert_eq!(left, if round == 0 { 3 } else { 0 });
            for (lane, sum) in wanted.iter_mut().enumerate() {
                *sum += f32::from_bits(operands[lane]);
                if round == 0 {
                    memory.0[lane] = sum.to_bits();
                }
            }
        }
        settle().unwrap();
        assert_eq!(memory.0[..2], wanted.map(f32::to_bits));
    }

    #[test]
    fn another_operation_on_a_line_comes_after_those_before_it() {
        let mut memory = Memory([0; 32]);
        let start = address(&mut memory) + 64;
        let do_by_hand = |memory: &mut Memory, op, operand: u32| {
            let old = memory.0[16];
            memory.0[16] = combined(op, Type::I32, old.into(), operand.into()) as u32;
        };
        let operations = [
            (AtomicOp::Add, 5),
            (AtomicOp::Add, 7),
            (AtomicOp::Add, 1),
            (AtomicOp::MinU, 9),
            (AtomicOp::MinU, 3),
            (AtomicOp::Or, 64),
            (AtomicOp::Or, 8),
            (AtomicOp::Add, 2),
        ];
        let mut wanted = 0;
        for (op, operand) in operations {
            wanted = combined(op, Type::I32, wanted, operand.into());
            if call(op, Type::I32, true, start, 1, &[operand; 32]) != 0 {
                do_by_hand(&mut memory, op, operand);
            }
        }
        settle().unwrap();
        assert_eq!(u64::from(memory.0[16]), wanted);
    }

    #[test]
    fn words_of_64_bits_in_one_place_and_lines_that_share_a_seat() {
        let mut memory = vec![0u64; (LINES + 3) * 8];
        let first = (memory.as_mut_ptr().expose_provenance() as u64).next_multiple_of(LINE);
        let operands: [u32; 64] = std::array::from_fn(|at| if at % 2 == 0 { 1 } else { 2 });
        let add = |start| call(AtomicOp::Add, Type::I64, true, start, u32::MAX, &operands);
        let other = first + LINES as u64 * LINE;
        assert_eq!(add(first), u32::MAX);
        assert_eq!(add(first), 0);
        assert_eq!(add(other), u32::MAX, "what is kept for the other is done");
        assert_eq!(add(other), 0);
        assert_eq!(add(first), u32::MAX, "and then that of this one");
        assert_eq!(add(first), 0);
        forget();
        settle().unwrap();
        let at = |address: u64| (address - memory.as_ptr().expose_provenance() as u64) as usize / 8;
        assert_eq!([memory[at(first)], memory[at(other)]], [32 << 33 | 32; 2]);
    }

    #[test]
    fn memory_that_is_gone_is_told() {
        // Nothing is mapped in the first page.
        let start = 64;
        assert_eq!(call(AtomicOp::And, Type::I32, false, start, 1, &[1; 32]), 1);
        assert_eq!(call(AtomicOp::And, Type::I32, false, start, 1, &[1; 32]), 0);
        assert_eq!(settle().unwrap_err().address, 64);
        settle().unwrap();
    }
}
