//! [`Builder`]: where instructions go, control flow and calls. The other instructions are in the sibling files.

use super::context::{Context, Module};
use super::types::Type;
use super::value::{Block, Function, Phi, Value};
use super::{UNNAMED, count};
use llvm_sys::prelude::{LLVMBuilderRef, LLVMTypeRef, LLVMValueRef};
use llvm_sys::{LLVMInlineAsmDialect, core};
use std::ffi::CStr;

/// Appends instructions to a block. Constant operands are folded, so a result may be a constant.
pub struct Builder<'c> {
    raw: LLVMBuilderRef,
    module: Module<'c>,
}

impl<'c> Builder<'c> {
    /// A builder for the functions of `module`, not yet positioned.
    pub fn new(module: Module<'c>) -> Self {
        // SAFETY: the context is alive for 'c.
        let raw = unsafe { core::LLVMCreateBuilderInContext(module.context().raw()) };
        Self { raw, module }
    }

    /// The module it builds in.
    pub fn module(&self) -> Module<'c> {
        self.module
    }

    /// The context it builds in.
    pub fn context(&self) -> &'c Context {
        self.module.context()
    }

    /// Continues at the end of `block`.
    pub fn position_at_end(&self, block: Block<'c>) {
        // SAFETY: builder and block are of one live context.
        unsafe { core::LLVMPositionBuilderAtEnd(self.raw, block.raw()) };
    }

    /// Continues before an instruction.
    pub fn position_before(&self, instruction: Value<'c>) {
        // SAFETY: builder and instruction are of one live context.
        unsafe {
            assert!(!core::LLVMIsAInstruction(instruction.raw()).is_null(), "{instruction} is in no block");
            core::LLVMPositionBuilderBefore(self.raw, instruction.raw());
        }
    }

    /// Continues before the first instruction of `block` that is not a phi.
    pub fn position_at_start(&self, block: Block<'c>) {
        // SAFETY: builder and block are of one live context; the instructions walked are the block's.
        unsafe {
            let mut instruction = core::LLVMGetFirstInstruction(block.raw());
            while !instruction.is_null() && !core::LLVMIsAPHINode(instruction).is_null() {
                instruction = core::LLVMGetNextInstruction(instruction);
            }
            match instruction.is_null() {
                true => core::LLVMPositionBuilderAtEnd(self.raw, block.raw()),
                false => core::LLVMPositionBuilderBefore(self.raw, instruction),
            }
        }
    }

    /// The block it appends to.
    #[track_caller]
    pub fn block(&self) -> Block<'c> {
        // SAFETY: the builder is of a live context; a block it is positioned in too.
        unsafe {
            let raw = core::LLVMGetInsertBlock(self.raw);
            assert!(!raw.is_null(), "the builder is not positioned");
            Block::from_raw(raw)
        }
    }

    /// The function it appends to.
    #[track_caller]
    pub fn function(&self) -> Function<'c> {
        // SAFETY: a block that is built in belongs to a function.
        unsafe { Function::from_raw(core::LLVMGetBasicBlockParent(self.block().raw()), self.context()) }
    }

    /// Appends a block to the function being built.
    #[track_caller]
    pub fn append_block(&self, name: &str) -> Block<'c> {
        self.function().append_block(name)
    }

    // Control flow

    /// Goes to `target`. Returns the branch.
    pub fn br(&self, target: Block<'c>) -> Value<'c> {
        self.ready();
        // SAFETY: positioned; the block is of this context.
        self.value(unsafe { core::LLVMBuildBr(self.raw, target.raw()) })
    }

    /// Goes to `then` or `otherwise`. Returns the branch.
    #[track_caller]
    pub fn cond_br(&self, condition: Value<'c>, then: Block<'c>, otherwise: Block<'c>) -> Value<'c> {
        self.ready();
        assert_eq!(condition.ty(), self.context().int(1), "a branch takes one bit");
        // SAFETY: positioned; condition checked; blocks of this context.
        self.value(unsafe { core::LLVMBuildCondBr(self.raw, condition.raw(), then.raw(), otherwise.raw()) })
    }

    /// Goes to the block of the case that equals `value`, else to `default`.
    #[track_caller]
    pub fn switch(&self, value: Value<'c>, default: Block<'c>, cases: &[(u64, Block<'c>)]) -> Value<'c> {
        self.ready();
        let ty = value.ty();
        assert!(ty.is_int() && !ty.is_vector(), "a switch takes an integer, not {ty}");
        // SAFETY: positioned; operand checked; case constants are of its type, blocks of this context.
        unsafe {
            let switch = core::LLVMBuildSwitch(self.raw, value.raw(), default.raw(), count(cases.len()));
            for &(case, target) in cases {
                core::LLVMAddCase(switch, ty.int_const(case).raw(), target.raw());
            }
            self.value(switch)
        }
    }

    /// Returns `value`.
    #[track_caller]
    pub fn ret(&self, value: Value<'c>) {
        self.ready();
        // SAFETY: positioned; value of this context. The verifier checks the type against the function's.
        unsafe { core::LLVMBuildRet(self.raw, value.raw()) };
    }

    /// Returns from a function without result.
    pub fn ret_void(&self) {
        self.ready();
        // SAFETY: positioned.
        unsafe { core::LLVMBuildRetVoid(self.raw) };
    }

    /// Says that control never comes here.
    pub fn unreachable(&self) {
        self.ready();
        // SAFETY: positioned.
        unsafe { core::LLVMBuildUnreachable(self.raw) };
    }

    /// The value of one of two pieces of code: of the first where the condition holds, as it nearly always does.
    pub fn usually(
        &self,
        condition: Value<'c>,
        usual: impl FnOnce() -> Value<'c>,
        rare: impl FnOnce() -> Value<'c>,
    ) -> Value<'c> {
        let (short, long, after) =
            (self.append_block("usual"), self.append_block("rare"), self.append_block("both"));
        self.mark_odds(self.cond_br(condition, short, long), 2000, 1);
        self.position_at_end(short);
        let (usual, usual_end) = (usual(), self.block());
        self.br(after);
        self.position_at_end(long);
        let (rare, rare_end) = (rare(), self.block());
        self.br(after);
        self.position_at_end(after);
        let value = self.phi(usual.ty());
        value.add_incoming(usual, usual_end);
        value.add_incoming(rare, rare_end);
        value.value()
    }

    /// A phi of type `ty`; must come before the other instructions of its block.
    pub fn phi(&self, ty: Type<'c>) -> Phi<'c> {
        self.ready();
        // SAFETY: positioned; type of this context.
        Phi(self.value(unsafe { core::LLVMBuildPhi(self.raw, ty.raw(), UNNAMED) }))
    }

    // Calls

    /// Calls `function`.
    #[track_caller]
    pub fn call(&self, function: Function<'c>, arguments: &[Value<'c>]) -> Value<'c> {
        let call = self.call_typed(function.ty(), function.raw(), arguments);
        // SAFETY: the value is a call, and the function is alive.
        unsafe {
            core::LLVMSetInstructionCallConv(call.raw(), core::LLVMGetFunctionCallConv(function.raw()))
        };
        call
    }

    /// Calls the function of type `ty` at `address`.
    #[track_caller]
    pub fn call_indirect(&self, ty: Type<'c>, address: Value<'c>, arguments: &[Value<'c>]) -> Value<'c> {
        assert!(address.ty().is_ptr() && !address.ty().is_vector(), "a call takes a pointer");
        self.call_typed(ty, address.raw(), arguments)
    }

    /// Calls the intrinsic `name`. `overloads` are the types that its full name would spell, in order, none for one that
    /// is not overloaded.
    #[track_caller]
    pub fn intrinsic(&self, name: &str, overloads: &[Type<'c>], arguments: &[Value<'c>]) -> Value<'c> {
        let mut types: Vec<_> = overloads.iter().map(|ty| ty.raw()).collect();
        // SAFETY: the name is only read; module and types are of this context. LLVM checks the overloads when it makes
        // the declaration; the arguments are checked by `call_typed`.
        let (ty, function) = unsafe {
            let id = core::LLVMLookupIntrinsicID(name.as_ptr().cast(), name.len());
            assert_ne!(id, 0, "LLVM has no intrinsic `{name}`");
            assert!(
                types.is_empty() || core::LLVMIntrinsicIsOverloaded(id) != 0,
                "`{name}` is not overloaded"
            );
            let ty = core::LLVMIntrinsicGetType(self.context().raw(), id, types.as_mut_ptr(), types.len());
            let function =
                core::LLVMGetIntrinsicDeclaration(self.module.raw(), id, types.as_mut_ptr(), types.len());
            (Type::from_raw(ty), function)
        };
        if name.starts_with("llvm.x86.") {
            // LLVM does not know that these are nothing but arithmetic, and would leave them in loops.
            // SAFETY: the function was just declared in a module of this context.
            let function = unsafe { Function::from_raw(function, self.context()) };
            function.add_attribute("speculatable");
        }
        self.call_typed(ty, function, arguments)
    }

    /// Sets how the processor computes with floating-point numbers, by the word at `control` (`MXCSR`). What is at the places that are `seen` is in
    /// memory before and read from there after, which keeps what computes with it on its side: nothing else tells LLVM that arithmetic depends on
    /// the control word.
    #[track_caller]
    pub fn set_float_control(&self, control: Value<'c>, seen: &[Value<'c>]) {
        let places: Vec<_> = std::iter::once(control).chain(seen.iter().copied()).collect();
        assert!(places.iter().all(|place| place.ty().is_ptr() && !place.ty().is_vector()));
        let types: Vec<_> = places.iter().map(|place| place.ty()).collect();
        let ty = Type::function(self.context().void(), &types);
        let constraints = format!("{}~{{memory}}\0", "r,".repeat(places.len()));
        let constraints =
            CStr::from_bytes_with_nul(constraints.as_bytes()).expect("there is one NUL, at the end");
        // SAFETY: the type is that of as many pointers as there are constraints.
        let assembly = unsafe { assembly_that(true, ty.raw(), c"ldmxcsr ($0)", constraints) };
        self.call_typed(ty, assembly, &places);
    }

    #[track_caller]
    fn call_typed(&self, ty: Type<'c>, callee: LLVMValueRef, arguments: &[Value<'c>]) -> Value<'c> {
        self.ready();
        let mut raw: Vec<_> = arguments.iter().map(|argument| argument.raw()).collect();
        // SAFETY: positioned; the argument types are compared with the function type's before the call is built.
        unsafe {
            let mut params = vec![std::ptr::null_mut(); core::LLVMCountParamTypes(ty.raw()) as usize];
            core::LLVMGetParamTypes(ty.raw(), params.as_mut_ptr());
            let params: Vec<_> = params.into_iter().map(|param| Type::from_raw(param)).collect();
            let given: Vec<_> = arguments.iter().map(|argument| argument.ty()).collect();
            assert_eq!(given, params, "argument types against parameter types");
            let call =
                core::LLVMBuildCall2(self.raw, ty.raw(), callee, raw.as_mut_ptr(), count(raw.len()), UNNAMED);
            self.value(call)
        }
    }

    pub(super) fn raw(&self) -> LLVMBuilderRef {
        self.raw
    }

    /// Wraps what a build function made.
    pub(super) fn value(&self, raw: LLVMValueRef) -> Value<'c> {
        // SAFETY: callers pass values made by this builder, thus of this context.
        unsafe { Value::from_raw(raw) }
    }

    /// Building without a position crashes LLVM.
    #[track_caller]
    pub(super) fn ready(&self) {
        // SAFETY: the builder is of a live context.
        let positioned = unsafe { !core::LLVMGetInsertBlock(self.raw).is_null() };
        assert!(positioned, "the builder is not positioned");
    }
}

impl Drop for Builder<'_> {
    fn drop(&mut self) {
        // SAFETY: created by `new`, disposed of once.
        unsafe { core::LLVMDisposeBuilder(self.raw) };
    }
}

/// Assembly of AT&T's kind, of such a type and with such constraints, which does nothing but give its result.
///
/// # Safety
/// The type is a function's, of the constraints' operands.
pub(super) unsafe fn assembly(ty: LLVMTypeRef, code: &CStr, constraints: &CStr) -> LLVMValueRef {
    // SAFETY: the contract.
    unsafe { assembly_that(false, ty, code, constraints) }
}

/// Likewise, which may do something that its result does not tell.
///
/// # Safety
/// The type is a function's, of the constraints' operands.
unsafe fn assembly_that(has_effects: bool, ty: LLVMTypeRef, code: &CStr, constraints: &CStr) -> LLVMValueRef {
    // SAFETY: the contract; both texts have the lengths that are told.
    unsafe {
        core::LLVMGetInlineAsm(
            ty,
            code.as_ptr(),
            code.count_bytes(),
            constraints.as_ptr(),
            constraints.count_bytes(),
            has_effects.into(),
            0,
            LLVMInlineAsmDialect::LLVMInlineAsmDialectATT,
            0,
        )
    }
}
