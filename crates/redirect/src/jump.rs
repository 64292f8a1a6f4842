//! The bytes that lead one function to another.

use crate::image::{Function, Image};

/// `jmp [rip + 0]` and the address behind it: reaches everything.
const FAR: u64 = 14;
/// `jmp` by a signed 32-bit distance.
const NEAR: u64 = 5;
/// Compilers let functions begin at multiples of this, so nothing but padding lies between a function and the next one.
const FUNCTION_ALIGNMENT: u64 = 16;

/// A function that shall lead elsewhere.
#[derive(Clone, Copy, Debug)]
pub struct Request<'data> {
    /// The function, in the file.
    pub function: Function<'data>,
    /// Where to, in memory.
    pub target: u64,
}

/// Bytes to be written over code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch {
    /// Where, in the file.
    pub address: u64,
    /// What.
    pub bytes: Vec<u8>,
}

/// The bytes for all requests, sorted by address, or the reason why one of them cannot be met.
///
/// A jump goes over the beginning of its function. Where that is too short for one that reaches everything, a short jump
/// goes there, to a long one in the rest of a longer function of the requests: that code is dead. Nothing is written outside
/// functions of the requests and the padding behind them.
pub fn plan(image: &Image, mut requests: Vec<Request>, load_bias: u64) -> Result<Vec<Patch>, String> {
    requests.sort_by_key(|request| request.function.address);
    let mut patches = Vec::with_capacity(requests.len());
    let mut dead = Vec::new();
    let mut short = Vec::new();
    for (position, request) in requests.iter().enumerate() {
        let Function { name, address, size } = request.function;
        let name = String::from_utf8_lossy(name);
        let Some(code) = image.code(address, size) else {
            return Err(format!("{name} does not lie in the code"));
        };
        let end = address + code.len() as u64;
        if requests.get(position + 1).is_some_and(|next| next.function.address < end) {
            return Err(format!("{name} overlaps another function"));
        }
        if size >= FAR {
            patches.push(Patch { address, bytes: far(request.target).to_vec() });
            dead.push((address + FAR)..end);
        } else if size + padding(image, end) >= NEAR {
            short.push(request);
        } else {
            return Err(format!("{name} is too short for a jump"));
        }
    }
    for request in short {
        let Function { name, address, .. } = request.function;
        let room = dead.iter_mut().find_map(|room| {
            let distance = near_distance(address, room.start)?;
            (room.end - room.start >= FAR).then_some((room, distance))
        });
        let Some((room, distance)) = room else {
            return Err(format!("there is no room near {} for a jump", String::from_utf8_lossy(name)));
        };
        patches.push(Patch { address: room.start, bytes: far(request.target).to_vec() });
        room.start += FAR;
        patches.push(Patch { address, bytes: near(distance).to_vec() });
    }
    patches.sort_by_key(|patch| patch.address);
    // The loader's sum of both, which `memory::write` relies on.
    match patches.last().is_none_or(|last| load_bias.checked_add(last.address).is_some()) {
        true => Ok(patches),
        false => Err("the object lies beyond the end of memory".into()),
    }
}

/// How many bytes behind a function belong to nobody: padding up to the next multiple of the alignment or the next symbol.
fn padding(image: &Image, end: u64) -> u64 {
    let Some(aligned) = end.checked_next_multiple_of(FUNCTION_ALIGNMENT) else { return 0 };
    let limit = image.next_beginning(end.saturating_sub(1)).map_or(aligned, |next| next.min(aligned));
    let Some(bytes) = image.code(end, limit - end) else { return 0 };
    if is_padding(bytes) { bytes.len() as u64 } else { 0 }
}

/// Whether bytes are what compilers and assemblers fill gaps with: zeros, breakpoints, or instructions without effect.
fn is_padding(mut bytes: &[u8]) -> bool {
    const ZERO: u8 = 0;
    const BREAKPOINT: u8 = 0xCC;
    if bytes.iter().all(|&byte| byte == ZERO) || bytes.iter().all(|&byte| byte == BREAKPOINT) {
        return true;
    }
    while !bytes.is_empty() {
        let Some(length) = no_operation(bytes) else { return false };
        bytes = &bytes[length..];
    }
    true
}

/// The length of the instruction without effect at the beginning of some bytes, if there is one: any number of prefixes,
/// then `90` or `0F 1F` with an operand.
fn no_operation(bytes: &[u8]) -> Option<usize> {
    let prefixes = bytes.iter().take_while(|&&byte| byte == 0x66 || byte == 0x2E).count();
    let length = match &bytes[prefixes..] {
        [0x90, ..] => 1,
        // The operand's form, in the byte after the operation's code.
        [0x0F, 0x1F, 0x00, ..] => 3,
        [0x0F, 0x1F, 0x40, ..] => 4,
        [0x0F, 0x1F, 0x44, ..] => 5,
        [0x0F, 0x1F, 0x80, ..] => 7,
        [0x0F, 0x1F, 0x84, ..] => 8,
        _ => return None,
    };
    (prefixes + length <= bytes.len()).then_some(prefixes + length)
}

fn far(target: u64) -> [u8; FAR as usize] {
    let mut bytes = [0xFF, 0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    bytes[6..].copy_from_slice(&target.to_le_bytes());
    bytes
}

fn near(distance: i32) -> [u8; NEAR as usize] {
    let [a, b, c, d] = distance.to_le_bytes();
    [0xE9, a, b, c, d]
}

/// How far a near jump at one address has to go to another: counted from its end.
fn near_distance(from: u64, to: u64) -> Option<i32> {
    i32::try_from(i128::from(to) - i128::from(from) - i128::from(NEAR)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_are_what_the_processor_reads() {
        assert_eq!(far(0x1122_3344_5566_7788)[..6], [0xFF, 0x25, 0, 0, 0, 0]);
        assert_eq!(far(0x1122_3344_5566_7788)[6..], [0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11]);
        assert_eq!(near(-2), [0xE9, 0xFE, 0xFF, 0xFF, 0xFF]);
    }

    #[test]
    fn near_jumps_count_from_their_end_and_reach_two_gigabytes() {
        assert_eq!(near_distance(0x1000, 0x1005), Some(0));
        assert_eq!(near_distance(0x1000, 0xF00), Some(-0x105));
        assert_eq!(near_distance(0, 0x8000_0004), Some(i32::MAX));
        assert_eq!(near_distance(0, 0x8000_0005), None);
        assert_eq!(near_distance(u64::MAX, 0), None);
    }

    #[test]
    fn padding_is_nothing_that_could_be_a_function() {
        // What the GNU assembler writes for one to eleven bytes.
        let fillers: &[&[u8]] = &[
            &[0x90],
            &[0x66, 0x90],
            &[0x0F, 0x1F, 0x00],
            &[0x0F, 0x1F, 0x40, 0],
            &[0x0F, 0x1F, 0x44, 0, 0],
            &[0x66, 0x0F, 0x1F, 0x44, 0, 0],
            &[0x0F, 0x1F, 0x80, 0, 0, 0, 0],
            &[0x0F, 0x1F, 0x84, 0, 0, 0, 0, 0],
            &[0x66, 0x0F, 0x1F, 0x84, 0, 0, 0, 0, 0],
            &[0x66, 0x2E, 0x0F, 0x1F, 0x84, 0, 0, 0, 0, 0],
            &[0x66, 0x66, 0x2E, 0x0F, 0x1F, 0x84, 0, 0, 0, 0, 0],
        ];
        assert!(fillers.iter().all(|filler| is_padding(filler)));
        assert!(is_padding(&fillers.concat()) && is_padding(&[0; 13]) && is_padding(&[0xCC; 13]));
        assert!(!is_padding(&[0x90, 0xC3]), "a return");
        assert!(!is_padding(&[0x31, 0xC0]), "an instruction");
        assert!(!is_padding(&[0x0F, 0x1F, 0x44, 0]), "cut off");
        assert!(!is_padding(&[0x66]), "a prefix alone");
        assert!(!is_padding(&[0, 0xCC]), "a mixture");
    }
}
