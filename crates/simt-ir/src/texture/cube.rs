//! The faces of a cube: which one a direction meets, and which texels lie beyond its edges.

use crate::mufu::eval;
use crate::{Mufu, Type};

/// The face of a cube that a direction meets, and where on it, from -1 to 1.
pub(super) fn face(direction: [f32; 3]) -> (u32, [f64; 2]) {
    let major = direction.into_iter().fold(0f32, |most, x| most.max(x.abs()));
    let reciprocal = f32::from_bits(eval(Mufu::Rcp, Type::F32, major.to_bits().into()) as u32);
    // The hardware divides first: nothing is left of numbers beside those whose reciprocal is less than every normal number, nor of
    // these, and infinity is no number then.
    let [x, y, z] = direction.map(|x| if reciprocal == 0.0 { x * reciprocal } else { x });
    // What is no number is the least.
    let [ax, ay, az] = [x, y, z].map(|x| if x.is_nan() { -1.0 } else { x.abs() });
    let (face, s, t) = if az >= ax && az >= ay {
        if z < 0.0 { (5, -x, -y) } else { (4, x, -y) }
    } else if ay >= ax {
        if y >= 0.0 { (2, x, z) } else { (3, x, -z) }
    } else if x >= 0.0 {
        (0, -z, -y)
    } else {
        (1, z, -y)
    };
    let place = |s: f32| {
        let place = s * reciprocal;
        // What is less than every normal number is none, and so is what is no number.
        if place.abs() >= f32::MIN_POSITIVE { f64::from(place) } else { 0.0 }
    };
    (face, [place(s), place(t)])
}

/// The weights of four texels of which this one lies beyond a corner, where there is none: the other three share what it had.
pub(super) fn without(corner: usize, mut weights: [u32; 4]) -> [u32; 4] {
    let lost = std::mem::take(&mut weights[corner]);
    let third = (lost + 1) / 3;
    for (other, weight) in weights.iter_mut().enumerate() {
        match other {
            _ if other == corner => {}
            // The texel opposite has the rest.
            _ if other == 3 - corner => *weight += lost - 2 * third,
            _ => *weight += third,
        }
    }
    weights
}

/// A texel of a cube.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Texel {
    pub(super) face: u32,
    pub(super) x: u64,
    pub(super) y: u64,
}

/// The texel at a place that may lie just beyond an edge of its face, and is one of another face then; `None` beyond a corner,
/// where there is none.
pub(super) fn across(face: u32, x: i64, y: i64, extent: u32) -> Option<Texel> {
    // The cube reaches from -edge to edge; middles of texels lie at every second place between.
    let edge = i64::from(extent);
    let middle = |at: i64| 2 * at + 1 - edge;
    let (s, t) = (middle(x), middle(y));
    // As far as a place lies beyond the edge, it lies behind it on the other face.
    let beyond = |at: i64| (at.abs() - edge).max(0);
    let (over_s, over_t) = (beyond(s), beyond(t));
    if over_s > 0 && over_t > 0 {
        return None;
    }
    let depth = edge - over_s - over_t;
    let [s, t] = [s, t].map(|at| at.clamp(-edge, edge));
    let [x, y, z] = match face {
        0 => [depth, -t, -s],
        1 => [-depth, -t, s],
        2 => [s, depth, t],
        3 => [s, -depth, -t],
        4 => [s, -t, depth],
        _ => [-s, -t, -depth],
    };
    // No middle of a texel lies on an edge: one coordinate alone is there.
    let (face, s, t) = match () {
        () if x == edge => (0, -z, -y),
        () if x == -edge => (1, z, -y),
        () if y == edge => (2, x, z),
        () if y == -edge => (3, x, -z),
        () if z == edge => (4, x, -y),
        () => (5, -x, -y),
    };
    let texel = |at: i64| ((at + edge - 1) / 2) as u64;
    Some(Texel { face, x: texel(s), y: texel(t) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_direction_meets_a_face() {
        assert_eq!(face([2.0, -1.0, 0.5]), (0, [-0.25, 0.5]));
        assert_eq!(face([f32::INFINITY, 1.0, 3.0]), (4, [0.0; 2]));
        assert_eq!(face([f32::NAN, -1.0, 0.5]), (3, [0.0, -0.5]));
        assert_eq!(face([f32::NEG_INFINITY; 3]).1, [0.0; 2]);
    }

    #[test]
    fn what_lies_beyond_a_corner_is_shared() {
        assert_eq!(without(1, [28, 7, 180, 41]), [30, 0, 183, 43]);
        assert_eq!(without(2, [73, 150, 11, 22]), [77, 153, 0, 26]);
    }

    #[test]
    fn a_texel_inside_is_itself() {
        for face in 0..6 {
            assert_eq!(across(face, 2, 1, 3), Some(Texel { face, x: 2, y: 1 }));
        }
        assert_eq!(across(0, -1, 3, 3), None);
    }

    #[test]
    fn beyond_an_edge_lies_the_texel_that_the_direction_meets() {
        let extent = 4;
        for face_of in 0..6 {
            for along in 0..i64::from(extent) {
                for (x, y) in [(-1, along), (4, along), (along, -1), (along, 4)] {
                    let found = across(face_of, x, y, extent).unwrap();
                    assert_ne!(found.face, face_of);
                    // From there the way back crosses the same edge.
                    let back = [(-1, 0), (1, 0), (0, -1), (0, 1)].into_iter().find_map(|(dx, dy)| {
                        let (x, y) = (found.x as i64 + dx, found.y as i64 + dy);
                        across(found.face, x, y, extent).filter(|texel| texel.face == face_of)
                    });
                    let inside = Texel { face: face_of, x: x.clamp(0, 3) as u64, y: y.clamp(0, 3) as u64 };
                    assert_eq!(back, Some(inside), "{face_of} {x} {y} {found:?}");
                }
            }
        }
    }

    #[test]
    fn directions_that_are_no_numbers_or_too_large() {
        const NAN: f32 = f32::NAN;
        const INF: f32 = f32::INFINITY;
        // As an H200 has them.
        for (direction, wanted) in [
            ([NAN, NAN, NAN], 4),
            ([-INF, INF, INF], 4),
            ([NAN, INF, -INF], 4),
            ([NAN, NAN, -1.0], 5),
            ([2e9, NAN, -1.0], 0),
            ([-1.0, -INF, INF], 0),
            ([INF, -1.0, NAN], 2),
            ([f32::MAX, -1.0, 2e9], 4),
            ([-1.0, f32::MAX, -1.0], 4),
            ([f32::MAX, NAN, -1.0], 4),
        ] {
            let (found, place) = face(direction);
            assert_eq!(found, wanted, "{direction:?}");
            assert!(place.iter().all(|s| s.abs() < 1e-6), "the middle of it, for {direction:?}");
        }
        assert_eq!(face([8e37, 4e37, 0.0]).0, 0, "not too large");
    }

    #[test]
    fn the_edges_of_a_cube_of_single_texels() {
        let beyond = |x, y| across(4, x, y, 1).unwrap().face;
        assert_eq!([beyond(1, 0), beyond(-1, 0), beyond(0, -1), beyond(0, 1)], [0, 1, 2, 3]);
    }
}
