"""OpenMPI: ranks with a device each, which give device pointers to MPI and exchange handles."""

import shutil

import harness

NAME = "mpi"
VERSION = "4.1, Debian's"
HOW = "`libcudart.so.13`; MPI knows nothing of CUDA: device pointers are addresses of the host"
GAPS = {}

RANKS = 4
PACKAGES = ["openmpi-bin", "libopenmpi-dev"]


def install(home):
    if not shutil.which("mpirun") or not shutil.which("mpicxx"):
        harness.install_from_debian(home, *PACKAGES)


def run(home, library, whole):
    shown = [harness.output_of(["mpicxx", f"--showme:{part}"]).split() for part in ("compile", "link")]
    include, link = ([flag for flag in flags if flag.startswith(("-I", "-L", "-l"))] for flags in shown)
    program = home / "with_mpi"
    nvcc = [harness.toolkit() / "bin/nvcc", "-std=c++17", "-O2", "-gencode", "arch=compute_80,code=compute_80"]
    source = harness.ROOT / "clients/checks/with_mpi.cu"
    command = [*nvcc, *include, source, "-cudart", "shared", "-cudadevrt", "none", f"-L{library}", *link, "-o", program]
    harness.must(command, home, home / "nvcc.log")
    env = {**harness.environment(home, library), "ANYWARP_DEVICES": RANKS}
    mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", RANKS, "--mca", "btl", "self,vader"]
    exported = [option for name in env for option in ("-x", name)]
    log = home / "run.log"
    status = harness.run([*mpirun, *exported, program], home, env, 300, log)
    return harness.printed_checks(log, status)
