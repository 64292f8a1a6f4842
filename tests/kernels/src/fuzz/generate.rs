//! Random kernels.

use super::Random;
use super::atomics::Atomics;
use super::copies;
use super::images::{self, Images};
use super::matrices::{self, Matrices};
use super::nested::Nested;
use super::patterns::{self, Around};
use super::program::{
    Function, LOCAL_WORDS, Look, PLACES_OF_LOOKS, Program, SHARED_AT, SHARED_OPERATIONS, Statement,
};
use super::table::{Table, any_register};
use super::tensors::Tensors;
use super::walk;
use crate::machine::Grid;

/// Blocks of every layout that code is specialised for, and odd ones.
const BLOCKS: [[u32; 3]; 24] = [
    [32, 1, 1],
    [64, 1, 1],
    [40, 1, 1],
    [7, 1, 1],
    [16, 4, 1],
    [8, 3, 2],
    [5, 7, 1],
    [32, 2, 1],
    [4, 4, 4],
    [128, 1, 1],
    [32, 4, 1],
    [1, 1, 1],
    [33, 1, 1],
    [96, 1, 1],
    [100, 1, 1],
    [48, 2, 1],
    [24, 4, 1],
    [1, 64, 1],
    [2, 2, 32],
    [12, 8, 1],
    [16, 8, 1],
    [64, 2, 1],
    [3, 11, 1],
    [8, 8, 2],
];

/// What may be done where a statement stands.
#[derive(Clone, Copy)]
struct Place {
    /// How deep it is nested.
    depth: usize,
    /// All threads of the block come here together.
    together: bool,
    /// A mask says which lanes come here.
    masked: bool,
    /// In a function: there is no place of the thread in its block.
    function: bool,
    /// The first function that may be called.
    callable: usize,
}

/// What instructions are drawn from.
#[derive(Default)]
pub struct Sources {
    table: Table,
    atomics: Atomics,
    matrices: Matrices,
    tensors: Tensors,
}

/// What there is more of in a kernel than in others.
enum Subject {
    Atomics,
    Copies,
    Groups,
    Images(Images),
    Matrices,
    Patterns,
    Tensors,
}

struct Generator<'a> {
    random: Random,
    sources: &'a mut Sources,
    subject: Option<Subject>,
    functions: usize,
    grid: Grid,
    /// Only what warps may do as a gang.
    plain: bool,
    /// No loops that threads leave one by one: after such no barrier is one of all lanes, and nothing a gang.
    steady: bool,
    /// Statements that may still be made.
    budget: usize,
}

/// The kernel of a number.
pub fn program(seed: u64, sources: &mut Sources) -> Program {
    let mut random = Random::new(seed);
    let about = random.below(12);
    // Most of these instructions are not for gangs, and matrices are for whole warps.
    let plain = random.chance(match about {
        2..7 => 10,
        9.. => 85,
        _ => 45,
    });
    let functions = if plain { 0 } else { random.below(3) };
    let budget = 6 + random.below(34);
    let free = plain && random.chance(35);
    let mut count = |most| 1 + random.below(most) as u32;
    let grid = if free { [count(3), count(3), count(2)] } else { [count(3), 1, 1] };
    let mut block = *random.pick(&BLOCKS);
    // One warp is no gang.
    while plain && !free && block.iter().product::<u32>() <= 32 && random.chance(80) {
        block = *random.pick(&BLOCKS);
    }
    let whole_warps = (3..5).contains(&about) || about >= 9 && random.chance(70);
    while whole_warps && !block.iter().product::<u32>().is_multiple_of(32) {
        block = *random.pick(&BLOCKS);
    }
    let grid = Grid { grid, block, dynamic_shared: 0, cluster: None };
    let steady = plain && random.chance(if about >= 9 { 85 } else { 60 });
    let mut given = Vec::new();
    let subject = match about {
        0 => Some(Subject::Groups),
        1 => Some(Subject::Atomics),
        2 => Some(Subject::Copies),
        3 | 4 => Some(Subject::Matrices),
        5 => {
            let (images, used) = images::images(&mut random, grid);
            given = images;
            Some(Subject::Images(used))
        }
        6 => Some(Subject::Tensors),
        9.. => Some(Subject::Patterns),
        _ => None,
    };
    // Smaller ones, of which more run.
    let budget = if subject.is_some() { 5 + budget / 3 } else { budget };
    let mut generator = Generator { random, sources, subject, functions, grid, plain, steady, budget };
    let place = Place { depth: 0, together: !free, masked: !plain, function: false, callable: 0 };
    let count = 4 + generator.random.below(10);
    let body = generator.statements(count, place);
    let tensors = matches!(generator.subject, Some(Subject::Tensors)) && !plain;
    let functions: Vec<Function> = (0..functions)
        .map(|index| {
            generator.budget += 8;
            let place =
                Place { depth: 1, together: false, masked: true, function: true, callable: index + 1 };
            generator.statements(4, place)
        })
        .collect();
    let wants_product = matches!(generator.subject, Some(Subject::Matrices))
        && !plain
        && grid.block.iter().product::<u32>() == 128
        && generator.random.chance(50);
    let mut program = Program { seed, grid, plain, free, images: given, tensors, functions, body };
    // PTX leaves open what registers hold of lanes that have left: what they did, where warps stay together.
    if wants_product && stays_in_step(&program) {
        program.body.push(Statement::Plain(matrices::of_warpgroup(&mut generator.random, true)));
    }
    program
}

/// Whether the lanes of a warp stay together: no thread waits for another, in a loop or in another branch, and control enters loops in one place
/// each.
fn stays_in_step(program: &Program) -> bool {
    fn stay(statements: &[Statement]) -> bool {
        statements.iter().all(|statement| match statement {
            Statement::Maze { .. } | Statement::Meet { .. } | Statement::Lock { .. } => false,
            Statement::Exchange { in_memory, .. } => !in_memory,
            other => other.lists().into_iter().all(|inner| stay(inner)),
        })
    }
    let text = program.text();
    let waits = [".test_wait", ".try_wait"].iter().any(|wait| text.contains(wait));
    !waits && program.functions.iter().chain([&program.body]).all(|list| stay(list))
}

impl Generator<'_> {
    fn statements(&mut self, most: usize, place: Place) -> Vec<Statement> {
        let count = 1 + self.random.below(most);
        let mut all = Vec::new();
        for _ in 0..count {
            if self.budget == 0 {
                break;
            }
            self.budget -= 1;
            all.push(self.statement(place));
        }
        all
    }

    fn statement(&mut self, place: Place) -> Statement {
        let inner = Place { depth: place.depth + 1, together: false, ..place };
        let unmasked = Place { masked: false, ..inner };
        let may_nest = place.depth < 4;
        let choice = self.random.below(100);
        if self.plain {
            match choice {
                60..75 if place.together && may_nest => return self.tile(place),
                45..50 | 62..74 | 96..100 => {
                    return Statement::Plain(self.sources.table.instruction(&mut self.random));
                }
                82..86 | 88..94 if self.steady => {
                    return Statement::Plain(self.sources.table.instruction(&mut self.random));
                }
                _ => {}
            }
        }
        if self.subject.is_some()
            && self.random.chance(50)
            && let Some(text) = self.of_subject(place)
        {
            return Statement::Plain(text);
        }
        if !place.function && self.random.chance(if self.plain { 25 } else { 12 }) {
            return self.walk(place);
        }
        if !place.function && self.random.chance(if self.plain { 15 } else { 8 }) {
            let around = Around { grid: self.grid, steady: self.steady, together: place.together };
            return Statement::Plain(patterns::draw(&mut self.random, around));
        }
        match choice {
            0..43 => Statement::Plain(self.sources.table.instruction(&mut self.random)),
            43..45 => Statement::Plain(self.carry()),
            45..50 => {
                let text = match self.random.below(4) {
                    0 => self.access(place),
                    1 => self.combine(place),
                    _ => self.sources.table.instruction(&mut self.random),
                };
                match text.rsplit_once("\n\t") {
                    None => Statement::Guarded(self.condition(), text),
                    Some((first, last)) => {
                        Statement::Plain(format!("{first}\n\t@{} {last}", self.condition()))
                    }
                }
            }
            50..62 => Statement::Plain(self.access(place)),
            62..66 => Statement::Plain(self.combine(place)),
            66..71 if place.masked => Statement::Plain(self.among_lanes()),
            71..73 if place.masked => {
                // The same among those for which a predicate holds.
                let (condition, text) = (self.condition(), self.among_lanes().replace("{m}", "%s2"));
                Statement::Plain(format!(
                    "vote.sync.ballot.b32 %s2, {condition}, {{m}};\n\t@{condition} {text}"
                ))
            }
            73 if place.masked && self.random.chance(50) => {
                Statement::Meet { condition: self.condition(), sides: self.meeting() }
            }
            73 => Statement::Lock { word: any_register(&mut self.random, 32) },
            74..82 if may_nest => {
                let condition = self.condition();
                let then = self.statements(4, inner);
                let otherwise = if self.random.chance(60) { self.statements(4, inner) } else { Vec::new() };
                Statement::If { condition, then, otherwise }
            }
            82..86 if may_nest => {
                Statement::Loop { count: any_register(&mut self.random, 32), body: self.statements(4, inner) }
            }
            86..88 if may_nest => {
                let here = Place { depth: place.depth + 1, ..place };
                Statement::Repeat { count: 1 + self.random.below(3) as u32, body: self.statements(4, here) }
            }
            88..90 if may_nest => Statement::Until {
                count: any_register(&mut self.random, 32),
                leave: self.condition(),
                before: self.statements(3, unmasked),
                after: self.statements(3, unmasked),
            },
            90..92 if may_nest => {
                let bodies = (0..2 + self.random.below(3)).map(|_| self.statements(2, unmasked)).collect();
                Statement::Switch { index: any_register(&mut self.random, 32), bodies }
            }
            92..94 if may_nest => {
                let count = 2 + self.random.below(4);
                let piece = |this: &mut Self| {
                    let to = this.random.below(count + 1);
                    // A branch to itself or back, or forward past the end.
                    (this.statements(2, unmasked), any_register(&mut this.random, 1), to)
                };
                Statement::Maze { pieces: (0..count).map(|_| piece(self)).collect() }
            }
            94..96 if place.together => Statement::Exchange {
                word: any_register(&mut self.random, 32),
                result: any_register(&mut self.random, 32),
                distance: self.random.below(64) as u32,
                in_memory: !self.plain && self.random.chance(40),
            },
            96 if place.together => {
                let (result, pred) = (any_register(&mut self.random, 32), any_register(&mut self.random, 1));
                let condition = self.condition();
                Statement::Plain(match self.random.below(3) {
                    0 => format!("barrier.cta.red.popc.aligned.u32 {result}, 0, {condition};"),
                    1 => format!("barrier.cta.red.and.pred {pred}, 1, {condition};"),
                    _ => format!("barrier.cta.red.or.aligned.pred {pred}, 2, {condition};"),
                })
            }
            97..100 if place.masked && place.callable < self.functions => {
                let mut callable = || place.callable + self.random.below(self.functions - place.callable);
                let (index, other) = (callable(), callable());
                let words: [String; 3] = std::array::from_fn(|_| any_register(&mut self.random, 32));
                if self.random.chance(30) {
                    let condition = any_register(&mut self.random, 1);
                    return Statement::Plain(call_by_pointer([index, other], &condition, &words));
                }
                // The function's threads meet, so it must know which they are.
                Statement::Plain(format!(
                    "mov.b32 %s1, {{m}};\n\tcall ({}), f{index}, ({}, {}, %s1, own, in, common);",
                    words[0], words[1], words[2]
                ))
            }
            _ => Statement::Plain(self.sources.table.instruction(&mut self.random)),
        }
    }

    /// Something that the kernel is about; nothing if it is not for this place.
    fn of_subject(&mut self, place: Place) -> Option<String> {
        let guard = if self.random.chance(30) { format!("@{} ", self.condition()) } else { String::new() };
        let threads = self.grid.block.iter().product::<u32>();
        let r = &mut self.random;
        let has_shared = !self.plain && !place.function;
        let around = Around { grid: self.grid, steady: self.steady, together: place.together };
        match self.subject.as_ref()? {
            Subject::Images(images) => (!place.function).then(|| images.instruction(r, &guard)),
            Subject::Atomics => match r.chance(50) {
                true => self.sources.atomics.own(r, &guard, has_shared),
                false => Some(self.sources.atomics.histogram(r, &guard, has_shared)),
            },
            Subject::Copies | Subject::Tensors if !has_shared => None,
            Subject::Tensors => self.sources.tensors.copy(r, place.together, threads),
            Subject::Copies => Some(match r.below(3) {
                0 if place.together => copies::announced(r, threads),
                1 => copies::bulk_out(r),
                _ => copies::own(r),
            }),
            Subject::Patterns => (!place.function).then(|| patterns::draw(r, around)),
            Subject::Groups => place.masked.then(|| self.in_groups()),
            // All lanes of each warp are there.
            Subject::Matrices if !place.together || !threads.is_multiple_of(32) => None,
            Subject::Matrices if self.plain && !self.steady => None,
            Subject::Matrices if has_shared && threads == 128 && r.chance(50) => {
                Some(matrices::of_warpgroup(r, false))
            }
            Subject::Matrices => match has_shared && r.chance(40) {
                true => self.sources.matrices.in_memory(r),
                false => self.sources.matrices.product(r),
            },
        }
    }

    /// An operation of each group of lanes that have the same number, or among them all.
    fn in_groups(&mut self) -> String {
        let r = &mut self.random;
        let (word, value, wide) = (any_register(r, 32), any_register(r, 32), any_register(r, 64));
        let (pred, condition) = (any_register(r, 1), any_register(r, 1));
        let negated = *r.pick(&["", "!"]);
        match r.below(5) {
            0 => return format!("match.any.sync.b64 {word}, {wide}, {{m}};"),
            1 => return format!("match.all.sync.b64 {word}|{pred}, {wide}, {{m}};"),
            2 => return format!("elect.sync {word}|{pred}, {{m}};"),
            _ => {}
        }
        let groups = format!(
            "and.b32 %s3, {}, {};\n\tmatch.any.sync.b32 %s2, %s3, {{m}};\n\t",
            any_register(r, 32),
            r.pick(&[1, 3, 7, 16, 31])
        );
        groups
            + &match r.below(6) {
                0 => format!("vote.sync.ballot.b32 {word}, {negated}{condition}, %s2;"),
                1 => format!(
                    "vote.sync.{}.pred {pred}, {negated}{condition}, %s2;",
                    r.pick(&["any", "all", "uni"])
                ),
                2 => format!(
                    "redux.sync.{} {word}, {value}, %s2;",
                    r.pick(&["add.s32", "min.u32", "max.s32", "and.b32", "or.b32", "xor.b32"])
                ),
                3 => format!("match.any.sync.b32 {word}, {value}, %s2;"),
                4 => format!("match.all.sync.b32 {word}|{pred}, {value}, %s2;"),
                // From the first lane of the group.
                _ => format!(
                    "brev.b32 %s3, %s2;\n\tclz.b32 %s3, %s3;\n\tshfl.sync.idx.b32 {word}, {value}, %s3, 31, %s2;"
                ),
            }
    }

    /// Accesses of memory that all threads see, in the input, shared memory or the output; or the end of some threads.
    fn walk(&mut self, place: Place) -> Statement {
        let (r, grid, steady) = (&mut self.random, self.grid, self.steady);
        Statement::Plain(match r.below(10) {
            0..4 if place.together => walk::stage(r, grid, steady),
            4..7 => walk::column(r, grid),
            7 if self.plain && !steady && place.depth == 0 && r.chance(30) => {
                let (word, condition) = (any_register(r, 32), any_register(r, 1));
                format!("@{condition} st.global.u32 [own+{}], {word};\n\t@{condition} exit;", 8 * r.below(16))
            }
            _ => walk::read(r, grid, steady),
        })
    }

    fn condition(&mut self) -> String {
        let negated = if self.random.chance(30) { "!" } else { "" };
        format!("{negated}{}", any_register(&mut self.random, 1))
    }

    /// A tile in shared memory, as kernels have that multiply matrices.
    fn tile(&mut self, place: Place) -> Statement {
        let look = |r: &mut Random| Look {
            place: r.pick::<&str>(&PLACES_OF_LOOKS),
            times: 1 + r.below(9) as u32,
            wide: r.chance(25),
        };
        let looks = (0..1 + self.random.below(3)).map(|_| look(&mut self.random)).collect();
        let here = Place { depth: place.depth + 1, ..place };
        Statement::Tile {
            count: 1 + self.random.below(3) as u32,
            word: any_register(&mut self.random, 32),
            result: any_register(&mut self.random, 32),
            looks,
            body: self.statements(3, here),
        }
    }

    /// A load or store where nobody else writes.
    fn access(&mut self, place: Place) -> String {
        loop {
            let access = self.any_access(place);
            // A gang has no local memory.
            if !self.plain || !access.contains("local") {
                return access;
            }
        }
    }

    fn any_access(&mut self, place: Place) -> String {
        let r = &mut self.random;
        let (word, index) = (any_register(r, 32), any_register(r, 32));
        let (wide, half) = (any_register(r, 64), any_register(r, 16));
        let others: [String; 3] = std::array::from_fn(|_| any_register(r, 32));
        let at = |index: &str, bits: usize, scale: usize, base: &str| {
            format!(
                "and.b32 %s1, {index}, {};\n\tmul.wide.u32 %a1, %s1, {scale};\n\tadd.u64 %a1, %a1, {base};\n\t",
                (1 << bits) - 1
            )
        };
        let slot = 8 * r.below(16);
        match r.below(14) {
            0 => at(&index, 6, 4, "in") + &format!("ld.global.u32 {word}, [%a1];"),
            1 => at(&index, 5, 8, "in") + &format!("ld.global.nc.u64 {wide}, [%a1+16];"),
            2 => {
                let [a, b, c] = &others;
                let list = [word.as_str(), a, b, c];
                // A vector's registers are different ones.
                if list.iter().enumerate().any(|(i, one)| list[..i].contains(one)) {
                    return format!("ld.global.u32 {word}, [in+{slot}];");
                }
                at(&index, 4, 16, "in") + &format!("ld.global.v4.u32 {{{}}}, [%a1];", list.join(", "))
            }
            3 => at(&index, 8, 1, "in") + &format!("ld.global.s8 {word}, [%a1];"),
            4 => at(&index, 7, 2, "in") + &format!("ld.global.u16 {half}, [%a1+4];"),
            5 if !place.function => format!("add.u64 %a1, in, plane;\n\tld.global.u32 {word}, [%a1];"),
            6 => format!("st.global.u32 [own+{slot}], {word};"),
            7 => format!("st.global.u64 [own+{slot}], {wide};"),
            8 => format!("ld.global.u32 {word}, [own+{slot}];"),
            9 => at(&index, 4, 8, "own") + &format!("st.u32 [%a1+4], {word};"),
            10 => at(&index, 4, 8, "own") + &format!("ld.u64 {wide}, [%a1];"),
            11 if r.chance(50) => {
                // Bytes and halves of the array, by a generic address.
                let place = format!(
                    "and.b32 %s1, {index}, {};\n\tmov.u64 %a1, local;\n\tcvta.local.u64 %a1, %a1;\n\tcvt.u64.u32 %a2, %s1;\n\tadd.u64 %a1, %a1, %a2;\n\t",
                    4 * LOCAL_WORDS - 2
                );
                place
                    + &match r.below(4) {
                        0 => format!("st.u16 [%a1], {half};"),
                        1 => format!("ld.s16 {word}, [%a1];"),
                        2 => format!("st.u8 [%a1], {half};"),
                        _ => format!("ld.u8 {half}, [%a1];"),
                    }
            }
            11 | 12 => {
                let (bytes, most) = (4, LOCAL_WORDS - 1);
                let place = format!(
                    "and.b32 %s1, {index}, {most};\n\tmul.lo.u32 %s1, %s1, {bytes};\n\tmov.u32 %s2, local;\n\tadd.u32 %s1, %s1, %s2;\n\t"
                );
                if r.chance(50) {
                    place + &format!("st.local.u32 [%s1], {word};")
                } else {
                    place + &format!("ld.local.u32 {word}, [%s1];")
                }
            }
            _ => format!("ld.local.u32 {word}, [local+{}];", 4 * r.below(LOCAL_WORDS)),
        }
    }

    /// Something that the order of threads does not change: each shared word has one commutative operation. Or an atomic on the
    /// thread's own word.
    fn combine(&mut self, place: Place) -> String {
        let r = &mut self.random;
        let (word, wide) = (any_register(r, 32), any_register(r, 64));
        if r.chance(25) {
            let at = r.below(SHARED_OPERATIONS.len());
            let operation = SHARED_OPERATIONS[at];
            let value = if operation.ends_with("64") { &wide } else { &word };
            return format!("red.shared.{operation} [words+{}], {value};", SHARED_AT + 8 * at);
        }
        if !place.function && r.chance(15) {
            // The thread's own word, at which its neighbours look after a barrier.
            let operation = *r.pick(&["add.u32", "exch.b32", "and.b32", "max.s32", "inc.u32", "dec.u32"]);
            let (result, value) = (any_register(r, 32), any_register(r, 32));
            return if r.chance(30) {
                format!("atom.shared.cas.b32 {result}, [%s0], {word}, {value};")
            } else {
                format!("atom.shared.{operation} {result}, [%s0], {value};")
            };
        }
        const OPERATIONS: [&str; 8] =
            ["add.u32", "and.b32", "or.b32", "xor.b32", "min.s32", "max.u32", "add.u64", "max.s64"];
        let at = r.below(OPERATIONS.len());
        let operation = OPERATIONS[at];
        let value = if operation.ends_with("64") { &wide } else { &word };
        if r.chance(60) {
            return format!("red.global.{operation} [common+{}], {value};", 8 * at);
        }
        let result = any_register(r, if operation.ends_with("64") { 64 } else { 32 });
        match r.below(3) {
            0 => format!(
                "atom.global.cas.b32 {word}, [own+{}], {}, {word};",
                8 * r.below(16),
                any_register(r, 32)
            ),
            1 => format!("atom.global.exch.b64 {wide}, [own+{}], {};", 8 * r.below(16), any_register(r, 64)),
            _ => format!("atom.global.{operation} {result}, [own+{}], {value};", 8 * r.below(16)),
        }
    }

    /// A sum, difference or product of several words, whose carry goes from one instruction to the next.
    fn carry(&mut self) -> String {
        let r = &mut self.random;
        let [d, e, f, a, b, c]: [String; 6] = std::array::from_fn(|_| any_register(r, 32));
        match r.below(4) {
            0 => format!("add.cc.u32 {d}, {a}, {b};\n\taddc.cc.u32 {e}, {c}, {a};\n\taddc.u32 {f}, {b}, 0;"),
            1 => {
                format!("sub.cc.u32 {d}, {a}, {b};\n\tsubc.cc.s32 {e}, {c}, {a};\n\tsubc.u32 {f}, {b}, {c};")
            }
            2 => format!("mad.lo.cc.u32 {d}, {a}, {b}, {c};\n\tmadc.hi.u32 {e}, {a}, {b}, {c};"),
            _ => {
                let [wide, other]: [String; 2] = std::array::from_fn(|_| any_register(r, 64));
                format!("add.cc.u64 {wide}, {other}, {wide};\n\taddc.u64 {other}, {wide}, {other};")
            }
        }
    }

    /// One operation for the lanes of two branches, with operands of each branch.
    fn meeting(&mut self) -> [String; 2] {
        let r = &mut self.random;
        let (kind, reach) = (r.below(4), r.below(32));
        std::array::from_fn(|_| {
            let (word, value) = (any_register(r, 32), any_register(r, 32));
            match kind {
                0 => format!("vote.sync.ballot.b32 {word}, {}, {{m}};", any_register(r, 1)),
                1 => format!("redux.sync.add.u32 {word}, {value}, {{m}};"),
                2 => format!("match.any.sync.b32 {word}, {value}, {{m}};"),
                _ => format!("shfl.sync.bfly.b32 {word}, {value}, {reach}, 31, {{m}};"),
            }
        })
    }

    /// An operation among the lanes that come here.
    fn among_lanes(&mut self) -> String {
        let r = &mut self.random;
        let (word, value) = (any_register(r, 32), any_register(r, 32));
        let (pred, condition) = (any_register(r, 1), any_register(r, 1));
        match r.below(9) {
            0 => format!("vote.sync.ballot.b32 {word}, {condition}, {{m}};"),
            1 => format!("vote.sync.{}.pred {pred}, {condition}, {{m}};", r.pick(&["any", "all", "uni"])),
            2 => format!(
                "redux.sync.{} {word}, {value}, {{m}};",
                r.pick(&["add.u32", "min.s32", "max.u32", "and.b32", "or.b32", "xor.b32"])
            ),
            3 => format!("match.any.sync.b32 {word}, {value}, {{m}};"),
            4 => format!("match.all.sync.b32 {word}|{pred}, {value}, {{m}};"),
            5 => format!("shfl.sync.idx.b32 {word}|{pred}, {value}, {}, 31, {{m}};", r.below(32)),
            6 => format!("shfl.sync.idx.b32 {word}, {value}, {}, 31, {{m}};", any_register(r, 32)),
            7 => format!(
                "shfl.sync.{} {word}|{pred}, {value}, {}, {}, {{m}};",
                r.pick(&["up.b32", "down.b32", "bfly.b32"]),
                r.below(32),
                r.pick(&["0", "31", "0x181f", "0x1c03"])
            ),
            _ => "bar.warp.sync {m};".to_string(),
        }
    }
}

/// A call of one of two functions, by a pointer that a predicate chooses. The lanes that call the same meet in it.
fn call_by_pointer([one, other]: [usize; 2], condition: &str, words: &[String; 3]) -> String {
    let [result, x, y] = words;
    format!(
        "{{\n\tmov.u64 %a1, f{one};\n\tmov.u64 %a2, f{other};\n\tselp.b64 %a1, %a1, %a2, {condition};\n\t\
         match.any.sync.b64 %s1, %a1, {{m}};\n\t\
         KIND: .callprototype (.reg .b32 _) _ (.reg .b32 _, .reg .b32 _, .reg .b32 _, .reg .b64 _, .reg .b64 _, .reg .b64 _);\n\t\
         call ({result}), %a1, ({x}, {y}, %s1, own, in, common), KIND;\n\t}}"
    )
}
