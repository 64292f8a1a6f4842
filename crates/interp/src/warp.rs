//! Operations by which the threads of a warp exchange values.

use kernel_abi::WARP;
use simt_ir::{Op, ShuffleMode, Type, VoteMode, eval};

use crate::memory::BadAccess;

/// One thread that has come to a warp operation.
pub struct Member {
    /// Its lane.
    pub lane: u32,
    /// Its operands, with their types.
    pub args: Vec<(u64, Type)>,
}

/// The rest of the warp, for operations that take from it too.
pub trait Others {
    /// What the registers of the operands hold in a lane that is not there; nothing if there is no such lane.
    fn held(&self, lane: u32) -> Vec<u64>;

    /// Two or four bytes of the block's shared memory.
    fn load_shared(&self, address: u32, bytes: usize) -> Result<u64, BadAccess>;
}

/// The results for each member, in the order of `members`, of warp `warp`; at least one is there.
pub fn execute(
    op: Op,
    warp: u32,
    members: &[Member],
    others: &impl Others,
) -> Result<Vec<Vec<u64>>, BadAccess> {
    let present = members.iter().fold(0, |mask, member| mask | 1u32 << member.lane);
    let lanes_where = |holds: &dyn Fn(&Member) -> bool| {
        members.iter().filter(|m| holds(m)).fold(0, |mask, member| mask | 1u32 << member.lane)
    };
    Ok(match op {
        Op::Shuffle(mode) => members.iter().map(|member| shuffle(mode, member, members)).collect(),
        Op::Vote(mode) => {
            let votes = lanes_where(&|m| m.args[0].0 != 0);
            let result = match mode {
                VoteMode::All => (votes == present).into(),
                VoteMode::Any => (votes != 0).into(),
                VoteMode::Uni => (votes == present || votes == 0).into(),
                VoteMode::Ballot => votes.into(),
            };
            vec![vec![result]; members.len()]
        }
        Op::MatchAny => {
            let same = |value: u64| lanes_where(&|m| m.args[0].0 == value);
            members.iter().map(|m| vec![same(m.args[0].0).into()]).collect()
        }
        Op::MatchAll => {
            let first = members[0].args[0].0;
            let all = members.iter().all(|m| m.args[0].0 == first);
            vec![vec![if all { present.into() } else { 0 }, all.into()]; members.len()]
        }
        Op::Redux(op) => {
            let ty = members[0].args[0].1;
            let value = members[1..].iter().fold(members[0].args[0].0, |sum, member| {
                eval::eval(Op::Int(op), &[sum, member.args[0].0], &[ty, ty], ty)
                    .expect("integer operations are pure")
            });
            vec![vec![value]; members.len()]
        }
        Op::MatrixMultiply(op) => {
            let fragments = op.fragments();
            let mut operands = vec![[0; WARP as usize]; fragments];
            for member in members {
                for (register, (value, _)) in operands.iter_mut().zip(&member.args) {
                    register[member.lane as usize] = *value;
                }
            }
            // The lanes that are there name the same factors, as PTX wants it.
            let mut named = [0; 2];
            for (descriptor, (value, _)) in named.iter_mut().zip(&members[0].args[fragments..]) {
                *descriptor = *value;
            }
            for lane in (0..WARP).filter(|lane| present >> lane & 1 == 0) {
                let held = others.held(lane);
                for (number, register) in operands.iter_mut().enumerate() {
                    let loaded =
                        op.absent((warp, lane), number, named, &mut |a, b| others.load_shared(a, b))?;
                    register[lane as usize] = loaded.or(held.get(number).copied()).unwrap_or(0);
                }
            }
            let results = op.multiply(&operands);
            let of_lane = |lane: u32| results.iter().map(|register| register[lane as usize]).collect();
            members.iter().map(|member| of_lane(member.lane)).collect()
        }
        Op::FirstLane => vec![vec![members[0].args[0].0]; members.len()],
        Op::FewLanes(most) => {
            vec![vec![u64::from(present.count_ones() <= most.into())]; members.len()]
        }
        Op::ActiveMask => vec![vec![present.into()]; members.len()],
        Op::Elect => {
            let mask = members[0].args[0].0 as u32;
            let leader = (present & mask).trailing_zeros();
            members.iter().map(|m| vec![leader.into(), (m.lane == leader).into()]).collect()
        }
        _ => vec![Vec::new(); members.len()],
    })
}

/// Value and whether the source lane is in range. A source that does not take part gives zero.
fn shuffle(mode: ShuffleMode, member: &Member, members: &[Member]) -> Vec<u64> {
    let operand = |i: usize| member.args[i].0 as u32;
    let (lane, delta) = (member.lane, operand(1) & 31);
    let (clamp, segment) = (operand(2) & 31, operand(2) >> 8 & 31);
    let first = lane & segment;
    let bound = first | clamp & !segment & 31;
    let (source, in_range) = match mode {
        ShuffleMode::Up => (lane.wrapping_sub(delta), lane as i32 - delta as i32 >= bound as i32),
        ShuffleMode::Down => (lane + delta, lane + delta <= bound),
        ShuffleMode::Bfly => (lane ^ delta, lane ^ delta <= bound),
        ShuffleMode::Idx => (first | delta & !segment, first | delta & !segment <= bound),
    };
    let source = if in_range { source } else { lane };
    let named = member.args.get(3).is_none_or(|(mask, _)| mask >> source & 1 != 0);
    let value = members.iter().find(|m| named && m.lane == source).map_or(0, |m| m.args[0].0);
    vec![value, in_range.into()]
}
