"""eagle: kernels recorded as graphs, whose loops and branches the device decides. Its own tests of what needs no arrays of aether's."""

import shutil

import harness

from suites import cupy

NAME = "eagle"
VERSION = "0.7.1"
HOW = "dlopen, by a plug-in with PTX of nvcc and a runtime of its own; CuPy and cuda-bindings beside it (`anywarp run`), and NVRTC's PTX"
GAPS = {}
# Arrays of aether's have NVIDIA's runtime inside without symbols; the other tests make some, or need what its source distribution lacks.
SOME = [
    "abi_version", "arg_classify", "backend_seam_rows", "conditional", "derivative_sidecar", "engine_hardening_launch",
    "engine_hardening_pipeline", "gc_capture_invalidation_guard", "gil_host_node", "graph_gpu_eager", "int_uniform",
    "interop_buffer", "launch_block_declared", "launch_policy_gate_b", "launch_policy_gate_c", "launch_rules", "layout",
    "multihw_gates", "netsparse_compose", "netsparse_compose_parity", "netsparse_device_props", "netsparse_intent_guard",
    "netsparse_member_enable", "pipeline_concurrent", "pipeline_parity", "pipeline_stream_ptr", "registry_load_memo",
    "schema_hardening", "seam_transfer", "static_graph_counters", "thread_box_launch", "transfer",
    "u2_interim_error_check", "wide_capturable_launch",
]
# It fills an array in the default stream, and a stream that does not wait for that writes to it.
WITHOUT = "test_gc_during_active_capture_defers_teardown_and_capture_survives"


def install(home):
    harness.install_packages(home, harness.requirements(NAME))
    source = harness.download_source(home, "raptor_eagle", VERSION)
    # What is tested is the package that was installed.
    shutil.rmtree(source / "eagle")


def run(home, library, whole):
    # With its own NVRTC and headers: older ones do not know all that its kernels use.
    toolkit = harness.packages(home) / "nvidia/cu13"
    env = cupy.environment(home, library, toolkit, toolkit / "lib")
    options = ["--timeout=300", "-m", "gpu", "--import-mode=importlib", "-k", f"not {WITHOUT}"]
    files = [f"tests/test_{name}.py" for name in SOME]
    folder = home / f"raptor_eagle-{VERSION}"
    return harness.pytest(home, folder, env, options + files, 1800, through=harness.redirecting(library))
