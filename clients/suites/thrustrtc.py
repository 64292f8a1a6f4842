"""ThrustRTC: algorithms on vectors, whose kernels it has compiled for the types at hand. The checks are ours: its wheel carries none."""

import harness

NAME = "thrustrtc"
VERSION = "0.3.20"
HOW = "dlopen; NVRTC's PTX of templates, launched as wide as NVIDIA's header for occupancy reckons by the device's numbers"
GAPS = {}


def install(home):
    harness.install_packages(home, harness.requirements(NAME))


def run(home, library, whole):
    compiler = harness.toolkit_libraries()
    env = {
        **harness.environment(home, library, compiler),
        "NVRTC": next(compiler.glob("libnvrtc.so.*")),
        # Its header for occupancy is of 2022 and knows no device after 8.x.
        "ANYWARP_SM": 80,
    }
    return harness.checks(home, "with_thrustrtc.py", [], env)
