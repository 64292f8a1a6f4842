//! Launch shapes: what compiled code is specialised for.
//!
//! Whether `tid.x` is `base + lane`, `lane % 16` or anything else decides between one vector load and 32 scalar ones, so it is
//! fixed when a kernel is compiled. A kernel has few shapes in practice; each is compiled at its first use.

/// How `tid.x` runs along the 32 lanes of a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum XLayout {
    /// `blockDim.x` is a multiple of 32: a warp lies in one row, `tid.x = base + lane`.
    Rows,
    /// `blockDim.x` is this power of two below 32, or of the lanes of a gang: `tid.x = lane % period`, and a warp covers `32 / period` rows.
    Period(u8),
    /// Anything else: `tid` comes from a division for each lane.
    Irregular,
}

/// The most threads that a block has in x.
const MAX_X: u32 = 1024;

/// The launch shape a kernel is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Shape {
    /// Layout of `tid.x`.
    pub x: XLayout,
    /// Dimensions of the block that may exceed 1: 1 when y and z are 1, 2 when z is 1, else 3.
    pub dims: u8,
    /// Bits that `tid.x` takes, at least 5: `blockDim.x` is no more than 2 to this. It decides how often loops in which the threads of a
    /// block fill a tile run.
    pub x_bits: u8,
    /// The number of threads of a block is a multiple of 32: every warp is full.
    pub whole_warps: bool,
    /// In each dimension, `gridDim * blockDim` is below 2^31: `ctaid * ntid + tid` does not overflow a signed 32-bit integer.
    pub ids_fit_i32: bool,
    /// 32-bit index arithmetic may be taken not to wrap between the lanes of a warp where the kernel checks that first and
    /// answers [`Status::Deopt`](crate::Status::Deopt) if it does. Off in the code that runs after that answer.
    pub assume_no_wrap: bool,
    /// The gangs that a block could be run in.
    pub gangs: Gangs,
    /// Warps that run as one, with vectors of all their lanes. 1 in a launch's shape: the compiler chooses what `gangs` allows.
    pub gang: u8,
    /// Parts of a warp that run one after another, with vectors of their lanes. 1 in a launch's shape, and where `gang` is more.
    pub strips: u8,
    /// The threads of a block, where they are 8, 16 or 32. Otherwise 0.
    pub threads: u8,
    /// A vector has all threads of a block. False in a launch's shape.
    pub is_block: bool,
    /// `blockDim.y`, where the block has two dimensions or more and that is a power of two up to 128. Otherwise 0.
    pub height: u8,
    /// `blockDim.z`, likewise where the block has three.
    pub depth: u8,
    /// What the code calls x, of blocks and of threads, the launch calls so, and the other way: 1 for y, 2 for z. `x` and all else here is about what the
    /// code calls x. 0 in a launch's shape.
    pub turned: u8,
}

/// In what gangs the warps of a block could run: so many consecutive warps as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Gangs {
    /// The largest: 1, 2, 4 or 8. Half of it is possible as well, down to 1.
    pub most: u8,
    /// The largest is the whole block.
    pub whole: bool,
    /// `blockDim.x`, where that is 32, 64 or 128 and the block has several rows. Otherwise 0: then a gang lies in one row if a warp does.
    pub width: u8,
}

impl Gangs {
    /// Every warp by itself.
    pub const NONE: Gangs = Gangs { most: 1, whole: false, width: 0 };

    fn of(shape: &Shape, block: [u32; 3], threads: u64) -> Gangs {
        if !shape.whole_warps || shape.x == XLayout::Irregular {
            return Gangs::NONE;
        }
        let (warps, x) = (threads / 32, block[0]);
        // Each row of the block is one of the gang's, or the gang lies in one.
        let fits = |gang: u32| shape.dims == 1 || x.is_power_of_two() || x.is_multiple_of(32 * gang);
        let most = [8, 4, 2].into_iter().find(|gang| warps.is_multiple_of((*gang).into()) && fits(*gang));
        let Some(most) = most else { return Gangs::NONE };
        let width = if shape.dims > 1 && matches!(x, 32 | 64 | 128) { x as u8 } else { 0 };
        Gangs { most: most as u8, whole: warps == u64::from(most), width }
    }
}

/// How many rows of a block a vector has in y, and how many of these in z: powers of two. Where there is more than one in z, all rows in y are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows {
    /// In y.
    pub in_y: u32,
    /// In z.
    pub in_z: u32,
}

impl Shape {
    /// The shape of a launch.
    pub fn of(grid: [u32; 3], block: [u32; 3]) -> Shape {
        let x = match block[0] {
            x if x % 32 == 0 => XLayout::Rows,
            x if x < 32 && x.is_power_of_two() => XLayout::Period(x as u8),
            _ => XLayout::Irregular,
        };
        let threads: u64 = block.iter().map(|d| u64::from(*d)).product();
        let mut shape = Shape {
            x,
            dims: if block[2] > 1 {
                3
            } else if block[1] > 1 {
                2
            } else {
                1
            },
            x_bits: block[0].clamp(32, MAX_X).next_power_of_two().trailing_zeros() as u8,
            whole_warps: threads.is_multiple_of(32),
            ids_fit_i32: grid.iter().zip(&block).all(|(g, b)| u64::from(*g) * u64::from(*b) < 1 << 31),
            assume_no_wrap: true,
            gangs: Gangs::NONE,
            gang: 1,
            strips: 1,
            threads: if matches!(threads, 8 | 16 | 32) { threads as u8 } else { 0 },
            is_block: false,
            height: 0,
            depth: 0,
            turned: 0,
        };
        shape.gangs = Gangs::of(&shape, block, threads);
        let known = |axis: u8| {
            let size = block[usize::from(axis)];
            let is_told = axis < shape.dims && size.is_power_of_two() && size <= 128;
            if is_told { size as u8 } else { 0 }
        };
        (shape.height, shape.depth) = (known(1), known(2));
        shape
    }

    /// The shape for code that has x and another axis, y (1) or z (2), in each other's place, if a launch's shape tells enough of that.
    pub fn turned(self, axis: u8) -> Option<Shape> {
        let size = if axis == 1 { self.height } else { self.depth };
        let x = match size {
            0 | 1 => return None,
            32.. => XLayout::Rows,
            _ => XLayout::Period(size),
        };
        let width = if self.gangs.most > 1 && x == XLayout::Rows { size } else { 0 };
        let gangs = Gangs { width, ..self.gangs };
        let x_bits = u32::from(size).max(crate::WARP).trailing_zeros() as u8;
        let before = self.width().filter(|width| *width <= 128).unwrap_or(0) as u8;
        let (height, depth) = if axis == 1 { (before, self.depth) } else { (self.height, before) };
        let turned = Shape { x, x_bits, gangs, height, depth, turned: axis, ..self };
        self.whole_warps.then_some(turned)
    }

    /// The threads of a block in an axis, where the shape tells.
    pub fn size(&self, axis: u8) -> Option<u32> {
        let known = |size: u8| (size != 0).then_some(size.into());
        match axis {
            0 => self.width(),
            axis if axis >= self.dims => Some(1),
            1 => known(self.height),
            _ => known(self.depth),
        }
    }

    /// How the rows of a block that a vector has lie in y and z, where rows are shorter than vectors and the shape tells.
    pub fn rows(&self) -> Option<Rows> {
        let XLayout::Period(period) = self.x else { return None };
        let rows = self.lanes() / u32::from(period);
        match (self.dims, self.size(1)) {
            (1, _) => None,
            (2, _) => Some(Rows { in_y: rows, in_z: 1 }),
            (_, height) => height.map(|height| Rows { in_y: rows.min(height), in_z: (rows / height).max(1) }),
        }
    }

    /// The shape for code that runs every warp by itself, as the launch has it.
    pub fn alone(self) -> Shape {
        Shape { gangs: Gangs::NONE, height: 0, depth: 0, ..self }
    }

    /// The shape for code that runs two warps as one at most, in one row.
    pub fn in_pairs_at_most(self) -> Shape {
        let gangs = match self.gangs.most {
            2.. if self.dims == 1 => Gangs { most: 2, ..Gangs::NONE },
            _ => Gangs::NONE,
        };
        Shape { gangs, ..self }
    }

    /// The shape for code that runs so many warps as one, which the block's allow.
    pub fn in_gangs(self, warps: u8) -> Shape {
        let x = match self.x {
            XLayout::Rows if self.gangs.width != 0 && u32::from(self.gangs.width) < 32 * u32::from(warps) => {
                XLayout::Period(self.gangs.width)
            }
            x => x,
        };
        Shape { x, gang: warps, ..self }
    }

    /// The shape for code that runs the warps of a launch's shape in so many strips, each of whole rows or within one.
    pub fn in_strips(self, strips: u8) -> Option<Shape> {
        let shape = Shape { strips, ..self };
        let x = match self.x {
            // A strip of one row is as a warp of one.
            XLayout::Period(period) if u32::from(period) >= shape.lanes() => XLayout::Rows,
            XLayout::Irregular => return None,
            x => x,
        };
        self.whole_warps.then_some(Shape { x, ..shape })
    }

    /// The shape for code with vectors of as many lanes as a block has threads, where they are few.
    pub fn in_one(self) -> Option<Shape> {
        let strips = crate::WARP.checked_div(self.threads.into())?;
        let x = match self.x {
            XLayout::Period(period) if period >= self.threads => XLayout::Rows,
            x => x,
        };
        let shape = Shape { x, strips: strips as u8, whole_warps: true, is_block: true, ..self };
        (x != XLayout::Irregular).then_some(shape)
    }

    /// Lanes of a vector.
    pub fn lanes(&self) -> u32 {
        crate::WARP * u32::from(self.gang) / u32::from(self.strips)
    }

    /// Lanes that lie in one row of the block.
    pub fn row_lanes(&self) -> u32 {
        match self.x {
            XLayout::Period(period) if self.dims > 1 => period.into(),
            _ => self.lanes(),
        }
    }

    /// The threads of a block in x, where the shape tells.
    pub fn width(&self) -> Option<u32> {
        match self.x {
            XLayout::Rows if self.is_block => Some(self.lanes()),
            // Strips are shaped as warps of their own.
            _ if self.strips > 1 && !self.is_block => None,
            XLayout::Period(period) => Some(period.into()),
            XLayout::Rows => (1 << self.x_bits == crate::WARP).then_some(crate::WARP),
            XLayout::Irregular => None,
        }
    }

    /// Whether all threads of a block run as one, so that none waits for another at its barriers.
    pub fn block_is_gang(&self) -> bool {
        self.is_block || self.gang > 1 && self.gang == self.gangs.most && self.gangs.whole
    }

    /// The shape that holds for every launch, for use when a specialised one does not.
    pub const ANY: Shape = Shape {
        x: XLayout::Irregular,
        dims: 3,
        x_bits: MAX_X.trailing_zeros() as u8,
        whole_warps: false,
        ids_fit_i32: false,
        assume_no_wrap: false,
        gangs: Gangs::NONE,
        gang: 1,
        strips: 1,
        threads: 0,
        is_block: false,
        height: 0,
        depth: 0,
        turned: 0,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_of_common_launches() {
        let shape = Shape::of([1000, 1, 1], [256, 1, 1]);
        assert_eq!(
            (shape.x, shape.dims, shape.whole_warps, shape.ids_fit_i32),
            (XLayout::Rows, 1, true, true)
        );
        let shape = Shape::of([64, 64, 1], [16, 16, 1]);
        assert_eq!((shape.x, shape.dims, shape.whole_warps), (XLayout::Period(16), 2, true));
        let shape = Shape::of([1, 1, 1], [33, 1, 2]);
        assert_eq!((shape.x, shape.dims, shape.whole_warps), (XLayout::Irregular, 3, false));
        let pairs = |x, y| Shape::of([8, 8, 1], [x, y, 1]).in_pairs_at_most().gangs.most;
        assert_eq!([pairs(64, 1), pairs(96, 1), pairs(256, 1), pairs(64, 2)], [2, 1, 2, 1]);
        let width = |x, y| Shape::of([8, 8, 1], [x, y, 1]).width();
        assert_eq!([width(32, 8), width(16, 16), width(64, 4)], [Some(32), Some(16), None]);
        assert_eq!([width(31, 8), width(16, 1), width(32, 1)], [None, Some(16), Some(32)]);
        let square = Shape::of([8, 8, 1], [32, 32, 1]);
        assert_eq!(square.in_gangs(8).width(), Some(32));
        assert_eq!(Shape::of([8, 8, 1], [16, 16, 1]).in_strips(2).map(|strip| strip.width()), Some(None));
        let turned = |x, y, z, axis| {
            Shape::of([8, 8, 8], [x, y, z]).turned(axis).map(|turned| (turned.x, turned.width()))
        };
        assert_eq!(turned(4, 8, 1, 1), Some((XLayout::Period(8), Some(8))));
        assert_eq!(turned(3, 32, 1, 1), Some((XLayout::Rows, Some(32))));
        assert_eq!(turned(4, 64, 1, 1), Some((XLayout::Rows, None)));
        assert_eq!(turned(2, 16, 2, 1), Some((XLayout::Period(16), Some(16))));
        assert_eq!(turned(2, 4, 16, 2), Some((XLayout::Period(16), Some(16))));
        assert_eq!(
            [turned(3, 16, 1, 1), turned(16, 3, 2, 1), turned(64, 1, 1, 1), turned(4, 8, 1, 2)],
            [None; 4]
        );
        let sizes = |shape: Shape| [0, 1, 2].map(|axis| shape.size(axis));
        assert_eq!(sizes(Shape::of([1, 1, 1], [2, 16, 4])), [Some(2), Some(16), Some(4)]);
        assert_eq!(sizes(Shape::of([1, 1, 1], [2, 16, 4]).turned(2).unwrap()), [Some(4), Some(16), Some(2)]);
        assert_eq!(sizes(Shape::of([1, 1, 1], [96, 3, 1])), [None, None, Some(1)]);
        let rows = |x, y, z, gang| {
            let rows = Shape::of([1, 1, 1], [x, y, z]).in_gangs(gang).rows();
            rows.map(|rows| (rows.in_y, rows.in_z))
        };
        assert_eq!(
            [rows(8, 8, 8, 1), rows(8, 8, 8, 4), rows(8, 8, 8, 2)],
            [Some((4, 1)), Some((8, 2)), Some((8, 1))]
        );
        assert_eq!(
            [rows(8, 12, 1, 1), rows(8, 12, 2, 1), rows(32, 2, 2, 4)],
            [Some((4, 1)), None, Some((2, 2))]
        );
        assert_eq!([rows(32, 2, 2, 1), rows(12, 8, 2, 1)], [None; 2]);
        assert_eq!([rows(8, 1, 8, 1), rows(128, 1, 2, 8)], [Some((1, 4)), Some((1, 2))]);
        let in_one =
            |x, y, z| Shape::of([8, 8, 1], [x, y, z]).in_one().map(|one| (one.x, one.lanes(), one.width()));
        assert_eq!(in_one(16, 1, 1), Some((XLayout::Rows, 16, Some(16))));
        assert_eq!(in_one(8, 4, 1), Some((XLayout::Period(8), 32, Some(8))));
        assert_eq!(in_one(2, 2, 2), Some((XLayout::Period(2), 8, Some(2))));
        assert_eq!([in_one(64, 1, 1), in_one(12, 1, 1), in_one(4, 1, 1)], [None; 3]);
        let bits = |x: u32| Shape::of([1, 1, 1], [x, 1, 1]).x_bits;
        assert_eq!([1, 32, 33, 64, 256, 1000, 1024].map(bits), [5, 5, 6, 6, 8, 10, 10]);
        assert!(!Shape::of([1 << 22, 1, 1], [512, 1, 1]).ids_fit_i32, "2^31 ids do not fit");
        assert!(!Shape::of([i32::MAX as u32, 1, 1], [1024, 1, 1]).ids_fit_i32);
    }
}
