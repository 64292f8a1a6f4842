//! What kernels take, as the PTX that was loaded says: a driver tells sizes only, and older ones not even these.

use super::super::embedded::parameters;
use crate::Image;
use crate::arguments::Parameter;
use ::device::module::{from_bytes, texts_of};
use std::collections::HashMap;

/// The parameters of each kernel in the images. What cannot be read has none here; the driver has the last word on it.
pub fn of(images: &[(&str, Image<'_>)], sm: u32) -> HashMap<String, Vec<Parameter>> {
    let mut found = HashMap::new();
    for (_, image) in images {
        match image {
            Image::Ptx(text) => collect(text, &mut found),
            Image::Fatbin(bytes) => {
                let texts = from_bytes(bytes).and_then(|image| texts_of(&image, sm));
                texts.iter().flat_map(|image| &image.texts).for_each(|text| collect(text, &mut found));
            }
        }
    }
    found
}

fn collect(text: &str, found: &mut HashMap<String, Vec<Parameter>>) {
    // Declarations are read whatever the device: only the driver knows what it supports.
    let options = ptx::Options { device: None, bodies: ptx::Bodies::Skipped };
    let entries = ptx::parse_with(text, &options).and_then(|module| ptx::lower::entries(text, &module));
    for entry in entries.into_iter().flatten() {
        let parameters = parameters(&entry);
        found.insert(entry.name, parameters);
    }
}
