//! Exchange and agreement among the lanes of a warp.

use simt_ir::{IntBinary, Op, ShuffleMode, Type, Value, VoteMode};

use super::{Form, form};
use crate::lower::expander::Expander;

pub(super) const FORMS: &[Form] = &[
    form("shfl.sync.mode{up,down,bfly,idx}.b32 d=b32|p?_=pred, a:b32, b:b32, c:b32, mask:b32", shfl)
        .effect()
        .since(6, 0, 30),
    form("shfl.mode{up,down,bfly,idx}.b32 d=b32|p?_=pred, a:b32, b:b32, c:b32", shfl)
        .effect()
        .since(3, 0, 30)
        .until(6, 3, 70),
    form("vote.sync.mode{all,any,uni}.pred d=pred, a:pred!, mask:b32", |x| vote(x, true))
        .effect()
        .since(6, 0, 30),
    form("vote.sync.ballot.b32 d=b32, a:pred!, mask:b32", |x| vote(x, true)).effect().since(6, 0, 30),
    // Not the manual's order, but the assembler takes it and CUB writes it.
    form("vote.mode{all,any,uni}.sync.pred d=pred, a:pred!, mask:b32", |x| vote(x, true))
        .effect()
        .since(6, 0, 30),
    form("vote.ballot.sync.b32 d=b32, a:pred!, mask:b32", |x| vote(x, true)).effect().since(6, 0, 30),
    form("vote.mode{all,any,uni}.pred d=pred, a:pred!", |x| vote(x, false))
        .effect()
        .since(1, 2, 12)
        .until(6, 3, 70),
    form("vote.ballot.b32 d=b32, a:pred!", |x| vote(x, false)).effect().since(2, 0, 20).until(6, 3, 70),
    form("match.any.sync.T{b32,b64} d=b32, a:T, mask:b32", |x| {
        let (a, mask) = (x.src("a"), x.src("mask"));
        let d = x.op_ty(Op::MatchAny, &[a, mask], Type::I32);
        x.set("d", d);
    })
    .effect()
    .since(6, 0, 70),
    form("match.all.sync.T{b32,b64} d_=b32|p?_=pred, a:T, mask:b32", |x| {
        let (a, mask) = (x.src("a"), x.src("mask"));
        let results = x.body.b.insts(Op::MatchAll, &[a, mask], &[Type::I32, Type::Pred]);
        set_pair(x, &results);
    })
    .effect()
    .since(6, 0, 70),
    form("redux.sync.op{add,min,max}.T{u32,s32} d=T, a:T, mask:b32", redux).effect().since(7, 0, 80),
    form("redux.sync.op{and,or,xor}.T{b32} d=T, a:T, mask:b32", redux).effect().since(7, 0, 80),
    form("activemask.b32 d=b32", |x| {
        let d = x.op_ty(Op::ActiveMask, &[], Type::I32);
        x.set("d", d);
    })
    .effect()
    .since(6, 2, 30),
    form("elect.sync d_=b32|p=pred, mask:b32", |x| {
        let mask = x.src("mask");
        let results = x.body.b.insts(Op::Elect, &[mask], &[Type::I32, Type::Pred]);
        set_pair(x, &results);
    })
    .effect()
    .since(8, 0, 90),
];

fn set_pair(x: &mut Expander<'_, '_>, results: &[Value]) {
    x.set("d", results[0]);
    x.set("p", results[1]);
}

fn shfl(x: &mut Expander<'_, '_>) {
    let mode = match x.word("mode") {
        "up" => ShuffleMode::Up,
        "down" => ShuffleMode::Down,
        "bfly" => ShuffleMode::Bfly,
        _ => ShuffleMode::Idx,
    };
    let mut args = vec![x.src("a"), x.src("b"), x.src("c")];
    if x.has("sync") {
        args.push(x.src("mask"));
    }
    let results = x.body.b.insts(Op::Shuffle(mode), &args, &[Type::I32, Type::Pred]);
    set_pair(x, &results);
}

fn vote(x: &mut Expander<'_, '_>, sync: bool) {
    let (mode, result) = match x.word("mode") {
        "all" => (VoteMode::All, Type::Pred),
        "any" => (VoteMode::Any, Type::Pred),
        "uni" => (VoteMode::Uni, Type::Pred),
        _ => (VoteMode::Ballot, Type::I32),
    };
    let mut args = vec![x.src("a")];
    if sync {
        args.push(x.src("mask"));
    }
    let d = x.op_ty(Op::Vote(mode), &args, result);
    x.set("d", d);
}

fn redux(x: &mut Expander<'_, '_>) {
    let signed = x.ty("T").is_signed();
    let op = match (x.word("op"), signed) {
        ("add", _) => IntBinary::Add,
        ("and", _) => IntBinary::And,
        ("or", _) => IntBinary::Or,
        ("xor", _) => IntBinary::Xor,
        ("min", true) => IntBinary::MinS,
        ("min", false) => IntBinary::MinU,
        (_, true) => IntBinary::MaxS,
        (_, false) => IntBinary::MaxU,
    };
    let (a, mask) = (x.src("a"), x.src("mask"));
    let d = x.op_ty(Op::Redux(op), &[a, mask], Type::I32);
    x.set("d", d);
}
