//! What values are, as expressions of a loop's parameters: equal ones have one number.

use std::collections::{BTreeMap, HashMap};

use simt_ir::{Convert, Def, Function, InstData, IntBinary, IntUnary, Op, Shift, Space, Type, Value};

/// The number of an expression.
pub type Id = usize;

/// How far definitions outside are followed.
const DEPTH: u32 = 32;

#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Node {
    /// A parameter of the loop, at the beginning.
    Param(usize),
    /// What is computed outside, and not followed further.
    Outside(Value),
    /// What the so-manieth access found.
    Loaded(usize),
    /// A sum, with factors, of so many bits.
    Sum(u32, BTreeMap<Id, u64>, u64),
    /// Anything else.
    Other(String, Vec<Id>),
}

/// A number that goes up by the same in each iteration, and is known not to wrap in so many.
#[derive(Clone, Copy)]
struct Counted {
    number: Id,
    step: Id,
    times: u64,
}

/// The expressions of a function.
pub struct Exprs<'a> {
    func: &'a Function,
    nodes: Vec<Node>,
    ids: HashMap<Node, Id>,
    outside: HashMap<Value, Id>,
    counted: Option<Counted>,
    /// Whether it is taken for granted that the counted number is not negative.
    pub is_unsigned: bool,
}

impl<'a> Exprs<'a> {
    pub fn new(func: &'a Function) -> Exprs<'a> {
        Exprs {
            func,
            nodes: Vec::new(),
            ids: HashMap::new(),
            outside: HashMap::new(),
            counted: None,
            is_unsigned: false,
        }
    }

    fn id(&mut self, node: Node) -> Id {
        if let Some(known) = self.ids.get(&node) {
            return *known;
        }
        let id = self.nodes.len();
        self.nodes.push(node.clone());
        self.ids.insert(node, id);
        id
    }

    pub fn param(&mut self, at: usize) -> Id {
        self.id(Node::Param(at))
    }

    pub fn loaded(&mut self, at: usize) -> Id {
        self.id(Node::Loaded(at))
    }

    /// A number goes up by `step`, an expression of things outside, in each iteration, and does not wrap in so many.
    pub fn count(&mut self, number: Id, step: Id, times: u64) {
        self.counted = Some(Counted { number, step, times });
    }

    /// The terms of a value of so many bits, and a constant.
    fn terms(&self, id: Id, bits: u32) -> (BTreeMap<Id, u64>, u64) {
        match &self.nodes[id] {
            Node::Sum(own, terms, constant) if *own == bits => (terms.clone(), *constant),
            _ => (BTreeMap::from([(id, 1)]), 0),
        }
    }

    fn sum(&mut self, bits: u32, parts: &[(Id, u64)], constant: u64) -> Id {
        let mask = u64::MAX >> (64 - bits);
        let (mut sum, mut all) = (BTreeMap::new(), constant);
        for (part, factor) in parts {
            let (terms, constant) = self.terms(*part, bits);
            all = all.wrapping_add(constant.wrapping_mul(*factor));
            for (term, own) in terms {
                let entry: &mut u64 = sum.entry(term).or_default();
                *entry = entry.wrapping_add(own.wrapping_mul(*factor)) & mask;
            }
        }
        sum.retain(|_, factor| *factor != 0);
        match sum.iter().next() {
            Some((term, 1)) if sum.len() == 1 && all & mask == 0 => *term,
            _ => self.id(Node::Sum(bits, sum, all & mask)),
        }
    }

    /// A value and so many bytes, or what else is counted.
    pub fn plus(&mut self, id: Id, constant: u64) -> Id {
        self.sum(64, &[(id, 1)], constant)
    }

    /// A number of 32 bits less so many.
    pub fn less(&mut self, id: Id, constant: u64) -> Id {
        self.sum(32, &[(id, 1)], constant.wrapping_neg())
    }

    /// The distance between two values of 64 bits, if it is known.
    pub fn distance(&self, from: Id, to: Id) -> Option<u64> {
        let ((one, first), (other, second)) = (self.terms(from, 64), self.terms(to, 64));
        (one == other).then(|| second.wrapping_sub(first))
    }

    /// A value of 64 bits that is one term and a constant.
    pub fn term_and_constant(&self, id: Id) -> Option<(Id, u64)> {
        let (terms, constant) = self.terms(id, 64);
        match terms.iter().next() {
            Some((term, 1)) if terms.len() == 1 => Some((*term, constant)),
            _ => None,
        }
    }

    /// What a value outside of the loop is.
    pub fn outside(&mut self, value: Value) -> Id {
        self.followed(value, DEPTH)
    }

    fn followed(&mut self, value: Value, depth: u32) -> Id {
        if let Some(known) = self.outside.get(&value) {
            return *known;
        }
        let func = self.func;
        let id = match func.def(value) {
            Def::Result(inst, _) if depth > 0 && func.inst(inst).results.len() == 1 => {
                let data = func.inst(inst);
                let is_plain = match data.op {
                    Op::Load(access) => access.invariant && access.space == Space::Param,
                    // What one lane has may be another's elsewhere.
                    Op::AnyLane | Op::Unanimous => false,
                    op => op.is_pure(),
                };
                if is_plain {
                    let args: Vec<Id> = data.args.iter().map(|arg| self.followed(*arg, depth - 1)).collect();
                    self.computed(data, &args)
                } else {
                    self.id(Node::Outside(value))
                }
            }
            _ => self.id(Node::Outside(value)),
        };
        self.outside.insert(value, id);
        id
    }

    /// What an instruction computes of expressions.
    pub fn computed(&mut self, data: &InstData, args: &[Id]) -> Id {
        let func = self.func;
        let ty = func.ty(data.results[0]);
        let bits = ty.bits();
        let is_int = matches!(ty, Type::I32 | Type::I64);
        let constant = |at: usize| func.constant(data.args[at]);
        match data.op {
            Op::Const(number) if is_int => self.sum(bits, &[], number),
            Op::Int(IntBinary::Add) if is_int => self.sum(bits, &[(args[0], 1), (args[1], 1)], 0),
            Op::Int(IntBinary::Sub) if is_int => self.sum(bits, &[(args[0], 1), (args[1], u64::MAX)], 0),
            Op::IntUnary(IntUnary::Not) if is_int => self.sum(bits, &[(args[0], u64::MAX)], u64::MAX),
            Op::Int(IntBinary::Mul) if is_int && constant(1).is_some() => {
                self.sum(bits, &[(args[0], constant(1).unwrap_or_default())], 0)
            }
            Op::Int(IntBinary::Mul) if is_int && constant(0).is_some() => {
                self.sum(bits, &[(args[1], constant(0).unwrap_or_default())], 0)
            }
            Op::Shift(Shift::Left) if is_int && constant(1).is_some_and(|by| by < bits.into()) => {
                self.sum(bits, &[(args[0], 1 << constant(1).unwrap_or_default())], 0)
            }
            Op::Convert(convert @ (Convert::SExt | Convert::ZExt))
                if ty == Type::I64 && func.ty(data.args[0]) == Type::I32 =>
            {
                self.widened(convert, args[0])
            }
            op => self.id(Node::Other(format!("{op:?} {ty:?}"), args.to_vec())),
        }
    }

    fn widened(&mut self, convert: Convert, id: Id) -> Id {
        let (terms, constant) = self.terms(id, 32);
        if terms.is_empty() {
            let wide = if convert == Convert::SExt { constant as u32 as i32 as i64 as u64 } else { constant };
            return self.sum(64, &[], wide);
        }
        // The counted number some iterations on is its wide form and as many wide steps.
        if let Some(Counted { number, step, times: most }) = self.counted
            && terms.contains_key(&number)
            && let Some(times) =
                (0..=most).find(|times| self.sum(32, &[(number, 1), (step, *times)], 0) == id)
        {
            self.is_unsigned |= convert == Convert::ZExt;
            let wide = [number, step].map(|part| self.wide_atom(part));
            return self.sum(64, &[(wide[0], 1), (wide[1], times)], 0);
        }
        match convert {
            Convert::SExt => self.wide_atom(id),
            _ => self.id(Node::Other("zext".into(), vec![id])),
        }
    }

    fn wide_atom(&mut self, id: Id) -> Id {
        let (terms, constant) = self.terms(id, 32);
        if terms.is_empty() {
            return self.sum(64, &[], constant as u32 as i32 as i64 as u64);
        }
        self.id(Node::Other("sext".into(), vec![id]))
    }

    /// A number of 64 bits that begins with `own` and goes up by `step`, told by the counted number, which begins with `begin`, if it goes along with that.
    pub fn along(&mut self, own: Id, step: Id, begin: Id) -> Option<Id> {
        let Counted { number, step: counted, .. } = self.counted?;
        let wide = self.wide_atom(counted);
        let ((by, rest), (terms, constant)) = (self.terms(step, 64), self.terms(wide, 64));
        let factor = match by.iter().next() {
            None if terms.is_empty() && constant != 0 && rest.is_multiple_of(constant) => rest / constant,
            Some((term, factor)) if by.len() == 1 && rest == 0 && *term == wide => *factor,
            _ => return None,
        };
        let (signed, unsigned) = (self.wide_atom(begin), self.id(Node::Other("zext".into(), vec![begin])));
        let (terms, _) = self.terms(own, 64);
        let begin = [signed, unsigned].into_iter().find(|atom| terms.get(atom) == Some(&factor))?;
        self.is_unsigned |= begin == unsigned;
        let number = self.wide_atom(number);
        Some(self.sum(64, &[(own, 1), (begin, factor.wrapping_neg()), (number, factor)], 0))
    }
}
