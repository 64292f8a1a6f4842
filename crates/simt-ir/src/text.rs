//! The text form of programs, for people, tests and logs.
//!
//! One instruction a line, results first, operation names as in [`Op`], values with their types where they are defined:
//!
//! ```text
//! kernel saxpy params 24 shared 0 {
//! b0():
//!   v0: i64 = const 0x0
//!   v1: i32 = load.param.invariant [v0 + 16]  ; line 12
//!   v2: i32 = int.add v1, v1
//!   return
//! ```

use std::fmt::{self, Write};

use crate::{Access, Function, InstData, Op, Order, Program, Space, Target, Terminator};

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, name) in self.globals.iter().enumerate() {
            writeln!(f, "global g{index} = {name}")?;
        }
        for (index, sig) in self.signatures.iter().enumerate() {
            writeln!(f, "signature s{index} = {:?} -> {:?}", sig.params, sig.results)?;
        }
        for (index, func) in self.functions.iter().enumerate() {
            if index == 0 {
                writeln!(
                    f,
                    "kernel {} params {} shared {} {{",
                    func.name, self.param_bytes, self.shared_bytes
                )?;
            } else {
                writeln!(
                    f,
                    "func f{index} {} {:?} -> {:?} local {} token {} {{",
                    func.name, func.signature.params, func.signature.results, func.local_bytes, func.token
                )?;
            }
            writeln!(f, "{func}}}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for block in self.blocks() {
            let data = self.block(block);
            let params: Vec<String> = data.params.iter().map(|p| format!("{p}: {}", self.ty(*p))).collect();
            writeln!(f, "{block}({}):", params.join(", "))?;
            for id in &data.insts {
                let data = self.inst(*id);
                write!(f, "  {}", inst(self, data))?;
                match data.loc.ptx_line {
                    0 => writeln!(f)?,
                    line => writeln!(f, "  ; line {line}")?,
                }
            }
            writeln!(f, "  {}", terminator(&data.term))?;
        }
        Ok(())
    }
}

/// One instruction.
pub fn inst(func: &Function, data: &InstData) -> String {
    let mut text = String::new();
    for (i, result) in data.results.iter().enumerate() {
        let comma = if i == 0 { "" } else { ", " };
        let _ = write!(text, "{comma}{result}: {}", func.ty(*result));
    }
    if !data.results.is_empty() {
        text.push_str(" = ");
    }
    text.push_str(&op_name(data.op));
    let mut args = data.args.iter();
    if let Some(access) = data.op.access()
        && let Some(address) = args.next()
    {
        let _ = write!(text, " [{address}");
        match access.offset {
            0 => {}
            offset if offset > 0 => {
                let _ = write!(text, " + {offset}");
            }
            offset => {
                let _ = write!(text, " - {}", offset.unsigned_abs());
            }
        }
        text.push(']');
        if args.len() > 0 {
            text.push(',');
        }
    }
    for (i, arg) in args.enumerate() {
        let _ = write!(text, "{}{arg}", if i == 0 { " " } else { ", " });
    }
    text
}

fn op_name(op: Op) -> String {
    match op {
        Op::Const(bits) => format!("const {bits:#x}"),
        Op::Load(access) => format!("load{}", access_suffix(&access)),
        Op::Store(access) => format!("store{}", access_suffix(&access)),
        Op::Atomic(op, access) => format!("atomic.{}{}", lower(&format!("{op:?}")), access_suffix(&access)),
        Op::AtomicCas(access) => format!("atomic.cas{}", access_suffix(&access)),
        Op::MbarrierArrive { drop, together, access } => {
            let (drop, together) = (if drop { "_drop" } else { "" }, if together { ".together" } else { "" });
            format!("mbarrier.arrive{drop}{together}{}", access_suffix(&access))
        }
        op => lower(&format!("{op:?}")),
    }
}

/// The derived text of an operation in lower case, its punctuation turned to dots, without what is the default.
fn lower(debug: &str) -> String {
    let mut text = String::new();
    let shown = debug
        .replace("ftz: false", "")
        .replace("sat: false", "")
        .replace("contract: false", "")
        .replace("round: Nearest,", "")
        .replace("FloatMode", "")
        .replace("Float(", "f(");
    for c in shown.chars() {
        match c {
            'a'..='z' | '0'..='9' | '_' => text.push(c),
            'A'..='Z' => text.push(c.to_ascii_lowercase()),
            '(' | '{' | ',' | ':' if !text.ends_with('.') => text.push('.'),
            _ => {}
        }
    }
    text.trim_end_matches('.').to_string()
}

fn access_suffix(access: &Access) -> String {
    let mut text = match access.space {
        Space::Generic => String::new(),
        space => format!(".{}", format!("{space:?}").to_ascii_lowercase()),
    };
    if access.order != Order::Weak {
        let _ = write!(text, ".{:?}.{:?}", access.order, access.scope);
        text.make_ascii_lowercase();
    }
    if access.lanes > 1 {
        let _ = write!(text, ".v{}", access.lanes);
    }
    if access.anywhere {
        text.push_str(".anywhere");
    }
    if access.invariant {
        text.push_str(".invariant");
    }
    text
}

fn target(target: &Target) -> String {
    let args: Vec<String> = target.args.iter().map(ToString::to_string).collect();
    format!("{}({})", target.block, args.join(", "))
}

fn terminator(term: &Terminator) -> String {
    match term {
        Terminator::Jump(to) => format!("jump {}", target(to)),
        Terminator::Branch { cond, then, otherwise, uniform } => {
            let hint = if *uniform { ".uniform" } else { "" };
            format!("branch{hint} {cond}, {}, {}", target(then), target(otherwise))
        }
        Terminator::Switch { index, targets } => {
            let targets: Vec<String> = targets.iter().map(target).collect();
            format!("switch {index}, {}", targets.join(", "))
        }
        Terminator::Return(values) => {
            let values: Vec<String> = values.iter().map(ToString::to_string).collect();
            format!("return {}", values.join(", ")).trim_end().to_string()
        }
        Terminator::Exit => "exit".into(),
        Terminator::Trap => "trap".into(),
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        FloatBinary, FloatMode, FunctionBuilder, IntBinary, Op, Program, Signature, Space, Terminator, Type,
    };

    #[test]
    fn a_kernel_reads_well() {
        let mut b = FunctionBuilder::new("k", Signature::default());
        let zero = b.constant(Type::I64, 0);
        let x = b.inst(Op::Load(crate::Access::weak(Space::Param, 8)), &[zero], Type::I32);
        let y = b.inst(Op::Int(IntBinary::Add), &[x, x], Type::I32);
        let f = b.constant(Type::F32, 0x3f80_0000);
        b.inst(
            Op::Float(FloatBinary::Mul, FloatMode { ftz: true, ..FloatMode::default() }),
            &[f, f],
            Type::F32,
        );
        b.effect(Op::Store(crate::Access::weak(Space::Shared, -4)), &[x, y]);
        b.terminate(Terminator::Return(vec![]));
        let program = Program { functions: vec![b.finish()], param_bytes: 12, ..Program::default() };
        let expected = "\
kernel k params 12 shared 0 {
b0():
  v0: i64 = const 0x0
  v1: i32 = load.param [v0 + 8]
  v2: i32 = int.add v1, v1
  v3: f32 = const 0x3f800000
  v4: f32 = f.mul.ftz.true v3, v3
  store.shared [v1 - 4], v2
  return
}
";
        assert_eq!(program.to_string(), expected);
    }
}
