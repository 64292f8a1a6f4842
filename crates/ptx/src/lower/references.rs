//! Variables of opaque types: textures, samplers and surfaces that the host gives a module.

use simt_ir::texture::{AddressMode, Filter, Sampler};

use super::links::variable_name;
use crate::ast::{Field, FieldValue, Initialiser, Linkage, Module, Type};

/// A variable of module scope that stands for an object.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectVariable {
    /// Its name.
    pub name: String,
    /// What it stands for.
    pub kind: ObjectKind,
}

/// What a variable of an opaque type stands for.
#[derive(Clone, Debug, PartialEq)]
pub enum ObjectKind {
    /// `.texref`
    Texture,
    /// `.samplerref`, with what its initial value says. Its coordinates count as normalized unless they are forced not to be.
    Sampler(Sampler),
    /// `.surfref`
    Surface,
}

/// All variables of the module that stand for objects, in order. Those that another module defines are among them.
pub fn object_variables(module: &Module<'_>) -> Vec<ObjectVariable> {
    let mut all: Vec<ObjectVariable> = Vec::new();
    for variable in module.variables() {
        let kind = match variable.ty {
            Type::Texref => ObjectKind::Texture,
            Type::Samplerref => ObjectKind::Sampler(match &variable.initialiser {
                Some(Initialiser::Fields(fields)) => sampler(fields),
                _ => sampler(&[]),
            }),
            Type::Surfref => ObjectKind::Surface,
            _ => continue,
        };
        let new = ObjectVariable { name: variable_name(variable, None), kind };
        match all.iter_mut().find(|known| known.name == new.name) {
            // A definition replaces a declaration.
            Some(known) if variable.linkage != Linkage::Extern => *known = new,
            Some(_) => {}
            None => all.push(new),
        }
    }
    all
}

fn sampler(fields: &[Field<'_>]) -> Sampler {
    let mut sampler = Sampler {
        address: [AddressMode::Wrap; 3],
        normalized: true,
        level_clamp: [0.0, f32::MAX],
        ..Sampler::default()
    };
    for field in fields {
        let number = match &field.value {
            FieldValue::Word(word) => WORDS.iter().find(|(name, _)| *name == word.text).map_or(0, |w| w.1),
            FieldValue::Number(number) => number.integer().unwrap_or(0),
        };
        let mode = match number {
            0 => AddressMode::Wrap,
            1 => AddressMode::Mirror,
            4 => AddressMode::Border,
            _ => AddressMode::Clamp,
        };
        match field.name.text {
            "addr_mode_0" => sampler.address[0] = mode,
            "addr_mode_1" => sampler.address[1] = mode,
            "addr_mode_2" => sampler.address[2] = mode,
            "filter_mode" if number == 1 => sampler.filter = Filter::Linear,
            "force_unnormalized_coords" => sampler.normalized = number == 0,
            // What belongs to textures and surfaces comes with what the host binds.
            _ => {}
        }
    }
    sampler
}

/// Words for values of fields, and the numbers that queries give for them.
const WORDS: [(&str, u64); 7] = [
    ("wrap", 0),
    ("mirror", 1),
    ("clamp_ogl", 2),
    ("clamp_to_edge", 3),
    ("clamp_to_border", 4),
    ("nearest", 0),
    ("linear", 1),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_module_says_about_its_objects() {
        let text = ".version 7.0\n.target sm_70, texmode_independent\n.address_size 64\n\
            .global .texref t;\n\
            .global .samplerref s = { addr_mode_0 = clamp_to_border, filter_mode = linear, force_unnormalized_coords = 1 };\n\
            .global .surfref u;\n";
        let module = crate::parse(text).unwrap();
        let all = object_variables(&module);
        let names: Vec<&str> = all.iter().map(|object| object.name.as_str()).collect();
        assert_eq!(names, ["t", "s", "u"]);
        let ObjectKind::Sampler(sampler) = &all[1].kind else { panic!("s is a sampler") };
        assert_eq!(sampler.address, [AddressMode::Border, AddressMode::Wrap, AddressMode::Wrap]);
        assert_eq!((sampler.filter, sampler.normalized), (Filter::Linear, false));
        assert_eq!([&all[0].kind, &all[2].kind], [&ObjectKind::Texture, &ObjectKind::Surface]);
    }
}
