//! Which test shows which instruction: the rows of the instruction table, held against the kernels that the tests run.
//!
//! A row counts as shown when the hardware's answer to it is in the corpus, a kernel of `tests/ptx` uses it, or the kernels made from the
//! table or around products do. Nothing here is written by hand: the table gives the rows, the kernels give the tests.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write;
use std::path::{Path, PathBuf};

use ptx::ast::Version;
use ptx::isa::{Place, Row};
use ptx::special::SpecialRegister;

use crate::golden::Corpus;
use crate::module::read;
use crate::{agreement, asynchronous, products};

/// What the tests show.
pub struct Support {
    rows: Vec<Row>,
    /// For each row the tests that show it.
    shown: Vec<Shown>,
    /// For each special register the first file that reads it.
    registers: HashMap<SpecialRegister, String>,
    /// For each directive the first file that has it.
    directives: HashMap<&'static str, String>,
}

#[derive(Default)]
struct Shown {
    /// A case of the corpus.
    corpus: Option<String>,
    /// A file of `tests/ptx`.
    file: Option<String>,
    /// The kernels made from the table have it.
    agreement: bool,
    /// A kernel made from the table does what a model says.
    model: bool,
    /// A product of a warpgroup or of matrices in memory has it.
    product: bool,
    /// The modifiers that some test has.
    words: BTreeSet<&'static str>,
}

impl Support {
    /// Reads the corpus and the kernels under `tests`.
    ///
    /// # Errors
    /// Something cannot be read, or a kernel of `tests/ptx` is wrong.
    pub fn read(tests: &Path) -> Result<Support, String> {
        let rows = ptx::isa::rows();
        let mut support = Support {
            shown: rows.iter().map(|_| Shown::default()).collect(),
            rows,
            registers: HashMap::new(),
            directives: HashMap::new(),
        };
        for corpus in Corpus::read_all(&tests.join("golden"))? {
            for name in corpus.module_names() {
                support.corpus_module(&corpus, name);
            }
        }
        for path in kernels(&tests.join("ptx"))? {
            let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
            let module = read(&text).map_err(|e| format!("{}: {e}", path.display()))?;
            let uses = ptx::isa::uses(&text, &module).map_err(|e| format!("{}: {e}", path.display()))?;
            let name = path.strip_prefix(tests).unwrap_or(&path).display().to_string();
            for register in ptx::special::used(&text) {
                support.registers.entry(register).or_insert_with(|| name.clone());
            }
            for directive in ptx::directives::used(&text) {
                support.directives.entry(directive).or_insert_with(|| name.clone());
            }
            for found in uses {
                let shown = &mut support.shown[found.row];
                shown.file.get_or_insert_with(|| name.clone());
                shown.words.extend(found.words);
            }
        }
        for product in products::all() {
            let under_test = under_test(&product.text);
            let module = ptx::parse(&product.text).map_err(|e| format!("{}: {e}", product.name))?;
            let uses =
                ptx::isa::uses(&product.text, &module).map_err(|e| format!("{}: {e}", product.name))?;
            for found in uses.into_iter().filter(|found| under_test[found.line as usize - 1]) {
                let shown = &mut support.shown[found.row];
                shown.product = true;
                shown.words.extend(found.words);
            }
        }
        for example in ptx::isa::examples() {
            if agreement::is_legal(&example) {
                let shown = &mut support.shown[example.row];
                shown.agreement = true;
                shown.words.extend(example.words);
            }
        }
        for case in asynchronous::cases() {
            let shown = &mut support.shown[case.row];
            shown.model = true;
            shown.words.extend(case.words);
        }
        Ok(support)
    }

    fn corpus_module(&mut self, corpus: &Corpus, name: &str) {
        let text = corpus.module(name).unwrap_or_default();
        let under_test = under_test(text);
        // A module that needs what is not there shows nothing.
        let Ok(uses) = ptx::parse(text).and_then(|module| ptx::isa::uses(text, &module)) else { return };
        let cases: BTreeMap<&str, &str> = corpus
            .cases
            .iter()
            .filter(|case| case.ptx == name)
            .map(|case| (case.entry(), case.name.as_str()))
            .collect();
        for found in uses {
            let Some(case) = cases.get(found.function.as_str()) else { continue };
            if !under_test[found.line as usize - 1] {
                continue;
            }
            // Of many cases, one that is named after the instruction.
            let opcode = self.rows[found.row].opcode;
            let shown = &mut self.shown[found.row];
            let named = |name: &str| name.starts_with(opcode);
            if shown.corpus.as_ref().is_none_or(|old| named(case) && !named(old)) {
                shown.corpus = Some((*case).to_owned());
            }
            shown.words.extend(found.words);
        }
    }

    /// Rows, and modifiers of rows, that no test here shows.
    fn gaps(&self) -> Vec<String> {
        let registers = ptx::special::all().filter(|register| !self.registers.contains_key(register));
        let mut gaps: Vec<String> = registers.map(|register| format!("`{}`", register.display())).collect();
        let directives = ptx::directives::all().map(|directive| directive.name);
        gaps.extend(
            directives.filter(|name| !self.directives.contains_key(name)).map(|name| format!("`{name}`")),
        );
        for (row, shown) in self.rows() {
            let words = row.places.iter().flat_map(|place| &place.words);
            let missing: Vec<&str> = words.copied().filter(|word| !shown.words.contains(word)).collect();
            if !shown.is_shown() {
                gaps.push(format!("`{}`", synopsis(row)));
            } else if !missing.is_empty() {
                gaps.push(format!("`{}`: `.{}`", synopsis(row), shortened(&missing, "` `.")));
            }
        }
        gaps
    }

    fn rows(&self) -> impl Iterator<Item = (&Row, &Shown)> {
        self.rows.iter().zip(&self.shown)
    }

    /// The page, in Markdown.
    pub fn page(&self) -> String {
        let mut page = String::from(HEAD);
        let mut family = "";
        for (row, shown) in self.rows() {
            if row.family != family {
                family = row.family;
                let _ = write!(
                    page,
                    "\n## {family}\n\n| instruction | since | shown by |\n| --- | --- | --- |\n"
                );
            }
            let test = match (&shown.corpus, &shown.file) {
                (Some(case), _) => format!("`{case}`"),
                (None, Some(file)) => link(Some(file)),
                (None, None) if shown.product => "products".to_owned(),
                (None, None) if shown.agreement => "both back ends".to_owned(),
                (None, None) if shown.model => "a model".to_owned(),
                (None, None) => "see below".to_owned(),
            };
            let _ = writeln!(page, "| `{}` | {} | {test} |", synopsis(row), since(row));
        }
        self.registers_and_directives(&mut page);
        let gaps = self.gaps();
        if !gaps.is_empty() {
            page.push_str(GAPS);
            page.extend(gaps.iter().map(|gap| format!("- {gap}\n")));
        }
        page.push_str(REFUSED);
        let refused = ptx::isa::refused().iter().map(|later| later.example.trim_end_matches(';').to_owned());
        page.extend(refused.map(|text| format!("- `{text}`\n")));
        page
    }
}

impl Support {
    fn registers_and_directives(&self, page: &mut String) {
        page.push_str(REGISTERS);
        for register in ptx::special::all() {
            let description = register.describe();
            let (name, ty) = (register.display(), description.ty.name());
            let since = version_and_target(description.version, description.sm);
            let _ =
                writeln!(page, "| `{name}` | `.{ty}` | {since} | {} |", link(self.registers.get(&register)));
        }
        page.push_str(DIRECTIVES);
        for directive in ptx::directives::all() {
            let since = version_and_target(directive.version, directive.sm);
            let test = link(self.directives.get(directive.name));
            let _ = writeln!(page, "| {} | `{}` | {since} | {test} |", directive.group, directive.name);
        }
    }
}

/// A file of `tests` as a link.
fn link(file: Option<&String>) -> String {
    file.map_or_else(|| "see below".to_owned(), |file| format!("[{file}](../tests/{file})"))
}

impl Shown {
    fn is_shown(&self) -> bool {
        self.corpus.is_some() || self.file.is_some() || self.agreement || self.model || self.product
    }
}

const HEAD: &str = "# PTX instructions

Every instruction of PTX ISA 9.0 for targets up to `sm_90a`, with its modifiers: an entry of the instruction table (`crates/ptx/src/isa`) in
each row, with a test that shows it. Some of later targets are there too: a fat binary may have PTX for those alone.

- A name without a link is a case of the corpora in `tests/golden`: what a GPU answered, bit for bit.
- A file is a kernel with its expected output.
- \"Products\": kernels around a product of a warpgroup or of matrices in memory, with every number of columns and every layout. Both back ends
  agree with a model, and with what a GPU answered (`tests/kernels/tests/products.rs`).
- \"Both back ends\": the interpreter and compiled code agree bit for bit on kernels made from the table, which have every modifier of every
  row that needs nothing but registers and memory (`tests/kernels/tests/agreement.rs`).
- \"A model\": kernels made from the table, with every modifier of every row of asynchronous copies, tensor maps and clusters, do what a plain
  model beside them says (`tests/kernels/src/asynchronous`).

`make test` fails where this page and the tests disagree; `BLESS=1 cargo nextest run -p anywarp-kernel-tests the_page` writes it anew.

`[.x]` may be left out, and of `.{x,y}` there is one. \"Since\" is the first version of PTX and the first target.
";

const REGISTERS: &str = "
## Special registers

| register | type | since | shown by |
| --- | --- | --- | --- |
";

const DIRECTIVES: &str = "
## Directives

Pragmas and the parts of attributes stand here by their names. `.maxnctapersm`, `.tex` and banks of constants are refused, as newer assemblers
refuse them.

| group | directive | since | shown by |
| --- | --- | --- | --- |
";

const GAPS: &str = "
## Shown by no test of these kinds

Instructions and modifiers that other tests have, or none: barriers and matrices need more around them than a kernel made from the table
has.

";

const REFUSED: &str = "
## Refused by name

What PTX 9.0 has for later targets only. A module with it is refused when it is loaded, with a message that names it; `crates/ptx/tests/lower.rs`
shows that of an example of each, which are these.

";

fn synopsis(row: &Row) -> String {
    let place = |place: &Place| {
        let words = match &place.words[..] {
            [word] => format!(".{word}"),
            words => format!(".{{{}}}", shortened(words, ",")),
        };
        if place.optional { format!("[{words}]") } else { words }
    };
    let modifiers: String = row.places.iter().map(place).collect();
    format!("{}{modifiers} {}", row.opcode, row.operands.join(", ")).trim_end().to_owned()
}

/// Words, but for those in the middle of a long list.
fn shortened(words: &[&str], between: &str) -> String {
    match words {
        [first, second, .., last] if words.len() > 22 => [first, second, "...", last].join(between),
        words => words.join(between),
    }
}

fn version_and_target(version: Version, sm: u32) -> String {
    let mut text = format!("{}.{}", version.major, version.minor);
    if sm > 10 {
        let _ = write!(text, ", sm_{sm}");
    }
    text
}

fn since(row: &Row) -> String {
    let mut text = version_and_target(row.version, row.sm);
    if let Some((major, minor, sm)) = row.until {
        let _ = write!(text, ", until {major}.{minor} for sm_{sm} on");
    }
    for (word, major, minor, sm) in row.later {
        let _ = write!(text, "; `.{word}` {major}.{minor}, sm_{sm}");
    }
    text
}

/// For each line whether it lies between the corpus's marks.
fn under_test(text: &str) -> Vec<bool> {
    let mut inside = false;
    let mark = |line: &str| {
        inside = match line.trim() {
            "// ---- under test" => true,
            "// ----" => false,
            _ => inside,
        };
        inside
    };
    text.lines().map(mark).collect()
}

/// Every file of PTX below a folder, in order.
fn kernels(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))? {
        let path = entry.map_err(|e| e.to_string())?.path();
        if path.is_dir() {
            found.extend(kernels(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "ptx") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
