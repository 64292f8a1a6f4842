//! Textures and surfaces: what lies in an image, how it is sampled, and what each instruction about them does in one thread.
//!
//! An [`ImageView`] says where texels lie and what they are; a [`Sampler`] says how an instruction reads them. Together they
//! are a texture; a view alone is a surface. What an instruction asks for is a [`TextureOp`]. Memory is reached through
//! [`Texels`] only, since whoever owns it may have freed it.
//!
//! PTX leaves the precision of filtering open. Here it is the hardware's of compute capability 9.0, which its answers tell
//! (`tests/golden`).

mod anisotropy;
mod block;
mod coordinate;
mod cube;
mod filter;
mod format;
mod gradient;
mod level;
mod op;
mod query;
mod sample;
mod srgb;
mod surface;
mod tiles;
mod usual;

pub use block::Compression;
pub use format::{Channel, Format, Packing};
pub use op::{Access, Lod, Outside, Query, Sample, SurfaceAccess, TextureOp};
pub use query::query;
pub use sample::sample;
pub use surface::{SurfaceError, access};
pub use tiles::{TILE, Tiles};
pub use usual::Usual;

/// What the coordinates of an image are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Geometry {
    /// x.
    D1,
    /// x, y.
    D2,
    /// x, y, z.
    D3,
    /// Layer, x.
    D1Layered,
    /// Layer, x, y.
    D2Layered,
    /// A direction of three coordinates; six faces.
    Cube,
    /// Layer, and a direction; six faces each.
    CubeLayered,
}

impl Geometry {
    /// All of them.
    pub const ALL: [Geometry; 7] = [
        Geometry::D1,
        Geometry::D2,
        Geometry::D3,
        Geometry::D1Layered,
        Geometry::D2Layered,
        Geometry::Cube,
        Geometry::CubeLayered,
    ];

    /// Coordinates besides the layer.
    pub const fn coordinates(self) -> usize {
        match self {
            Geometry::D1 | Geometry::D1Layered => 1,
            Geometry::D2 | Geometry::D2Layered => 2,
            Geometry::D3 | Geometry::Cube | Geometry::CubeLayered => 3,
        }
    }

    /// Whether a layer is among the operands.
    pub const fn is_layered(self) -> bool {
        matches!(self, Geometry::D1Layered | Geometry::D2Layered | Geometry::CubeLayered)
    }

    /// Whether coordinates are a direction.
    pub const fn is_cube(self) -> bool {
        matches!(self, Geometry::Cube | Geometry::CubeLayered)
    }
}

/// One mip level: a box of texels in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// Texels in x, y, z; at least 1 each. Layers and faces are no depth.
    pub extent: [u32; 3],
    /// Address of the first texel.
    pub address: u64,
    /// Bytes from one row to the next.
    pub row_pitch: u64,
    /// Bytes from one slice, layer or face to the next.
    pub slice_pitch: u64,
    /// The tiles that they lie in, where that is not one row after the other.
    pub tiles: Option<Tiles>,
}

impl Level {
    /// The address of a byte of a row.
    #[inline]
    pub fn locate(&self, x: u64, y: u64, slice: u64) -> u64 {
        let offset = match &self.tiles {
            None => {
                let row = y.wrapping_mul(self.row_pitch).wrapping_add(slice.wrapping_mul(self.slice_pitch));
                row.wrapping_add(x)
            }
            Some(tiles) => tiles.offset(x, y, slice),
        };
        self.address.wrapping_add(offset)
    }
}

/// Texels in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageView {
    /// What its coordinates are.
    pub geometry: Geometry,
    /// What a texel is.
    pub format: Format,
    /// Layers, of cubes six each; 1 for images without.
    pub layers: u32,
    /// The levels that are seen, the largest first; at least one.
    pub levels: Vec<Level>,
    /// The first of [`levels`](Self::levels) in the whole image.
    pub first_level: u32,
    /// A plain range of memory, read by index only: what lies outside is zero, and nothing is filtered.
    pub is_linear: bool,
    /// Parts of it may have no memory: they are zero, and what is stored there is lost.
    pub is_sparse: bool,
}

impl Default for ImageView {
    /// One without texels.
    fn default() -> ImageView {
        ImageView {
            geometry: Geometry::D1,
            format: Format { channel: Channel::U8, channels: 1, packing: Packing::Plain },
            layers: 1,
            levels: Vec::new(),
            first_level: 0,
            is_linear: false,
            is_sparse: false,
        }
    }
}

/// What stands for coordinates outside an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AddressMode {
    /// The image repeats. With coordinates in texels as [`Clamp`](Self::Clamp).
    Wrap,
    /// The nearest texel.
    #[default]
    Clamp,
    /// The image and its mirror image repeat. With coordinates in texels as [`Clamp`](Self::Clamp).
    Mirror,
    /// The border colour.
    Border,
}

/// How texels become a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Filter {
    /// The nearest.
    #[default]
    Point,
    /// Weighted by distance, with eight fractional bits.
    Linear,
}

/// What integers become.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ReadMode {
    /// They stay integers.
    #[default]
    Element,
    /// Those of 8 and 16 bits become floats from 0, or -1, to 1.
    Normalized,
}

/// How an image is read.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampler {
    /// For x, y and z.
    pub address: [AddressMode; 3],
    /// Within a level.
    pub filter: Filter,
    /// Between levels.
    pub mip_filter: Filter,
    /// Added to every level that is computed or given.
    pub mip_bias: f32,
    /// The least level, and the last.
    pub level_clamp: [f32; 2],
    /// What lies outside with [`AddressMode::Border`]: red, green, blue, alpha.
    pub border: [f32; 4],
    /// Coordinates go from 0 to 1 over the image, rather than in texels.
    pub normalized: bool,
    /// What integers become.
    pub read: ReadMode,
    /// Unsigned eight-bit channels that are read as floats are taken as sRGB: the first of one or two, the first three of four.
    pub srgb: bool,
    /// Largest ratio of the sides of the area that is averaged, where it has two dimensions; 0 and 1 for square areas.
    pub max_anisotropy: u32,
    /// Filtering reaches over the edges of a cube's faces.
    pub seamless_cube: bool,
}

impl Default for Sampler {
    fn default() -> Sampler {
        Sampler {
            address: [AddressMode::Clamp; 3],
            filter: Filter::Point,
            mip_filter: Filter::Point,
            mip_bias: 0.0,
            level_clamp: [0.0, 0.0],
            border: [0.0; 4],
            normalized: false,
            read: ReadMode::Element,
            srgb: false,
            max_anisotropy: 0,
            seamless_cube: false,
        }
    }
}

/// The memory that images lie in.
pub trait Texels {
    /// What goes wrong where there is none.
    type Error;

    /// Reads bytes: 1, 2, 4, 8 or 16.
    fn load(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), Self::Error>;

    /// Writes bytes: 1, 2, 4, 8 or 16.
    fn store(&mut self, address: u64, bytes: &[u8]) -> Result<(), Self::Error>;

    /// Changes a number of 4 or 8 bytes at once, as seen by everyone.
    fn update(&mut self, address: u64, bytes: usize, change: &dyn Fn(u64) -> u64) -> Result<(), Self::Error>;
}
