//! One module out of several.
//!
//! Symbols join by name: `.extern` with its definition, `.weak` and `.common` with each other. What is
//! private to a module stays so, under another name where two modules have the same. The result is text, as
//! modules come, so whatever takes a module takes a linked one.

use std::collections::{HashMap, HashSet};

use crate::ast::{
    Body, Directives, File, Function, Initialiser, Item, Linkage, Module, Name, StateSpace, Target, Variable,
    Version,
};
use crate::error::{Errors, LoadError, LoadErrorKind};
use crate::names::NameSet;
use crate::parser::{Bodies, Options, parse_with};
use crate::provided::is_provided;
use crate::resolve::Symbols;
use crate::span::Span;
use crate::target::{Architecture, Device, Portability, check_option};
use crate::visit::{free_names, initialiser_names};

/// A module to link.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// What errors call it.
    pub name: &'a str,
    /// Its text.
    pub text: &'a str,
}

/// Links modules into one, for `device`. Errors of a single text carry its line and column; those between
/// modules name the symbol and the inputs.
pub fn link(inputs: &[Input<'_>], device: Device) -> Result<String, Errors> {
    let text = join(inputs, device)?;
    let module = read(&text, device)?;
    let error = |name: &str| {
        let message = format!("unresolved extern symbol '{name}'");
        LoadError::without_place(LoadErrorKind::Unresolved, name, message)
    };
    Errors::from_list(unresolved(&module).into_iter().map(error).collect())?;
    Ok(text)
}

/// The texts as one, in which symbols may still be declared only.
///
/// # Errors
/// As for [`link`], but for what is defined nowhere.
pub fn join(inputs: &[Input<'_>], device: Device) -> Result<String, Errors> {
    let mut modules = Vec::new();
    for input in inputs {
        let module = read(input.text, device)?;
        Symbols::new(input.text, &module)?;
        modules.push(module);
    }
    let renamed = rename_private(inputs, &modules);
    for (module, text) in modules.iter_mut().zip(&renamed) {
        if let Some(text) = text {
            *module = read(text, device)?;
        }
    }
    let names: Vec<&str> = inputs.iter().map(|input| input.name).collect();
    Ok(Linker::new(names).link(modules)?.to_string())
}

/// The names of which nothing else may define one: of kernels, and of what is visible.
///
/// # Errors
/// Those of the text.
pub fn strong_names(text: &str, device: Device) -> Result<Vec<String>, Errors> {
    let module = parse_with(text, &Options { device: Some(device), bodies: Bodies::Skipped })?;
    let names = module.items.iter().filter_map(|item| match item {
        Item::Function(function) => {
            let is_strong = function.is_entry || function.linkage == Linkage::Visible;
            (is_strong && function.body != Body::Declared).then_some(function.name)
        }
        Item::Variable(variable) => (variable.linkage == Linkage::Visible).then_some(variable.name),
        _ => None,
    });
    Ok(names.map(|name| name.text.to_owned()).collect())
}

/// The text with the variables of these names that it only declares as definitions, where there are such: whoever
/// loads it knows where they are. What is found leaves `names`. Only their declarations change, each within the lines it has, so that
/// errors and faults name the lines of the program's own text.
pub fn define(text: &str, names: &mut HashSet<&str>, device: Device) -> Result<Option<String>, Errors> {
    let module = read(text, device)?;
    let variables: Vec<Variable<'_>> = module
        .items
        .into_iter()
        .filter_map(|item| match item {
            Item::Variable(variable) => Some(variable),
            _ => None,
        })
        .collect();
    let (mut defined, mut done) = (String::with_capacity(text.len()), 0);
    // One declaration may have several names.
    for declaration in variables.chunk_by(|a, b| a.span.start == b.span.start) {
        let mut found = false;
        let each: Vec<String> = declaration
            .iter()
            .map(|variable| {
                let mut variable = variable.clone();
                if needs_definition(&variable) && names.remove(variable.name.text) {
                    (variable.linkage, found) = (Linkage::Visible, true);
                }
                variable.to_string()
            })
            .collect();
        let (Some(first), Some(last), true) = (declaration.first(), declaration.last(), found) else {
            continue;
        };
        let (start, end) = (first.span.start as usize, last.span.end as usize);
        defined += &text[done..start];
        defined += &each.join("; ");
        defined.extend(std::iter::repeat_n('\n', text[start..end].matches('\n').count()));
        done = end;
    }
    Ok((done > 0).then(|| defined + &text[done..]))
}

/// The variables of known size that `module` uses, and neither it nor the device defines. Of a whole program nobody else is
/// there to define them: the assembler does then.
pub fn undefined_variables<'a>(module: &Module<'a>) -> Vec<&'a str> {
    let mut open: NameSet<&str> = NameSet::default();
    for variable in module.variables() {
        let is_memory = matches!(variable.space, StateSpace::Global | StateSpace::Const | StateSpace::Shared);
        if is_memory && needs_definition(variable) && variable.size().is_some() {
            open.insert(variable.name.text);
        }
    }
    if open.is_empty() {
        return Vec::new();
    }
    unresolved(module).into_iter().filter(|name| open.contains(name)).collect()
}

/// The symbols that `module` uses, and neither it nor the device defines, each once, in order of use. Bodies
/// that have not been read are not looked at.
pub fn unresolved<'a>(module: &Module<'a>) -> Vec<&'a str> {
    unresolved_names(module).into_iter().map(|name| name.text).collect()
}

/// As [`unresolved`], as errors that tell where in `source` each is used first.
pub fn check_unresolved<'a>(source: &'a str, module: &Module<'a>) -> Result<(), Errors> {
    let error = |name: Name<'a>| {
        let message = format!("unresolved extern symbol '{}'", name.text);
        LoadError::at(LoadErrorKind::Unresolved, source, name.span, message)
    };
    Errors::from_list(unresolved_names(module).into_iter().map(error).collect())
}

fn read(text: &str, device: Device) -> Result<Module<'_>, Errors> {
    parse_with(text, &Options { device: Some(device), bodies: Bodies::Parsed })
}

fn unresolved_names<'a>(module: &Module<'a>) -> Vec<Name<'a>> {
    let mut open: NameSet<&str> = NameSet::default();
    let mut defined: NameSet<&str> = NameSet::default();
    for item in &module.items {
        match item {
            Item::Function(f) if f.is_defined() || is_provided(f.name.text) => defined.insert(f.name.text),
            Item::Function(f) => open.insert(f.name.text),
            Item::Variable(v) if needs_definition(v) => open.insert(v.name.text),
            Item::Variable(v) => defined.insert(v.name.text),
            Item::Alias(alias) => defined.insert(alias.name.text),
            _ => false,
        };
    }
    let mut found = Vec::new();
    // Most modules are whole: nothing needs to be looked for in their bodies.
    open.retain(|name| !defined.contains(name));
    if open.is_empty() {
        return found;
    }
    let mut use_of = |name: &Name<'a>| {
        if open.remove(name.text) {
            found.push(*name);
        }
    };
    for item in &module.items {
        match item {
            Item::Function(function) => free_names(function, &mut use_of),
            Item::Variable(Variable { initialiser: Some(initialiser), .. }) => {
                initialiser_names(initialiser, &mut use_of);
            }
            _ => {}
        }
    }
    found
}

/// Whether a declaration leaves the variable to be defined elsewhere. Shared memory of open size is defined
/// by the launch.
fn needs_definition(variable: &Variable<'_>) -> bool {
    let by_launch = variable.space == StateSpace::Shared && variable.size().is_none();
    variable.linkage == Linkage::Extern && variable.initialiser.is_none() && !by_launch
}

/// The texts of modules in which private symbols had to be renamed, because another module uses the same
/// name; `None` where nothing had to.
fn rename_private(inputs: &[Input<'_>], modules: &[Module<'_>]) -> Vec<Option<String>> {
    // Who has each name: the first module, and whether it is the only one.
    let mut owners: HashMap<&str, Owner> = HashMap::new();
    for (at, module) in modules.iter().enumerate() {
        let private = private_names(module);
        for name in module.items.iter().filter_map(name_of) {
            let is_private = private.contains(name.text);
            let owner = owners.entry(name.text).or_insert(Owner { first: at, single: true, public: false });
            owner.single &= owner.first == at;
            owner.public |= !is_private;
        }
    }
    let rename = |(at, module): (usize, &Module<'_>)| {
        let mut clashing = private_names(module);
        clashing.retain(|name| owners.get(name).is_some_and(|o| !o.single && (o.public || o.first != at)));
        if clashing.is_empty() {
            return None;
        }
        let suffix = fresh_suffix(inputs, at);
        Some(with_suffix(inputs[at].text, &occurrences(module, &clashing), &suffix))
    };
    modules.iter().enumerate().map(rename).collect()
}

struct Owner {
    first: usize,
    single: bool,
    public: bool,
}

/// The names that only this module means. Kernels are found by name, so they are never private.
fn private_names<'a>(module: &Module<'a>) -> HashSet<&'a str> {
    let mut private = HashSet::new();
    let mut public = HashSet::new();
    for item in &module.items {
        let (name, is_private) = match item {
            Item::Function(f) => (f.name.text, f.linkage == Linkage::Private && !f.is_entry),
            Item::Variable(v) => (v.name.text, v.linkage == Linkage::Private && v.count.is_none()),
            _ => continue,
        };
        if is_private {
            private.insert(name)
        } else {
            public.insert(name)
        };
    }
    private.retain(|name| !public.contains(name));
    private
}

fn name_of<'a>(item: &Item<'a>) -> Option<Name<'a>> {
    match item {
        Item::Function(function) => Some(function.name),
        Item::Variable(variable) => Some(variable.name),
        _ => None,
    }
}

/// Where `names` stand in a module's text, in order.
fn occurrences(module: &Module<'_>, names: &HashSet<&str>) -> Vec<Span> {
    let mut spans = Vec::new();
    let mut note = |name: &Name<'_>| {
        if names.contains(name.text) {
            spans.push(name.span);
        }
    };
    for item in &module.items {
        match item {
            Item::Function(function) => {
                note(&function.name);
                free_names(function, &mut note);
            }
            Item::Variable(variable) => {
                note(&variable.name);
                if let Some(initialiser) = &variable.initialiser {
                    initialiser_names(initialiser, &mut note);
                }
            }
            Item::Alias(alias) => {
                note(&alias.name);
                note(&alias.target);
            }
            _ => {}
        }
    }
    spans.sort_unstable_by_key(|span| span.start);
    spans.dedup_by_key(|span| span.start);
    spans
}

/// A suffix that occurs in none of the texts, so that no name made with it can mean anything else.
fn fresh_suffix(inputs: &[Input<'_>], at: usize) -> String {
    let mut suffix = format!("$module{at}");
    while inputs.iter().any(|input| input.text.contains(&suffix)) {
        suffix.push('_');
    }
    suffix
}

fn with_suffix(text: &str, spans: &[Span], suffix: &str) -> String {
    let mut result = String::with_capacity(text.len() + spans.len() * suffix.len());
    let mut copied = 0;
    for span in spans {
        result.push_str(&text[copied..span.end as usize]);
        result.push_str(suffix);
        copied = span.end as usize;
    }
    result.push_str(&text[copied..]);
    result
}

/// Which definition or declaration of a symbol is kept.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Strength {
    Declared,
    Common,
    Weak,
    Strong,
}

struct Linker<'a> {
    inputs: Vec<&'a str>,
    errors: Vec<LoadError>,
}

/// A symbol's best item so far.
struct Kept<'a> {
    strength: Strength,
    /// Which input it is from.
    input: usize,
    item: Item<'a>,
}

impl<'a> Linker<'a> {
    fn new(inputs: Vec<&'a str>) -> Linker<'a> {
        Linker { inputs, errors: Vec::new() }
    }

    fn link(mut self, modules: Vec<Module<'a>>) -> Result<Module<'a>, Errors> {
        let version = modules.iter().map(|m| m.version).max().unwrap_or(Version { major: 9, minor: 0 });
        let target = common_target(version, &modules);
        let mut files = Files::default();
        let mut order: Vec<&'a str> = Vec::new();
        let mut kept: HashMap<&'a str, Kept<'a>> = HashMap::new();
        let mut others = Vec::new();
        for (input, module) in modules.into_iter().enumerate() {
            let indices = files.add(&module);
            let aliases: HashSet<&str> = module.items.iter().filter_map(alias_name).collect();
            for mut item in module.items {
                match &mut item {
                    // Debugging information describes its own module only.
                    Item::File(_) | Item::Section(_) => continue,
                    Item::Pragma(_) | Item::Alias(_) => {
                        others.push(item);
                        continue;
                    }
                    Item::Function(function) => renumber(function, &indices),
                    Item::Variable(_) => {}
                }
                let Some(name) = name_of(&item) else { continue };
                let strength = strength(&item, &aliases);
                match kept.get_mut(name.text) {
                    None => {
                        order.push(name.text);
                        kept.insert(name.text, Kept { strength, input, item });
                    }
                    Some(previous) => self.join(previous, Kept { strength, input, item }),
                }
            }
        }
        Errors::from_list(self.errors)?;
        let mut module = Module { version, target, address_size: Some(64), items: files.into_items() };
        let symbols: Vec<Item<'a>> =
            order.into_iter().filter_map(|name| kept.remove(name)).map(|k| k.item).collect();
        module.items.extend(in_order_of_use(symbols));
        module.items.extend(others);
        Ok(module)
    }

    /// Two items of one name: the stronger stays.
    fn join(&mut self, previous: &mut Kept<'a>, next: Kept<'a>) {
        let name = name_of(&next.item).map_or("", |name| name.text);
        let same_kind = match (&previous.item, &next.item) {
            (Item::Function(a), Item::Function(b)) => a.is_entry == b.is_entry,
            (Item::Variable(a), Item::Variable(b)) => a.space == b.space,
            _ => false,
        };
        let both_strong = (previous.strength, next.strength) == (Strength::Strong, Strength::Strong);
        if !same_kind || both_strong {
            let (a, b) = (self.inputs[previous.input], self.inputs[next.input]);
            let what = if same_kind { "defined" } else { "declared differently" };
            let message = format!("symbol '{name}' is {what} in '{a}' and in '{b}'");
            self.errors.push(LoadError::without_place(LoadErrorKind::MultiplyDefined, name, message));
            return;
        }
        let larger = |a: &Item<'_>, b: &Item<'_>| match (a, b) {
            (Item::Variable(a), Item::Variable(b)) => (a.size(), a.alignment()) > (b.size(), b.alignment()),
            _ => false,
        };
        let stronger = next.strength > previous.strength
            || next.strength == previous.strength && larger(&next.item, &previous.item);
        if stronger {
            *previous = next;
        }
    }
}

fn strength(item: &Item<'_>, aliases: &HashSet<&str>) -> Strength {
    match item {
        Item::Function(f) if !f.is_defined() && !aliases.contains(f.name.text) => Strength::Declared,
        Item::Function(Function { linkage, .. }) if *linkage == Linkage::Weak => Strength::Weak,
        Item::Variable(v) if v.linkage == Linkage::Weak => Strength::Weak,
        Item::Variable(v) if v.linkage == Linkage::Common && v.initialiser.is_none() => Strength::Common,
        Item::Variable(v) if v.linkage == Linkage::Extern && v.initialiser.is_none() => Strength::Declared,
        _ => Strength::Strong,
    }
}

fn alias_name<'a>(item: &Item<'a>) -> Option<&'a str> {
    match item {
        Item::Alias(alias) => Some(alias.name.text),
        _ => None,
    }
}

/// Declares before it defines: functions may call each other, and variables hold addresses of both.
fn in_order_of_use(symbols: Vec<Item<'_>>) -> Vec<Item<'_>> {
    let used = used_early(&symbols);
    let mut declarations = Vec::new();
    let (mut plain, mut initialised, mut functions) = (Vec::new(), Vec::new(), Vec::new());
    for item in symbols {
        match &item {
            Item::Function(function) => {
                if function.is_defined() && (!function.is_entry || used.contains(function.name.text)) {
                    let directives =
                        if function.is_entry { Directives::default() } else { function.directives.clone() };
                    let head = Function {
                        body: Body::Declared,
                        directives,
                        params: function.params.clone(),
                        returns: function.returns.clone(),
                        ..*function
                    };
                    declarations.push(Item::Function(head));
                }
                functions.push(item);
            }
            Item::Variable(variable) if has_addresses(variable) => {
                if used.contains(variable.name.text) && variable.linkage != Linkage::Private {
                    let linkage = Linkage::Extern;
                    let head = Variable { linkage, initialiser: None, ..variable.clone() };
                    declarations.push(Item::Variable(head));
                }
                initialised.push(item);
            }
            _ => plain.push(item),
        }
    }
    let (declared, defined): (Vec<_>, Vec<_>) =
        functions.into_iter().partition(|item| matches!(item, Item::Function(f) if !f.is_defined()));
    let initialised = behind_what_they_name(initialised);
    [declared, declarations, plain, initialised, defined].into_iter().flatten().collect()
}

/// Variables, private ones that others' initial values name before these: they cannot be declared ahead, and what defines a symbol that an
/// earlier module declares has its place.
fn behind_what_they_name<'a>(variables: Vec<Item<'a>>) -> Vec<Item<'a>> {
    let private = |(item, at): (&Item<'a>, usize)| match item {
        Item::Variable(variable) if variable.linkage == Linkage::Private => Some((variable.name.text, at)),
        _ => None,
    };
    let index: HashMap<&str, usize> = variables.iter().zip(0..).filter_map(private).collect();
    let (mut found, mut order) = (vec![false; variables.len()], Vec::new());
    for first in 0..variables.len() {
        let mut open = vec![(first, false)];
        while let Some((at, is_behind)) = open.pop() {
            if is_behind {
                order.push(at);
            } else if !std::mem::replace(&mut found[at], true) {
                open.push((at, true));
                if let Item::Variable(Variable { initialiser: Some(initialiser), .. }) = &variables[at] {
                    initialiser_names(initialiser, &mut |name| {
                        open.extend(index.get(name.text).map(|other| (*other, false)));
                    });
                }
            }
        }
    }
    let mut variables: Vec<Option<Item<'_>>> = variables.into_iter().map(Some).collect();
    order.into_iter().filter_map(|at| variables[at].take()).collect()
}

/// Whether the variable's initial value may name others.
fn has_addresses(variable: &Variable<'_>) -> bool {
    matches!(variable.initialiser, Some(Initialiser::Address(_) | Initialiser::List(_)))
}

/// The names that stand where what they mean may not have been defined yet: kernels in functions, variables in initial values.
fn used_early<'a>(symbols: &[Item<'a>]) -> NameSet<&'a str> {
    let mut used: NameSet<&str> = NameSet::default();
    for item in symbols {
        match item {
            Item::Function(function) => free_names(function, |name| used.extend([name.text])),
            Item::Variable(Variable { initialiser: Some(initialiser), .. }) => {
                initialiser_names(initialiser, &mut |name| used.extend([name.text]));
            }
            _ => {}
        }
    }
    used
}

/// The architecture that all modules' code runs on, with all options that still hold: debugging information is not linked, and how textures
/// are bound, which is of no consequence here, is what the newest module says.
fn common_target<'a>(version: Version, modules: &[Module<'a>]) -> Target<'a> {
    let rank = |target: &Target<'_>| {
        let architecture = Architecture::parse(target.architecture.text);
        architecture
            .map(|a| (a.sm, a.portability != Portability::Onward, a.portability == Portability::Exact))
    };
    let newest = modules.iter().map(|m| &m.target).max_by_key(|target| rank(target));
    let sm_52 = Name { text: "sm_52", span: Span::default() };
    let mut target = newest.cloned().unwrap_or(Target { architecture: sm_52, options: Vec::new() });
    target.options.clear();
    let sm = Architecture::parse(target.architecture.text).map_or(0, |architecture| architecture.sm);
    for option in
        newest.into_iter().chain(modules.iter().map(|m| &m.target)).flat_map(|target| &target.options)
    {
        let holds = option.text != "debug" && check_option(version, sm, &target.options, option.text).is_ok();
        if holds && !target.options.iter().any(|there| there.text == option.text) {
            target.options.push(*option);
        }
    }
    target
}

/// The `.file`s of all modules under new numbers.
#[derive(Default)]
struct Files<'a> {
    list: Vec<File<'a>>,
    by_name: HashMap<&'a str, u64>,
}

impl<'a> Files<'a> {
    /// Adds a module's files; gives its old numbers and their new ones.
    fn add(&mut self, module: &Module<'a>) -> HashMap<u64, u64> {
        let mut indices = HashMap::new();
        for item in &module.items {
            let Item::File(file) = item else { continue };
            let next = self.list.len() as u64 + 1;
            let index = *self.by_name.entry(file.name).or_insert(next);
            if index == next {
                self.list.push(File { index, ..*file });
            }
            indices.insert(file.index, index);
        }
        indices
    }

    fn into_items(self) -> Vec<Item<'a>> {
        self.list.into_iter().map(Item::File).collect()
    }
}

fn renumber(function: &mut Function<'_>, indices: &HashMap<u64, u64>) {
    let Body::Parsed(code) = &mut function.body else { return };
    for loc in &mut code.locs {
        if let Some(index) = indices.get(&loc.file) {
            loc.file = *index;
        }
        if let Some(inlined) = &mut loc.inlined
            && let Some(index) = indices.get(&inlined.file)
        {
            inlined.file = *index;
        }
    }
}
