//! Images: how programs hand code over.

use fatbin::raw::Image;
use fatbin::{Container, Fatbin, FatbinError, Target, objects};
use ptx::target::{Architecture, Device};

use crate::{Error, Result};

/// Finds out what bytes are. PTX may end with a NUL.
///
/// # Errors
/// [`Error::InvalidImage`] for a damaged fat binary, and for a wrapper, which makes sense only where it was made.
pub fn from_bytes(bytes: &[u8]) -> Result<Image<'_>> {
    if bytes.starts_with(&fatbin::CONTAINER_MAGIC.to_le_bytes()) {
        return Ok(Image::Fatbin(Fatbin::Whole(Container::parse(bytes).map_err(damaged)?)));
    }
    if bytes.starts_with(&fatbin::WRAPPER_MAGIC.to_le_bytes()) {
        return Err(Error::InvalidImage("a fat-binary wrapper outside its process".into()));
    }
    if bytes.starts_with(b"\x7fELF") {
        return Ok(Image::Elf(bytes));
    }
    Ok(Image::Text(bytes))
}

/// What an image holds for a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Texts {
    /// PTX; several texts are to be linked.
    pub texts: Vec<String>,
    /// The compute capability to read them for, as in `sm_90`.
    pub sm: u32,
}

/// The PTX texts of an image that suit a device of compute capability `sm`.
///
/// A fat binary may hold PTX for newer devices only, machine code being there for the others. The oldest such text is taken
/// then: what it uses that is not known here is refused by name, and all the rest runs. A GPU would have to refuse it all.
/// Machine code may carry the PTX that it was assembled from: that is taken where there is no other for the device.
///
/// # Errors
/// [`Error::NoBinaryForDevice`] if there is none, [`Error::InvalidImage`] for machine code and damaged images.
pub fn texts_of(image: &Image<'_>, sm: u32) -> Result<Texts> {
    match image {
        Image::Text(bytes) => Ok(Texts { texts: vec![ptx::text_of_image(bytes).into_owned()], sm }),
        Image::Elf(bytes) => {
            // What cannot be read is machine code all the same.
            assembled_from(objects::sources(bytes).unwrap_or_default(), sm).ok_or_else(machine_code)
        }
        Image::Fatbin(fatbin) => {
            let mut sm = sm;
            let mut entries = fatbin.choose_ptx(Target::new(sm)).map_err(damaged)?;
            if entries.is_empty() {
                // Damaged machine code is of no less use than other.
                let carried = assembled_from(fatbin.sources(Target::new(sm)).unwrap_or_default(), sm);
                let oldest = fatbin.oldest_ptx().map_err(damaged)?;
                if let Some(texts) = carried
                    && (texts.sm == sm || oldest.is_none())
                {
                    return Ok(texts);
                }
                sm = oldest.ok_or(Error::NoBinaryForDevice)?;
                entries = fatbin.choose_ptx(Target::new(sm)).map_err(damaged)?;
            }
            let text = |entry: &fatbin::Entry<'_>| {
                let payload = entry.payload().map_err(damaged)?;
                let text = ptx::text_of_image(&payload);
                // As NVIDIA's driver has it, the options that nvcc was given are the assembler's here too.
                let apart = entry.options().map_err(damaged)?.is_some_and(keeps_products);
                Ok(if apart { ptx::tune::products_kept(&text) } else { text.into_owned() })
            };
            Ok(Texts { texts: entries.iter().map(text).collect::<Result<_>>()?, sm })
        }
    }
}

fn machine_code() -> Error {
    let text = "machine code of a GPU; only PTX can be compiled, which it has in it only where it was made with -lineinfo or -G";
    Error::InvalidImage(text.into())
}

/// The texts that machine code carries, if any. As those of a fat binary they may be for a newer device.
fn assembled_from(texts: Vec<String>, sm: u32) -> Option<Texts> {
    let target = |text: &String| {
        let rest = text.split_once(".target")?.1.trim_start();
        Some(Architecture::parse(rest.split([',', ' ', '\n']).next()?)?.sm)
    };
    let newest = texts.iter().filter_map(target).max()?;
    Some(Texts { sm: sm.max(newest), texts })
}

/// Whether options of the assembler forbid it to fuse products and sums. The last one counts.
fn keeps_products(options: &str) -> bool {
    let mut words = options.split([' ', '=']).filter(|word| !word.is_empty());
    let mut kept = false;
    while let Some(word) = words.next() {
        if matches!(word, "-fmad" | "--fmad") {
            kept = words.next() == Some("false");
        }
    }
    kept
}

/// The PTX texts in an object file of the host, or in a static library. What has none for this device is left out: if
/// something of it is used, the link names the missing symbol.
///
/// # Errors
/// [`Error::InvalidImage`] if it cannot be read.
pub fn texts_of_objects(bytes: &[u8], sm: u32) -> Result<Vec<String>> {
    let mut texts = Vec::new();
    for container in objects::containers(bytes).map_err(damaged)? {
        if let Some(entry) = container.choose_ptx(Target::new(sm)).map_err(damaged)? {
            let text = ptx::text_of_image(&entry.payload().map_err(damaged)?).into_owned();
            if !ptx::provided::is_device_runtime(&text, Device { sm }) {
                texts.push(text);
            }
        }
    }
    Ok(texts)
}

fn damaged(error: FatbinError) -> Error {
    Error::InvalidImage(error.to_string())
}

#[cfg(test)]
mod tests {
    use fatbin::writer::{ContainerWriter, EntryWriter, machine_code};

    use super::*;

    #[test]
    fn the_best_text_of_a_fat_binary() {
        let bytes = ContainerWriter::new()
            .entry(EntryWriter::ptx(70, ".version 6.0\n"))
            .entry(EntryWriter::ptx(90, ".version 8.0\n"))
            .entry(EntryWriter::ptx(100, ".version 9.0\n"))
            .finish();
        let image = from_bytes(&bytes).unwrap();
        let texts = |text: &str, sm| Ok(Texts { texts: vec![text.to_owned()], sm });
        assert_eq!(texts_of(&image, 90), texts(".version 8.0\n", 90));
        assert_eq!(texts_of(&image, 50), texts(".version 6.0\n", 70));
        let specific =
            ContainerWriter::new().entry(EntryWriter::ptx(100, ".version 9.0\n").arch_specific()).finish();
        assert_eq!(texts_of(&from_bytes(&specific).unwrap(), 90), Err(Error::NoBinaryForDevice));
    }

    #[test]
    fn the_text_that_machine_code_was_assembled_from() {
        let carrying = |sm: u32| machine_code(&[&format!(".version 9.0\n.target sm_{sm}, debug\n")]);
        let texts = |sm: u32, of: u32| {
            Ok(Texts { texts: vec![format!(".version 9.0\n.target sm_{of}, debug\n")], sm })
        };
        assert_eq!(texts_of(&from_bytes(&carrying(80)).unwrap(), 90), texts(90, 80));
        assert_eq!(texts_of(&from_bytes(&carrying(120)).unwrap(), 90), texts(120, 120));
        let of = |entries: Vec<EntryWriter>| {
            let bytes = entries.into_iter().fold(ContainerWriter::new(), ContainerWriter::entry).finish();
            texts_of(&from_bytes(&bytes).unwrap(), 90)
        };
        let code = |sm| EntryWriter::elf(sm, carrying(sm));
        assert_eq!(of(vec![code(75), code(80), code(100)]), texts(90, 80));
        assert_eq!(of(vec![code(120), code(100)]), texts(100, 100));
        let text = |sm| EntryWriter::ptx(sm, ".version 9.0\n");
        // PTX for the device comes first, then what machine code for it carries, then PTX for others.
        assert_eq!(of(vec![code(90), text(80)]), Ok(Texts { texts: vec![".version 9.0\n".into()], sm: 90 }));
        assert_eq!(of(vec![code(90), text(100)]), texts(90, 90));
        assert_eq!(
            of(vec![code(110), text(100)]),
            Ok(Texts { texts: vec![".version 9.0\n".into()], sm: 100 })
        );
        let none = EntryWriter::elf(90, machine_code(&[]));
        assert_eq!(of(vec![none]), Err(Error::NoBinaryForDevice));
    }

    #[test]
    fn options_of_the_assembler_are_kept_to() {
        let of = |options: &str| {
            let entry = EntryWriter::ptx(80, "mul.f32 a,b,c;").options(options);
            let bytes = ContainerWriter::new().entry(entry).finish();
            texts_of(&from_bytes(&bytes).unwrap(), 90).unwrap().texts
        };
        for options in [" --fmad false ", "-fmad=false", "-O2 --fmad=false -v", "-fmad true -fmad false"] {
            assert_eq!(of(options), ["mul.rn.f32 a,b,c;"], "{options}");
        }
        for options in ["", "-fmad=true", "--fmad true", "-fmad false --fmad=true"] {
            assert_eq!(of(options), ["mul.f32 a,b,c;"], "{options}");
        }
    }

    #[test]
    fn other_images() {
        assert_eq!(
            texts_of(&from_bytes(b".version 8.0\0rest").unwrap(), 90),
            Ok(Texts { texts: vec![".version 8.0".into()], sm: 90 })
        );
        assert!(matches!(texts_of(&from_bytes(b"\x7fELF\x02").unwrap(), 90), Err(Error::InvalidImage(_))));
        assert!(matches!(from_bytes(&fatbin::CONTAINER_MAGIC.to_le_bytes()), Err(Error::InvalidImage(_))));
    }
}
