//! Textures and surfaces of a corpus.

use device::memory::ContextId;
use device::texture::{self, Object};
use simt_ir::texture::{AddressMode, Channel, Filter, Format, Geometry, ImageView, Level, ReadMode, Sampler};

/// A line of `textures.tsv`. What only some recordings tell stands at the end, and may be left out: `srgb`, `aniso`, `seamless`,
/// `bias`, `least` and `most` level, `border` with commas.
pub struct Descriptor {
    geometry: Geometry,
    /// Width, height, and depth or layers.
    size: [u32; 3],
    format: Format,
    filter: Filter,
    address: AddressMode,
    normalized: bool,
    read: ReadMode,
    mips: u32,
    mip_filter: Filter,
    surface: bool,
    srgb: bool,
    anisotropy: u32,
    seamless: bool,
    bias: f32,
    clamp: [f32; 2],
    border: [f32; 4],
}

/// What a kernel is given. The object goes with it.
pub struct Made {
    handle: u64,
    memory: Vec<u64>,
}

impl Made {
    /// One that says how textures that name it are read.
    pub fn sampler(sampler: Sampler) -> Made {
        Made { handle: texture::create(ContextId::NONE, Object::Sampler(sampler)), memory: Vec::new() }
    }

    /// Its texels, as kernels that have ended left them, and zeros.
    pub fn texels(&self) -> Vec<u64> {
        // SAFETY: the object's texels are the vector's words, which kernels have written behind the compiler's back.
        self.memory.iter().map(|word| unsafe { std::ptr::from_ref(word).read_volatile() }).collect()
    }

    /// The object's handle.
    pub fn handle(&self) -> u64 {
        self.handle
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        texture::destroy(self.handle);
    }
}

impl Descriptor {
    /// Reads a line.
    pub fn parse(line: &str) -> Result<Descriptor, String> {
        let fields: Vec<&str> = line.split('\t').collect();
        let &[
            _,
            dim,
            width,
            height,
            depth,
            format,
            channels,
            filter,
            address,
            normalized,
            read,
            mips,
            mip_filter,
            surface,
            ref further @ ..,
        ] = &fields[..]
        else {
            return Err(format!("a texture with other fields: {line}"));
        };
        let further = |index: usize, default| further.get(index).copied().unwrap_or(default);
        let float = |text: &str| text.parse::<f32>().map_err(|_| format!("'{text}' is no number: {line}"));
        let border = further(6, "0.25,0.5,0.75,1").split(',').map(float).collect::<Result<Vec<f32>, _>>()?;
        let number = |text: &str| text.parse::<u32>().map_err(|_| format!("'{text}' is no number: {line}"));
        let unknown = |text: &str| format!("'{text}' is not known: {line}");
        let filter_of = |text: &str| match text {
            "point" => Ok(Filter::Point),
            "linear" => Ok(Filter::Linear),
            _ => Err(unknown(text)),
        };
        let channel = match format {
            "u8" => Channel::U8,
            "u16" => Channel::U16,
            "u32" => Channel::U32,
            "s8" => Channel::S8,
            "s16" => Channel::S16,
            "s32" => Channel::S32,
            "f16" => Channel::F16,
            "f32" => Channel::F32,
            "un8" => Channel::Unorm8,
            "un16" => Channel::Unorm16,
            "sn8" => Channel::Snorm8,
            "sn16" => Channel::Snorm16,
            _ => return Err(unknown(format)),
        };
        Ok(Descriptor {
            geometry: match dim {
                "1d" => Geometry::D1,
                "2d" => Geometry::D2,
                "3d" => Geometry::D3,
                "a1d" => Geometry::D1Layered,
                "a2d" => Geometry::D2Layered,
                "cube" => Geometry::Cube,
                "acube" => Geometry::CubeLayered,
                _ => return Err(unknown(dim)),
            },
            size: [number(width)?, number(height)?, number(depth)?],
            format: Format::new(channel, number(channels)? as u8).ok_or_else(|| unknown(channels))?,
            filter: filter_of(filter)?,
            address: match address {
                "wrap" => AddressMode::Wrap,
                "clamp" => AddressMode::Clamp,
                "mirror" => AddressMode::Mirror,
                "border" => AddressMode::Border,
                _ => return Err(unknown(address)),
            },
            normalized: normalized == "1",
            read: if read == "norm" { ReadMode::Normalized } else { ReadMode::Element },
            mips: number(mips)?,
            mip_filter: filter_of(mip_filter)?,
            surface: surface == "1",
            srgb: further(0, "0") == "1",
            anisotropy: number(further(1, "0"))?,
            seamless: further(2, "0") == "1",
            bias: float(further(3, "0"))?,
            clamp: [float(further(4, "0"))?, float(further(5, "99"))?],
            border: border.try_into().map_err(|_| format!("a border with other channels: {line}"))?,
        })
    }

    /// Makes the object over a copy of its texels, which are packed: level after level, x fastest.
    pub fn create(&self, texels: &[u8]) -> Result<Made, String> {
        let mut memory = vec![0u64; texels.len().div_ceil(8) + 1];
        for (word, bytes) in memory.iter_mut().zip(texels.chunks(8)) {
            let mut all = [0; 8];
            all[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_le_bytes(all);
        }
        let layered = !matches!(self.geometry, Geometry::D1 | Geometry::D2 | Geometry::D3);
        let layers = if layered { self.size[2].max(1) } else { 1 };
        let mut extent = self.size.map(|size| size.max(1));
        if layered {
            extent[2] = 1;
        }
        let mut levels = Vec::new();
        let mut offset = 0;
        for _ in 0..self.mips {
            let row_pitch = u64::from(extent[0]) * self.format.bytes() as u64;
            let slice_pitch = row_pitch * u64::from(extent[1]);
            levels.push(Level {
                extent,
                address: memory.as_ptr() as u64 + offset,
                row_pitch,
                slice_pitch,
                tiles: None,
            });
            offset += slice_pitch * u64::from(extent[2] * layers);
            extent = extent.map(|size| (size / 2).max(1));
        }
        if offset != texels.len() as u64 {
            return Err(format!("{offset} bytes of texels are wanted, {} are there", texels.len()));
        }
        let view = ImageView {
            geometry: self.geometry,
            format: self.format,
            layers,
            levels,
            first_level: 0,
            is_linear: false,
            is_sparse: false,
        };
        let sampler = Sampler {
            address: [self.address; 3],
            filter: self.filter,
            mip_filter: self.mip_filter,
            mip_bias: self.bias,
            level_clamp: self.clamp,
            border: self.border,
            normalized: self.normalized,
            read: self.read,
            srgb: self.srgb,
            max_anisotropy: self.anisotropy,
            seamless_cube: self.seamless,
        };
        let object = if self.surface { Object::Surface(view) } else { Object::Texture(view, sampler) };
        Ok(Made { handle: texture::create(ContextId::NONE, object), memory })
    }
}
