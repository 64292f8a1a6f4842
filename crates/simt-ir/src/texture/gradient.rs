//! How far apart neighbouring samples are, in texels of the largest level, by the gradients of an instruction.
//!
//! In one and two dimensions the hardware takes gradients as they are. In three, and on cubes, four lanes sample at once whose
//! coordinates differ by the gradients, and the hardware takes what they differ by: gradients much smaller than the coordinate
//! lose bits, and those on a cube are differences of places on its faces.

use super::level::{places, power, sum};
use crate::mufu::eval;
use crate::{Mufu, Type};

/// Two gradients in texels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Gradients {
    pub(super) x: [f64; 3],
    pub(super) y: [f64; 3],
    /// They reach over an edge of a cube.
    pub(super) bent: bool,
}

/// Those of coordinates, which become texels by a factor.
pub(super) fn of_coordinates(x: [f32; 3], y: [f32; 3], scale: [f64; 3]) -> Gradients {
    let is_finite = x.iter().chain(&y).all(|gradient| gradient.is_finite());
    let scaled = |gradient: [f32; 3]| -> [f64; 3] {
        std::array::from_fn(|axis| match is_finite {
            true => times(gradient[axis], scale[axis]),
            false => f64::from(gradient[axis]) * scale[axis],
        })
    };
    Gradients { x: scaled(x), y: scaled(y), bent: false }
}

/// Those between a place and its neighbours, in three dimensions.
pub(super) fn between(place: [f32; 3], x: [f32; 3], y: [f32; 3], scale: [f64; 3]) -> Gradients {
    let apart = |gradient: [f32; 3]| std::array::from_fn(|axis| place[axis] + gradient[axis] - place[axis]);
    of_coordinates(apart(x), apart(y), scale)
}

/// Those between a direction and its neighbours, on a cube of which half an edge is `half` texels long.
pub(super) fn on_cube(direction: [f32; 3], x: [f32; 3], y: [f32; 3], half: f64) -> Gradients {
    let here = OnCube::new(direction);
    let next = |gradient: [f32; 3]| OnCube::new(std::array::from_fn(|axis| direction[axis] + gradient[axis]));
    let (x, y) = (next(x), next(y));
    let bent = [x, y].iter().any(|place| (place.axis, place.negative) != (here.axis, here.negative));
    Gradients { x: here.to(x, half), y: here.to(y, half), bent }
}

/// A place on the cube from -1 to 1.
#[derive(Clone, Copy)]
struct OnCube {
    place: [f32; 3],
    /// The axis on which its face lies, and on which side.
    axis: usize,
    negative: bool,
}

impl OnCube {
    fn new(direction: [f32; 3]) -> OnCube {
        let [x, y, z] = direction.map(f32::abs);
        let axis = match () {
            () if z >= x && z >= y => 2,
            () if y >= x => 1,
            () => 0,
        };
        let major = direction[axis];
        let bits = eval(Mufu::Rcp, Type::F32, major.abs().to_bits().into());
        let reciprocal = f32::from_bits(bits as u32);
        OnCube { place: direction.map(|x| x * reciprocal), axis, negative: major < 0.0 }
    }

    /// How far another place is from this one, on the plane of this face, onto which the other is unfolded.
    fn to(self, other: OnCube, half: f64) -> [f64; 3] {
        let across = |axis: usize| {
            // How far both lie from the edge between them.
            let here = if other.negative { 1.0 + self.place[axis] } else { 1.0 - self.place[axis] };
            let side = other.place[self.axis];
            let there = if self.negative { 1.0 + side } else { 1.0 - side };
            let distance = sum(times(here, half), times(there, half));
            if other.negative { -distance } else { distance }
        };
        std::array::from_fn(|axis| match () {
            () if axis == self.axis => 0.0,
            () if other.axis == self.axis && other.negative != self.negative => f64::INFINITY,
            () if axis == other.axis && axis != self.axis => across(axis),
            () => times(other.place[axis] - self.place[axis], half),
        })
    }
}

/// A product as the hardware's small multiplier has it: of nine places of one factor and eight of the other, the part that each
/// bit of the latter adds is cut at twelve, and a constant makes up for the loss.
fn times(gradient: f32, scale: f64) -> f64 {
    let gradient = f64::from(gradient);
    if !gradient.is_normal() || gradient.abs() < f64::from(f32::MIN_POSITIVE) || !scale.is_normal() {
        return 0.0;
    }
    let factor = (gradient.abs() / power(gradient) * 512.0) as u32;
    let bits = (scale / power(scale) * 256.0) as u32;
    let parts = (0..9).filter(|place| bits >> (8 - place) & 1 != 0).map(|place| factor << 3 >> place);
    let product = f64::from(parts.sum::<u32>() + 7) / 4096.0 * power(gradient) * power(scale);
    places(product, 10).copysign(gradient)
}

#[cfg(test)]
mod tests {
    use super::super::level::of_gradients;
    use super::*;

    /// Geometry, extent, place and gradients, and the level in 1/256.
    #[test]
    fn levels_are_those_that_an_h100_chose() {
        for line in include_str!("gradients.txt").lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let extent = [1, 2, 3].map(|at| words[at].parse::<f64>().expect("a number"));
            let vector = |first: usize| -> [f32; 3] {
                let bits = |at: usize| u32::from_str_radix(words[at], 16).expect("a hexadecimal number");
                std::array::from_fn(|axis| f32::from_bits(bits(first + axis)))
            };
            let (place, x, y) = (vector(4), vector(7), vector(10));
            let level = of_gradients(match words[0] {
                "c" => on_cube(place, x, y, extent[0] / 2.0),
                "3" => between(place, x, y, extent),
                _ => of_coordinates(x, y, extent),
            });
            assert_eq!((level * 256.0).to_string(), words[13], "{line}");
        }
    }

    #[test]
    fn the_opposite_face_is_too_far_for_any_level() {
        let level = of_gradients(on_cube([0.0, 0.0, 1.0], [0.0, 0.0, -3.0], [0.0; 3], 8.0));
        assert_eq!(level, f32::INFINITY);
    }
}
