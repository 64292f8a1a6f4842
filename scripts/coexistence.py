"""Our libraries and another LLVM (llvmlite's) work in one process, whichever is loaded first.

Each order runs in a process of its own: compile and run a function with llvmlite, then a kernel with our driver, then
both again.
"""

import ctypes
import os
import subprocess
import sys

KERNEL = b"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry triple (.param .u64 values)
{
    .reg .u32 %r<3>;
    .reg .u64 %rd<4>;
    mov.u32 %r1, %tid.x;
    ld.param.u64 %rd1, [values];
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd3, %rd1, %rd2;
    ld.global.u32 %r2, [%rd3];
    mul.lo.u32 %r2, %r2, SALT;
    st.global.u32 [%rd3], %r2;
    ret;
}
"""

MODULE = """
define i32 @twice(i32 %x) {
  %y = shl i32 %x, 1
  ret i32 %y
}
"""


class Llvmlite:
    """A function compiled by llvmlite."""

    def __init__(self):
        import llvmlite.binding as llvm

        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        machine = llvm.Target.from_default_triple().create_target_machine()
        self.engine = llvm.create_mcjit_compiler(llvm.parse_assembly(MODULE), machine)
        self.engine.finalize_object()
        self.twice = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(self.engine.get_function_address("twice"))

    def use(self):
        assert self.twice(21) == 42


class Driver:
    """A kernel compiled by our driver. Two factors make two kernels, so each use compiles one that no cache has."""

    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.context = ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuCtxCreate_v2", ctypes.byref(self.context), 0, 0)
        self.factor = 3

    def call(self, name, *arguments):
        code = getattr(self.cuda, name)(*arguments)
        assert code == 0, f"{name}: {code}"

    def use(self):
        module, function, memory = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()
        self.call("cuModuleLoadData", ctypes.byref(module), KERNEL.replace(b"SALT", str(self.factor).encode()))
        self.call("cuModuleGetFunction", ctypes.byref(function), module, b"triple")
        values = (ctypes.c_uint32 * 32)(*range(32))
        self.call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(128))
        self.call("cuMemcpyHtoD_v2", memory, values, ctypes.c_size_t(128))
        arguments = (ctypes.c_void_p * 1)(ctypes.cast(ctypes.byref(memory), ctypes.c_void_p))
        self.call("cuLaunchKernel", function, 1, 1, 1, 32, 1, 1, 0, None, arguments, None)
        self.call("cuMemcpyDtoH_v2", values, memory, ctypes.c_size_t(128))
        assert list(values) == [self.factor * i for i in range(32)], list(values)
        self.factor += 1


ORDERS = {"llvmlite first": (Llvmlite, Driver), "ours first": (Driver, Llvmlite)}


def main():
    if len(sys.argv) == 2:
        first, second = ORDERS[sys.argv[1]]
        one = first()
        one.use()
        two = second()
        two.use()
        one.use()
        two.use()
        return 0
    failed = 0
    for order in ORDERS:
        run = subprocess.run([sys.executable, __file__, order], env={**os.environ, "CUDA_CACHE_DISABLE": "1"})
        print(f"{'ok  ' if run.returncode == 0 else 'FAIL'} {order}")
        failed += run.returncode != 0
    print(f"{len(ORDERS) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
