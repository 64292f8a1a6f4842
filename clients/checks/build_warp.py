"""Builds Warp's library for CUDA from the sources in its wheel, by its own rules, with PTX: build_warp.py TOOLKIT COMPILER.

The wheel lacks headers of NanoVDB's, for sparse volumes, and of cuBQL's: what would do these does nothing, or says that it is not there.
"""

import argparse
import re
import sys
from pathlib import Path

import warp
from warp._src import build_dll

toolkit, compiler = sys.argv[1:]
root = Path(warp.__file__).parent
native = root / "native"
declared = re.findall(r"^WP_API ([\w ]+?[ *]+)(wp_(?:volume|nanovdb)_\w+)(\([^;]*\));", (native / "warp.h").read_text(), re.M)
nothing = "".join(
    f"{result}{name}{parameters} {{ return{'' if result.strip() == 'void' else ' {}'}; }}\n" for result, name, parameters in declared
)
(native / "no_volumes.cpp").write_text('#include "warp.h"\n' + nothing)
(native / "warp.map").write_text("{ global: *; };\n")


def sources(ending):
    """What is compiled for itself."""
    found = sorted(native.glob(f"*.{ending}"))
    return [str(path) for path in found if not path.name.startswith("volume") and path.name != "apic.cu"]


settings = argparse.Namespace(
    cuda_path=toolkit, host_compiler=compiler, mode="release", quick=True, verbose=True, jobs=2, use_dynamic_cuda=True,
    clang_build_toolchain=False, compile_time_trace=False, fast_math=False, libmathdx_path=None, llvm_path=None,
    sanitize=None, verify_fp=False,
)
build_dll.build_dll(settings, str(root / "bin/warp.so"), sources("cpp"), sources("cu"))
