//! Every function of an API that takes handles, called with what is no handle of the kind that it takes.
//!
//! The functions and the kinds of their parameters come from `functions.in`, so that a new function is tested as soon as it is
//! there. What is no handle: one of another kind, one of an object that is gone, and numbers that never were one. The other arguments
//! are handles of live objects, memory, and the same small number for all that is a number; a pointer leads to zeros.

/// The words that an argument is read from; the largest are structures of 64 bytes.
pub type Argument = [u64; 8];

/// A function with a handle among its parameters.
pub struct Function {
    /// Its exported name.
    pub name: &'static str,
    /// Its parameters.
    pub parameters: &'static [Parameter],
    /// Calls it in the library under test; answers its code.
    ///
    /// # Safety
    /// Pointers among the arguments are what the manual demands, or what the library must notice.
    pub call: unsafe fn(&[Argument]) -> u32,
}

/// A parameter.
#[derive(Clone, Copy)]
pub struct Parameter {
    /// Its type in `functions.in`.
    pub ty: &'static str,
    /// Of a handle, its kind, by the driver's name of the type.
    pub kind: Option<&'static str>,
}

/// Objects, by their kinds.
pub struct Objects {
    /// Those that live.
    pub live: Vec<(&'static str, u64)>,
    /// Those that are gone.
    pub gone: Vec<(&'static str, u64)>,
    /// An address of device memory.
    pub memory: u64,
}

/// What a handle is that is not of the kind that a function takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bad {
    /// The object is gone.
    Gone,
    /// Of another kind.
    Other(&'static str),
    /// A number.
    Number(u64),
}

/// A call with a bad handle.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The function's name.
    pub function: &'static str,
    /// The parameter's place.
    pub index: usize,
    /// The kind of handle that it takes.
    pub kind: &'static str,
    /// What it gets.
    pub bad: Bad,
    /// What all numbers among the arguments are.
    pub number: u64,
}

/// Calls each function with bad handles of every sort, among objects of its own; says where an answer is not the code
/// that is expected.
pub fn findings(
    functions: &[Function],
    make: impl Fn() -> Objects,
    end: impl Fn(&Objects),
    expected: impl Fn(Case) -> u32,
) -> Vec<String> {
    let mut found = Vec::new();
    for function in functions {
        let objects = make();
        check(function, &objects, &expected, &mut found);
        end(&objects);
    }
    found
}

fn check(function: &Function, objects: &Objects, expected: &impl Fn(Case) -> u32, found: &mut Vec<String>) {
    // What small numbers mean differs: some functions want sizes that are not zero, others flags that are.
    let mut answers = Vec::new();
    for number in [0, 1] {
        let mut places = Places::default();
        let arguments = places.arguments(function, objects, number);
        for (index, parameter) in function.parameters.iter().enumerate() {
            let Some(kind) = parameter.kind else { continue };
            for (bad, handle) in bad_handles(kind, objects) {
                let mut arguments = arguments.clone();
                arguments[index][0] = handle;
                // SAFETY: memory that lives through the call, and handles that the library looks up.
                let code = unsafe { (function.call)(&arguments) };
                answers.push((Case { function: function.name, index, kind, bad, number }, code));
            }
        }
    }
    // The call that is right comes last: it may be the object's end.
    let right = [0, 1].map(|number| {
        let mut places = Places::default();
        let arguments = places.arguments(function, objects, number);
        // SAFETY: as above.
        unsafe { (function.call)(&arguments) }
    });
    for (case, code) in answers {
        let (right, wanted) = (right[case.number as usize], expected(case));
        // Another argument may be as wrong, and be looked at first.
        let is_answer = code == wanted || code != 0 && right != 0 && (code == right || code == INVALID_VALUE);
        if !is_answer {
            found.push(format!("{case:?}: {code}, not {wanted}; with a good handle {right}"));
        }
    }
}

const INVALID_VALUE: u32 = 1;

/// What a program may take for a handle of a kind by mistake.
pub fn bad_handles(kind: &'static str, objects: &Objects) -> Vec<(Bad, u64)> {
    let gone = objects.gone.iter().filter(|(of, _)| *of == kind).map(|(_, handle)| (Bad::Gone, *handle));
    let others = objects.live.iter().filter(|(of, _)| *of != kind && !stands_for(of, kind));
    let others = others.map(|(of, handle)| (Bad::Other(of), *handle));
    let numbers =
        [0x1230, 0x7fff_1234_5670, u64::MAX - 15, objects.memory].map(|number| (Bad::Number(number), number));
    gone.chain(others).chain(numbers).collect()
}

/// The manual lets a library's kernel stand where a function does.
fn stands_for(other: &str, kind: &str) -> bool {
    (other, kind) == ("CUkernel", "CUfunction")
}

/// What pointers lead to.
#[derive(Default)]
struct Places(Vec<Box<[u64; 512]>>);

impl Places {
    fn arguments(&mut self, function: &Function, objects: &Objects, number: u64) -> Vec<Argument> {
        function
            .parameters
            .iter()
            .map(|parameter| self.argument(function, *parameter, objects, number))
            .collect()
    }

    fn argument(
        &mut self,
        function: &Function,
        parameter: Parameter,
        objects: &Objects,
        number: u64,
    ) -> Argument {
        let first = match (parameter.kind, parameter.ty) {
            (Some(kind), _) => {
                let live = objects.live.iter().find(|(of, _)| *of == kind);
                live.unwrap_or_else(|| panic!("an object of the kind {kind} is missing")).1
            }
            // A file is written there.
            (None, "*const c_char") if function.name.contains("DotPrint") => c"/dev/null".as_ptr() as u64,
            (None, "*const c_char") => c"nothing".as_ptr() as u64,
            (None, "CUdeviceptr" | "CUdeviceptr_v1") => objects.memory,
            (None, ty) if ty.starts_with('*') => {
                self.0.push(Box::new([0; 512]));
                self.0.last().map_or(0, |place| place.as_ptr() as u64)
            }
            // A function would be called.
            (None, ty) if ty.contains("Callback") || ty.contains("Fn") || ty.contains("B2DSize") => 0,
            (None, "f32") => 0,
            (None, _) => number,
        };
        let mut argument = [0; 8];
        argument[0] = first;
        argument
    }
}
