"""llama.cpp as node-llama-cpp builds it: the test of its operations, which compares each with its own code for CPUs."""

import re
import shutil

import harness

NAME = "llama"
VERSION = "3.22.1"
HOW = "linked with `libcudart.so.13` and `libcuda.so.1`; PTX of its fat binaries"
GAPS = {}

# The operations but for those that want cuBLAS, which has NVIDIA's runtime inside, and one that it has no kernel for; some cases where
# there are very many.
LEFT_OUT = {"OUT_PROD", "SOLVE_TRI", "SSM_SCAN", "CONV_3D"}
SOME = {
    # Products of matrices whose numbers have few bits, for which it has kernels, and attention of heads of usual sizes.
    "MUL_MAT": r"type_a=(q4_0|q4_K|mxfp4),",
    "MUL_MAT_ID": r"type_a=(q8_0|q4_K),.*n_mats=4,",
    "FLASH_ATTN_EXT": r"hsk=(64|128),.*kv=1024,nb=(1|32),mask=1,sinks=0,max_bias=0.000000,.*type_K=(f16|q8_0)",
    "ARGSORT": r"ne=\[(16|60|1023|2048),",
    "CONV_2D": r"ne_input=\[141,.*ne_kernel=\[2,2,",
    "GET_ROWS": r"type=(f32|f16|q4_0|q6_K|i32),n=256,m=5,",
    "IM2COL_3D": r"s0=1,.*p0=1,.*d0=1,",
    "LIGHTNING_INDEXER": r"nb=1,",
    "ROPE": r"type=f16,.*n_ctx=512,fs=1.0",
    "ROPE_BACK": r"n_dims=128,.*fs=1.0",
    "TOP_K": r"k=(7|100),",
}
# Its library is linked with cuBLAS, and calls it where it has no kernel of its own.
ABSENT = [
    "Create_v2", "Destroy_v2", "GemmBatchedEx", "GemmEx", "GemmStridedBatchedEx", "SetMathMode", "SetStream_v2",
    "SetWorkspace_v2", "SgemmBatched", "SgemmStridedBatched", "Sgemm_v2", "StrsmBatched",
]


def install(home):
    if not shutil.which("npm"):
        harness.install_from_debian(home, "npm")
    for package in ("node-llama-cpp", "@node-llama-cpp/linux-x64-cuda"):
        harness.must(["npm", "pack", "--silent", f"{package}@{VERSION}"], home, home / "npm.log")
    for archive in home.glob("*.tgz"):
        shutil.unpack_archive(archive, home, filter="data")
        archive.unlink()
    # The first of them brings the source of llama.cpp that the second was built from.
    bundle = home / "package/llama/gitRelease.bundle"
    harness.must(["git", "clone", "-q", bundle, home / "source"], home, home / "clone.log")
    stub, names = home / "stub", home / "stub/names"
    stub.mkdir()
    names.write_text("libcublas.so.13 { global: cublas*; local: *; };\n")
    functions = [f"int cublas{name}(void) {{ return 15; }}\n" for name in ABSENT]
    text = 'const char *cublasGetStatusString(int code) { return "not supported"; }\n'
    (stub / "cublas.c").write_text("".join([*functions, text]))
    flags = ["-shared", "-fPIC", "-Wl,-soname,libcublas.so.13", f"-Wl,--version-script={names}"]
    harness.must(["cc", *flags, "-o", stub / "libcublas.so.13", stub / "cublas.c"], home, home / "stub.log")
    ggml, built = home / "source/ggml", libraries(home)
    test = home / "source/tests/test-backend-ops.cpp"
    linked = [next(built.glob("libggml.cuda.*.so")), built / "libggml-base.so", f"-Wl,-rpath,{built}", "-lpthread"]
    command = ["c++", "-std=c++17", "-O1", "-w", f"-I{ggml}/include", f"-I{ggml}/src", test, "-o", home / "test", *linked]
    harness.must(command, home, home / "build.log")


def libraries(home):
    """Where what was built for CUDA is; it is looked for in the folder that the test runs in."""
    return home / "package/bins/linux-x64-cuda"


def run(home, library, whole):
    env = harness.environment(home, library, home / "stub")
    every = home / "operations.log"
    harness.run([home / "test", "--list-ops"], libraries(home), env, 60, every)
    names = set(re.findall(r"^  (\w+)$", every.read_text(), re.M)) - LEFT_OUT
    parts = [(",".join(sorted(names - SOME.keys())), None)]
    # Of the first two only those are its own kernels.
    own = {"MUL_MAT": r"type_a=(q\d|iq[234]|mxfp4)", "MUL_MAT_ID": r"type_a=(q\d|iq[234]|mxfp4)"} if whole else SOME
    parts += [(name, own.get(name)) for name in SOME]
    tests = []
    for names, parameters in parts:
        log = home / f"run-{names[:30]}.log"
        command = [home / "test", "test", "-b", "CUDA0", "-o", names, *(["-p", parameters] if parameters else [])]
        status = harness.run(command, libraries(home), env, 3600 if whole else 600, log)
        tests += verdicts(log)
        if status != 0 and not any(test.verdict == "failed" for test in tests):
            tests.append(harness.Test(f"{names[:30]} as a whole", "failed", f"ended with {status}, see {log}"))
    return tests


def verdicts(log):
    """What the test prints of each case, on one line but for what the library says in between."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", log.read_text(errors="replace"))
    kinds = {"OK": "passed", "FAIL": "failed", "not supported": "skipped"}
    found = re.findall(r"^  ([A-Z]\w*\([^\n]*?\)): ((?:(?!^  [A-Z]\w*\().)*?)\b(OK|FAIL|not supported)\b", text, re.M | re.S)
    return [harness.Test(name, kinds[verdict], " ".join(said.split())) for name, said, verdict in found]
