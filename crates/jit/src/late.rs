//! Atomics that a thread keeps while it runs blocks, and does later: see [`kernel_abi::late`].
//!
//! A thread has a table of lines of the cache, each of memory that has been seen to be there. Operations on them stay in the table: integers as one
//! operand, which is what all of them come to; numbers of floating point one by one, since each sum is rounded. They are done when a line has
//! as many as it holds, when another line or another operation wants its place, and when the thread has run its share of blocks; and all of them
//! about once in a millisecond, as some look on at how far a kernel has come.
//!
//! Several threads mostly add to the same lines at the same time. Who is at one says so, and others do something else first, if they can: what
//! is exchanged is atomic whatever they do, but an exchange that another thread comes before has to be made again.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use kernel_abi::late::{AtomicOp, Places, SETTLE, Type, combined, decode, sums};

/// Lines of the table, a power of two.
const LINES: usize = 64;
/// Bytes of a line.
const LINE: u64 = 64;
/// Numbers of floating point that each element of a line holds, and how many are enough to do them if nobody else is at the line.
const ROWS: usize = 32;
const ENOUGH: usize = ROWS / 2;
/// To note a line, and to do what is kept for another in its place, takes as long as so many operations on lines that are noted save.
const NOTED: u32 = 8;
/// Such savings that are missing, beyond which few lines are noted: whoever adds to each line once, or hardly more, has nothing to gain.
const DOUBT: u32 = 256 * NOTED;
/// Of those that are not noted then, one in so many is.
const TRIAL: u32 = 16;
/// Calls for scattered elements after which it is tried again to keep them.
const REST: u32 = 255;
/// The ticks of the processor's clock, two or three to a nanosecond, after which all that is kept is done.
const TICKS: u64 = 3_000_000;
/// Calls after which the clock is looked at, where so many took such a part of that: to look takes as long as several calls.
const CALLS: u32 = 63;
const PART: u64 = 1 << 8;
/// How often a thread looks whether a line is free before it goes there all the same.
const PATIENCE: u32 = 1 << 10;
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

/// No line begins at these: the address of one that is not there, and of none. A kernel may name any line, 0 as well.
const NOWHERE: u64 = 1;
const NONE: u64 = 2;

/// What is kept for one line.
#[derive(Clone)]
struct Line {
    /// Where it is; [`NONE`] for none, and [`NOWHERE`] for one that is not there.
    address: u64,
    /// The operation.
    kind: Kind,
    /// Rows with operands.
    rows: usize,
    /// The elements that a row has operands for.
    masks: [u16; ROWS],
    /// Room for rows: one for integers, all of them for numbers of floating point.
    operands: Vec<Row>,
}

const EMPTY: Line = Line {
    address: NONE,
    kind: Kind { op: AtomicOp::Add, ty: Type::I32 },
    rows: 0,
    masks: [0; ROWS],
    operands: Vec::new(),
};

/// What a thread keeps.
struct Table {
    lines: Vec<Line>,
    /// Lines that are noted.
    used: Vec<u8>,
    /// The fault of an operation that could not be done when its time came.
    fault: Option<guard::Fault>,
    /// How much more it has taken to note lines than was saved, and how often none was noted for that.
    doubt: u32,
    passed: u32,
    /// Calls for elements anywhere that nothing is kept of, as long as there is nothing else: they are in too many lines, or no other thread is at any.
    resting: u32,
    /// When nothing was left, and for how long something may be from then on, in ticks.
    settled: u64,
    patience: u64,
    /// When the clock was looked at, and the calls until it is again.
    looked: u64,
    calls: u32,
}

/// Whether a thread is at one of the lines that share this.
#[repr(align(64))]
struct Busy(AtomicBool);

static BUSY: [Busy; LINES] = [const { Busy(AtomicBool::new(false)) }; LINES];

/// A thread is at a line, until this is dropped.
struct Visit(&'static Busy);

impl Visit {
    /// Goes to the line of this index, if nobody is there.
    fn try_to(index: usize) -> Option<Visit> {
        let Busy(busy) = &BUSY[index];
        let free = !busy.load(Ordering::Relaxed) && !busy.swap(true, Ordering::Acquire);
        free.then(|| Visit(&BUSY[index]))
    }

    /// Likewise, after waiting a while if somebody is. Who is there may not be running, so the wait ends.
    fn to(index: usize) -> Visit {
        for _ in 0..PATIENCE {
            if let Some(visit) = Visit::try_to(index) {
                return visit;
            }
            std::hint::spin_loop();
        }
        Visit(&BUSY[index])
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.0.0.store(false, Ordering::Release);
    }
}

thread_local! {
    static TABLE: RefCell<Option<Table>> = const { RefCell::new(None) };
}

/// The processor's clock.
fn ticks() -> u64 {
    // SAFETY: every processor of this architecture has it.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// Looks at the thread's table. Not where there is none any more: a process that ends runs kernels in its last destructors, when the thread's
/// variables have gone.
fn with_table<R>(body: impl FnOnce(&mut Option<Table>) -> R) -> Option<R> {
    TABLE.try_with(|table| body(&mut table.borrow_mut())).ok()
}

/// See [`kernel_abi::late::LateFn`].
///
/// # Safety
/// `operands` points to an operand for each of 32 lanes, and so does `start` to addresses where the code says that elements are scattered.
pub unsafe extern "C" fn late(code: u32, start: u64, lanes: u32, operands: *const u8) -> u32 {
    if code == SETTLE {
        settle_before_more();
        return 0;
    }
    let Some((op, ty, places)) = decode(code) else { return lanes };
    let kind = Kind { op, ty };
    let keep = |table: &mut Option<Table>| {
        let table = match table {
            Some(table) => table,
            None => guard::unguarded(|| table.insert(Table::new())),
        };
        // SAFETY: the caller's contract.
        let left = unsafe {
            match ty.bits() {
                32 => table.keep(kind, places, start, lanes, operands.cast::<u32>()),
                _ => table.keep(kind, places, start, lanes, operands.cast::<u64>()),
            }
        };
        table.look_at_the_clock();
        left
    };
    with_table(keep).unwrap_or(lanes)
}

/// Does what this thread has kept, since an operation comes that must not come before.
fn settle_before_more() {
    with_table(|table| {
        if let Some(table) = table {
            guard::unguarded(|| table.settle());
        }
    });
}

/// Does what this thread has kept, at the end of its share of a kernel's blocks. The first fault on the way is answered: memory that went away
/// while the kernel ran.
pub fn settle() -> Result<(), guard::Fault> {
    let fault = with_table(|table| {
        let table = table.as_mut()?;
        table.settle();
        table.fault.take()
    });
    fault.flatten().map_or(Ok(()), Err)
}

/// Forgets what this thread has kept: the launch has failed.
pub fn forget() {
    with_table(|table| {
        let Some(table) = table else { return };
        for index in table.used.drain(..) {
            let line = &mut table.lines[usize::from(index)];
            (line.address, line.rows) = (NONE, 0);
        }
        table.fault = None;
    });
}

/// An operation on elements of a type.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Kind {
    op: AtomicOp,
    ty: Type,
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
        Table {
            lines: vec![EMPTY; LINES],
            used: Vec::with_capacity(LINES),
            fault: None,
            doubt: 0,
            passed: 0,
            resting: 0,
            settled: 0,
            patience: TICKS,
            looked: 0,
            calls: 0,
        }
    }

    /// Does all that is kept, if it is time.
    fn look_at_the_clock(&mut self) {
        if self.used.is_empty() {
            return;
        }
        if let Some(left) = self.calls.checked_sub(1) {
            self.calls = left;
            return;
        }
        let now = ticks();
        self.calls = if now.wrapping_sub(self.looked) < self.patience / PART { CALLS } else { 0 };
        self.looked = now;
        if now.wrapping_sub(self.settled) > self.patience {
            guard::unguarded(|| self.settle());
        }
    }

    /// Keeps what it can, and answers the lanes whose it does not.
    ///
    /// # Safety
    /// `operands` has one of each lane, and so has `start` an address where they are scattered.
    unsafe fn keep<E: Element>(
        &mut self,
        kind: Kind,
        places: Places,
        start: u64,
        lanes: u32,
        operands: *const E,
    ) -> u32 {
        // SAFETY: the caller's contract.
        unsafe {
            match places {
                Places::Adjacent => self.keep_adjacent(kind, start, lanes, operands),
                Places::One => self.keep_in_one_place(kind, start, lanes, operands),
                Places::Scattered => {
                    let addresses = std::ptr::with_exposed_provenance::<u64>(start as usize);
                    self.keep_scattered(kind, addresses, lanes, operands)
                }
            }
        }
    }

    /// # Safety
    /// `addresses` and `operands` have one of each lane.
    unsafe fn keep_scattered<E: Element>(
        &mut self,
        kind: Kind,
        addresses: *const u64,
        lanes: u32,
        operands: *const E,
    ) -> u32 {
        if self.rests() {
            return lanes;
        }
        // What keeping them saves is other threads' exchanges in between. An element that nobody else is at changes in less time than it takes to keep.
        if self.used.is_empty() && self.is_alone() {
            self.resting = REST;
            return lanes;
        }
        // SAFETY: the caller's contract.
        unsafe {
            match (kind.op, kind.ty) {
                (AtomicOp::Add, Type::I32) => {
                    self.each_scattered(kind, addresses, lanes, operands, |old, new| {
                        (old as u32).wrapping_add(new as u32).into()
                    })
                }
                (op, ty) => self
                    .each_scattered(kind, addresses, lanes, operands, |old, new| combined(op, ty, old, new)),
            }
        }
    }

    /// Whether nothing is kept for a while. Nothing that is kept must come before these.
    fn rests(&mut self) -> bool {
        let rests = self.resting > 0 && self.used.is_empty();
        self.resting -= u32::from(rests);
        rests
    }

    /// Rests, if it has taken too much to note lines.
    fn rest_in_doubt(&mut self) {
        if self.doubt > DOUBT {
            guard::unguarded(|| self.settle());
            (self.doubt, self.resting) = (DOUBT - TRIAL * NOTED, REST);
        }
    }

    /// Whether no other thread has asked this since this one did.
    fn is_alone(&self) -> bool {
        static LAST: AtomicUsize = AtomicUsize::new(0);
        let own = std::ptr::from_ref(self).addr();
        LAST.load(Ordering::Relaxed) == own || LAST.swap(own, Ordering::Relaxed) == own
    }

    /// # Safety
    /// As for `keep_scattered`.
    unsafe fn each_scattered<E: Element>(
        &mut self,
        kind: Kind,
        addresses: *const u64,
        lanes: u32,
        operands: *const E,
        combined: impl Fn(u64, u64) -> u64,
    ) -> u32 {
        let (mut todo, mut left, mut again) = (lanes, 0, 0);
        while todo != 0 {
            let lane = todo.trailing_zeros() as usize;
            todo &= todo - 1;
            // SAFETY: the caller's contract.
            let (address, operand) = unsafe { (addresses.add(lane).read(), operands.add(lane)) };
            let (start, element) = (address - address % LINE, (address % LINE) as usize / size_of::<E>());
            let line = &mut self.lines[(address / LINE) as usize % LINES];
            if (line.address, line.kind) == (start, kind) && (1..ENOUGH).contains(&line.rows) {
                again += 1;
                let is_taken = line.masks[line.rows - 1] >> element & 1 != 0;
                if is_taken && kind.is_rounded() {
                    line.masks[line.rows] = 0;
                    line.rows += 1;
                }
                let row = line.rows - 1;
                let own = line.operands[row].0.as_mut_ptr().cast::<E>().wrapping_add(element);
                line.masks[row] |= 1 << element;
                // SAFETY: an element of the line, and the lane's operand.
                unsafe {
                    let new = operand.read_unaligned();
                    own.write(match is_taken && !kind.is_rounded() {
                        true => E::of_word(combined(own.read().to_word(), new.to_word())),
                        false => new,
                    });
                }
                continue;
            }
            match self.line(kind, start) {
                None => left |= 1 << lane,
                // SAFETY: the lane's operand, as the caller promises.
                Some(line) => unsafe { line.add(kind, element, 1, operand) },
            }
        }
        self.doubt = self.doubt.saturating_sub(again);
        self.rest_in_doubt();
        left
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
        if self.rests() {
            return lanes;
        }
        let element = (place % LINE) as usize / size_of::<E>();
        let mut todo = lanes;
        while todo != 0 {
            let lane = todo.trailing_zeros();
            let Some(line) = self.line(kind, place - place % LINE) else { break };
            // SAFETY: the caller's contract.
            unsafe { line.add(kind, element, 1, operands.wrapping_add(lane as usize)) };
            todo &= todo - 1;
        }
        self.rest_in_doubt();
        todo
    }

    /// Where an operation on the line at `address` is kept. `None` if it is not, and nothing that is kept must come before it.
    fn line(&mut self, kind: Kind, address: u64) -> Option<&mut Line> {
        let index = (address / LINE) as usize % LINES;
        let line = &self.lines[index];
        if (line.address, line.kind) != (address, kind) {
            if self.doubt > DOUBT && line.address != address {
                self.passed = self.passed.wrapping_add(1);
                if !self.passed.is_multiple_of(TRIAL) {
                    return None;
                }
            }
            self.doubt = (self.doubt + NOTED).min(2 * DOUBT);
            guard::unguarded(|| self.note(index, kind, address))?;
            return Some(&mut self.lines[index]);
        }
        self.doubt = self.doubt.saturating_sub(1);
        if line.rows >= ENOUGH {
            let visit = if line.rows < ROWS { Visit::try_to(index) } else { Some(Visit::to(index)) };
            if let Some(visit) = visit {
                guard::unguarded(|| self.do_all(index, visit));
            }
        }
        Some(&mut self.lines[index])
    }

    /// Notes a line in the place of another, if memory is there.
    fn note(&mut self, index: usize, kind: Kind, address: u64) -> Option<()> {
        if self.lines[index].address == NONE {
            self.used.push(index as u8);
        } else {
            self.do_all(index, Visit::to(index));
        }
        // SAFETY: a kernel changes memory there, and this does not change it; if it cannot, that is answered.
        let there =
            unsafe { guard::load::<u64>(address).and_then(|old| guard::compare_exchange(address, old, old)) };
        let line = &mut self.lines[index];
        let room = if kind.is_rounded() { ROWS } else { 1 };
        if line.operands.len() < room {
            line.operands.resize(room, Row([0; 2 * WORDS]));
        }
        // Of memory that has gone nothing is kept.
        line.address = if there.is_ok() { address } else { NOWHERE };
        line.kind = kind;
        there.is_ok().then_some(())
    }

    /// Does all that is kept, where somebody else is at last.
    fn settle(&mut self) {
        if self.used.is_empty() {
            return;
        }
        let used = std::mem::take(&mut self.used);
        let mut later = [false; LINES];
        for index in used.iter().map(|index| usize::from(*index)) {
            match Visit::try_to(index) {
                Some(visit) => self.do_all(index, visit),
                None => later[index] = true,
            }
        }
        for index in (0..LINES).filter(|index| later[*index]) {
            self.do_all(index, Visit::to(index));
        }
        for index in &used {
            self.lines[usize::from(*index)].address = NONE;
        }
        self.used = used;
        self.used.clear();
        self.settled = ticks();
    }

    /// Does what is kept for a line.
    fn do_all(&mut self, index: usize, _visit: Visit) {
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
        // Each element's operands are in rows of the order that they came in.
        let is_taken = |line: &Line| line.masks[line.rows - 1] & (mask << first) as u16 != 0;
        if self.rows == 0 || kind.is_rounded() && is_taken(self) {
            self.masks[self.rows] = 0;
            self.rows += 1;
        }
        let row = self.rows - 1;
        let known = self.masks[row] >> first;
        self.masks[row] |= (mask << first) as u16;
        let count = (u32::BITS - mask.leading_zeros()) as usize;
        let own = self.operands[row].0.as_mut_ptr().cast::<E>().wrapping_add(first);
        if known & mask as u16 == 0 && mask.count_ones() as usize == count {
            // SAFETY: as many elements are in the line, and as many operands are there; bytes are always aligned.
            unsafe { own.cast::<u8>().copy_from_nonoverlapping(operands.cast(), count * size_of::<E>()) };
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
        if rows == 0 {
            return Ok(());
        }
        let all = self.masks[..rows].iter().fold(0, |all, mask| all | mask);
        let elements = LINE as usize / (self.kind.ty.bits() as usize / 8);
        let per_word = elements / WORDS;
        let of_word = |word: usize| all >> (word * per_word) & ((1 << per_word) - 1) != 0;
        let at = |word: usize| self.address + 8 * word as u64;
        let mut old = Row([0; 2 * WORDS]);
        for word in (0..WORDS).filter(|word| of_word(*word)) {
            // SAFETY: the kernel has accessed this line, as memory of the device; if it is that no more, the fault is answered.
            old.set_word(word, unsafe { guard::load::<u64>(at(word))? });
        }
        let mut new = self.done(rows, old);
        for word in (0..WORDS).filter(|word| of_word(*word)) {
            loop {
                // SAFETY: as above.
                let seen = unsafe { guard::compare_exchange(at(word), old.word(word), new.word(word))? };
                if seen == old.word(word) {
                    break;
                }
                // Another thread came between.
                old.set_word(word, seen);
                new.set_word(word, self.done(rows, old).word(word));
            }
        }
        Ok(())
    }

    /// What the kept operations make of a line.
    fn done(&self, rows: usize, mut line: Row) -> Row {
        let Kind { op, ty } = self.kind;
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
mod tests;
