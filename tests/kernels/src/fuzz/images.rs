//! Textures and surfaces: samples at places of all kinds, and texels of a surface that a thread has for itself, or that threads combine
//! something into.

use std::fmt::Write;

use super::Random;
use super::table::any_register;
use crate::machine::Grid;

/// A texture or surface that a kernel is given.
#[derive(Clone, Debug, PartialEq)]
pub struct Image {
    /// What it is, as a line of `textures.tsv` says it but for its name, with spaces.
    pub line: String,
    /// Its texels.
    pub texels: Vec<u8>,
}

/// What the kernel's images are: a texture, a surface with a texel for each thread, and one that all threads share.
#[derive(Clone)]
pub struct Images {
    geometry: &'static str,
    /// The type that samples have.
    sample: &'static str,
    /// Texels are found by numbers without fraction.
    by_texel: bool,
    mips: bool,
    surface: &'static str,
    /// Bytes of the surface's texels, and how many registers of how many bits they are.
    texel: (usize, &'static str, &'static str),
    operation: (&'static str, &'static str),
}

const GEOMETRIES: [(&str, [usize; 3]); 7] = [
    ("1d", [16, 0, 0]),
    ("2d", [8, 4, 0]),
    ("3d", [4, 3, 2]),
    ("a1d", [8, 0, 3]),
    ("a2d", [4, 4, 3]),
    ("cube", [4, 4, 6]),
    ("acube", [4, 4, 12]),
];
/// Formats of texels: name, channels, bytes, the type of samples.
const FORMATS: [(&str, usize, usize, &str); 8] = [
    ("u8", 4, 4, "u32"),
    ("s8", 2, 2, "s32"),
    ("u16", 1, 2, "u32"),
    ("s16", 4, 8, "s32"),
    ("u32", 2, 8, "u32"),
    ("f16", 4, 8, "f32"),
    ("f32", 1, 4, "f32"),
    ("f32", 4, 16, "f32"),
];
/// Texels of surfaces: bytes, and the vector and the type that one access takes.
const TEXELS: [(usize, &str, &str, &str, usize); 7] = [
    (1, "", "b8", "u8", 1),
    (2, "", "b16", "u16", 1),
    (4, "", "b32", "u32", 1),
    (4, ".v4", "b8", "u8", 4),
    (8, "", "b64", "u32", 2),
    (8, ".v2", "b32", "u32", 2),
    (16, ".v4", "b32", "u32", 4),
];
/// What threads do to texels that they share.
const OPERATIONS: [(&str, &str); 5] =
    [("add", "u32"), ("min", "s32"), ("max", "u32"), ("and", "b32"), ("or", "b32")];

/// The images of a kernel, and how its instructions use them.
pub fn images(r: &mut Random, grid: Grid) -> (Vec<Image>, Images) {
    let (geometry, size) = *r.pick(&GEOMETRIES);
    let (format, channels, bytes, sample) = *r.pick(&FORMATS);
    let is_normalized = format.starts_with(['u', 's']) && !format.ends_with("32") && r.chance(30);
    let sample = if is_normalized { "f32" } else { sample };
    let mips = !geometry.contains("cube") && r.chance(30);
    let count = |level: u32| -> usize {
        let is_layered = geometry.starts_with(['a', 'c']);
        let halved = |axis: usize| match axis {
            2 if is_layered => size[2].max(1),
            _ => (size[axis].max(1) >> level).max(1),
        };
        halved(0) * halved(1) * halved(2)
    };
    let texels: usize = (0..if mips { 2 } else { 1 }).map(count).sum();
    let [width, height, depth] = size;
    let by_texel = !geometry.contains("cube") && r.chance(30);
    let texture = Image {
        line: format!(
            "{geometry} {width} {height} {depth} {format} {channels} {} {} {} {} {} {} 0",
            if sample == "f32" { *r.pick(&["point", "linear"]) } else { "point" },
            r.pick(&["wrap", "clamp", "mirror", "border"]),
            u8::from(!by_texel && (geometry.contains("cube") || r.chance(60))),
            if is_normalized { "norm" } else { "elem" },
            if mips { 2 } else { 1 },
            r.pick(&["point", "linear"]),
        ),
        // No infinities and NaNs among the numbers.
        texels: (0..texels * bytes)
            .map(|_| (r.bits() & if format.starts_with('f') { 0x37 } else { 0xff }) as u8)
            .collect(),
    };
    let blocks = grid.grid.iter().product::<u32>() as usize;
    let threads = grid.block.iter().product::<u32>() as usize;
    let surface = *r.pick(&["1d", "2d", "3d", "a1d", "a2d"]);
    let [width, height, depth] = match surface {
        "1d" => [threads * blocks, 0, 0],
        "2d" => [threads, blocks, 0],
        "a1d" => [threads, 0, blocks],
        _ => [threads, 1, blocks],
    };
    let (bytes, vector, ty, format, channels) = *r.pick(&TEXELS);
    let own = Image {
        line: format!("{surface} {width} {height} {depth} {format} {channels} point clamp 0 elem 1 point 1"),
        texels: vec![0; bytes * threads * blocks],
    };
    let shared = Image { line: "1d 8 0 0 u32 1 point clamp 0 elem 1 point 1".into(), texels: vec![0x5a; 32] };
    let operation = *r.pick(&OPERATIONS);
    let used = Images { geometry, sample, by_texel, mips, surface, texel: (bytes, vector, ty), operation };
    (vec![texture, own, shared], used)
}

/// Registers of an instruction's own, and the handle of an image.
fn scope(image: usize) -> String {
    format!(
        "{{\n\t.reg .b64 image, o64_<4>;\n\t.reg .b32 x, y, z, o32_<4>;\n\t.reg .b16 o16_<4>;\n\t.reg .f32 f<4>;\n\t.reg .pred there;\n\t\
         ld.param.u64 image, [image{image}];\n"
    )
}

impl Images {
    /// One of all that can be done with them.
    pub fn instruction(&self, r: &mut Random, guard: &str) -> String {
        match r.below(4) {
            0 | 1 => self.sample(r, guard),
            2 => self.own_texel(r, guard),
            _ => self.shared_texel(r, guard),
        }
    }

    fn sample(&self, r: &mut Random, guard: &str) -> String {
        let mut text = scope(0);
        let is_cube = self.geometry.contains("cube");
        let is_layered = self.geometry.starts_with('a');
        let axes = match self.geometry {
            "1d" | "a1d" => 1,
            "2d" | "a2d" => 2,
            _ => 3,
        };
        for at in 0..axes {
            let word = any_register(r, 32);
            let _ = match self.by_texel {
                true => writeln!(text, "\tand.b32 o32_{at}, {word}, 15;\n\tsub.u32 o32_{at}, o32_{at}, 3;"),
                // Texels, and parts of them.
                false => writeln!(
                    text,
                    "\tand.b32 o32_{at}, {word}, 255;\n\tcvt.rn.f32.u32 f{at}, o32_{at};\n\tfma.rn.f32 f{at}, f{at}, {}, 0fC0000001;",
                    // Cubes are looked at in a direction, others by coordinates up to 8 or so.
                    if is_cube { "0f3CA00000" } else { "0f3D000000" }
                ),
            };
        }
        let file = if self.by_texel { "o32_" } else { "f" };
        let mut all: Vec<String> = (0..axes).map(|at| format!("{file}{at}")).collect();
        if is_layered {
            let _ = writeln!(text, "\tand.b32 z, {}, 3;", any_register(r, 32));
            all.insert(0, "z".into());
        }
        while all.len() > 1 && !all.len().is_power_of_two() {
            all.push(all[all.len() - 1].clone());
        }
        let place = if all.len() == 1 { all.concat() } else { format!("{{{}}}", all.join(", ")) };
        let coordinate = if self.by_texel { "s32" } else { "f32" };
        let gathers =
            ["2d", "a2d", "cube", "acube"].contains(&self.geometry) && !self.by_texel && r.chance(30);
        let head = match gathers {
            true => format!("tld4.{}.{}", r.pick(&["r", "g", "b", "a"]), self.geometry),
            false if self.mips && r.chance(50) => format!("tex.level.{}", self.geometry),
            false => format!("tex.{}", self.geometry),
        };
        let level = match head.starts_with("tex.level") {
            true if self.by_texel => {
                let _ = writeln!(text, "\tand.b32 y, {}, 1;", any_register(r, 32));
                ", y"
            }
            true => *r.pick(&[", 0f3F800000", ", 0f3F000000", ", 0fBF800000"]),
            false => "",
        };
        // A register that the guard leaves alone has something in it; coordinates are there already.
        if !self.by_texel {
            (0..4).for_each(|at| text += &format!("\tmov.b32 o32_{at}, tid;\n"));
        }
        (0..4)
            .skip(axes)
            .filter(|_| self.by_texel)
            .for_each(|at| text += &format!("\tmov.b32 o32_{at}, tid;\n"));
        let names: Vec<String> = (0..4).map(|_| any_register(r, 32)).collect();
        let _ = writeln!(
            text,
            "\t{guard}{head}.v4.{}.{coordinate} {{o32_0, o32_1, o32_2, o32_3}}, [image, {place}]{level};",
            self.sample
        );
        for (at, name) in names.iter().enumerate() {
            let _ = writeln!(text, "\tmad.lo.u32 {name}, {name}, 31, o32_{at};");
        }
        text + "\t}"
    }

    /// A load, a store or an operation where no other thread comes; some are outside, where there is nothing.
    fn own_texel(&self, r: &mut Random, guard: &str) -> String {
        let mut text = scope(1);
        let (bytes, vector, ty) = self.texel;
        match self.surface {
            "1d" => text += "\tmad.lo.u32 x, block, size, tid;\n",
            _ => text += "\tmov.b32 x, tid;\n",
        }
        let samples = ty == "b32" && vector.is_empty() && r.chance(30);
        if !samples {
            let _ = writeln!(text, "\tmul.lo.u32 x, x, {bytes};");
        }
        if r.chance(30) {
            let _ = writeln!(text, "\t@{} add.u32 x, x, 65536;", any_register(r, 1));
        }
        let place = match self.surface {
            "1d" => "{x}",
            "2d" => "{x, block}",
            "a1d" => "{block, x}",
            "a2d" => {
                text += "\tmov.b32 y, 0;\n";
                "{block, x, y, y}"
            }
            _ => {
                text += "\tmov.b32 y, 0;\n";
                "{x, y, block, block}"
            }
        };
        let place = if self.surface == "1d" { "x" } else { place };
        let bits = match ty {
            "b8" | "b16" => 16,
            "b32" => 32,
            _ => 64,
        };
        let count = match vector {
            ".v4" => 4,
            ".v2" => 2,
            _ => 1,
        };
        let list = |names: Vec<String>| match names.len() {
            1 => names.concat(),
            _ => format!("{{{}}}", names.join(", ")),
        };
        let sources: Vec<String> = (0..count).map(|_| any_register(r, bits)).collect();
        let reduces = !self.surface.starts_with('a') && vector.is_empty() && ["b32", "b64"].contains(&ty);
        match r.below(3) {
            0 if reduces => {
                let (operation, signed) = *r.pick(&[("add", "u"), ("min", "s"), ("max", "u")]);
                let how = if samples { "p" } else { "b" };
                let ty = match samples {
                    true => "b32".to_owned(),
                    false => format!("{signed}{bits}"),
                };
                let _ = writeln!(
                    text,
                    "\t{guard}sured.{how}.{operation}.{}.{ty}.zero [image, {place}], {};",
                    self.surface,
                    list(sources)
                );
            }
            0 | 1 => {
                let how = if samples { "p" } else { "b" };
                let _ = writeln!(
                    text,
                    "\t{guard}sust.{how}.{}{vector}.{ty}.zero [image, {place}], {};",
                    self.surface,
                    list(sources)
                );
            }
            _ => {
                if samples {
                    let _ = writeln!(text, "\tmul.lo.u32 x, x, {bytes};");
                }
                for at in 0..count {
                    let _ = writeln!(text, "\tmov.b{bits} o{bits}_{at}, 7;");
                }
                let results: Vec<String> = (0..count).map(|at| format!("o{bits}_{at}")).collect();
                let _ = writeln!(
                    text,
                    "\t{guard}suld.b.{}{vector}.{ty}.zero {}, [image, {place}];",
                    self.surface,
                    list(results)
                );
                for at in 0..count {
                    let result = any_register(r, bits);
                    let _ = writeln!(text, "\txor.b{bits} {result}, {result}, o{bits}_{at};");
                }
            }
        }
        text + "\t}"
    }

    /// One operation on texels at which threads meet.
    fn shared_texel(&self, r: &mut Random, guard: &str) -> String {
        let (operation, ty) = self.operation;
        let (word, index) = (any_register(r, 32), any_register(r, 32));
        let mut text = scope(2);
        let _ = writeln!(text, "\tand.b32 x, {index}, {};\n\tmul.lo.u32 x, x, 4;", r.pick(&[7, 7, 1, 0, 15]));
        let _ = writeln!(text, "\t{guard}sured.b.{operation}.1d.{ty}.zero [image, x], {word};");
        text + "\t}"
    }
}
