"""Fields that gprMax finds on the device, beside those of its CPU's code."""

import shutil
import subprocess
import sys
from pathlib import Path

import h5py
import numpy
from checking import check, main

SPACE = """
#domain: 0.048 0.048 0.048
#dx_dy_dz: 0.002 0.002 0.002
#pml_cells: 4
#time_window: 1e-9
#waveform: ricker 1 1.5e9 pulse
#rx: 0.032 0.024 0.032
#rx: 0.024 0.016 0.028
"""
GROUND = """
#material: 6 0.01 1 0 half
#box: 0 0 0 0.048 0.048 0.024 half
"""


def fields(name, model, *options):
    """What the receivers hear, each of six components over time."""
    folder = Path("models") / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "model.in").write_text(f"#title: {name}\n{SPACE}{model}")
    command = [sys.executable, "-m", "gprMax", "model.in", "--hide-progress-bars", *options]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[-200:]
    with h5py.File(folder / "model.h5") as file:
        return {f"{place} {part}": numpy.array(values) for place, parts in file["rxs"].items() for part, values in parts.items()}


def agrees(name, model, precision, error):
    """That the device finds what the CPU does, as parts of the strongest field of that sort."""
    host = fields(f"{name}-host", model, "-cpu_precision", precision)
    device = fields(f"{name}-device", model, "-gpu", "0", "-gpu_precision", precision)
    assert host.keys() == device.keys() and len(host) == 12
    for sort in "EH":
        parts = [part for part in host if part.split()[1][0] == sort]
        most = max(abs(host[part]).max() for part in parts)
        worst = max(abs(host[part] - device[part]).max() for part in parts)
        assert most > 0 and worst <= error * most, f"{sort}: {worst} of {most}"


@check
def a_dipole_over_the_ground():
    agrees("dipole", GROUND + "#hertzian_dipole: z 0.024 0.024 0.032 pulse\n", "single", 1e-4)


@check
def in_double_precision():
    agrees("double", GROUND + "#hertzian_dipole: z 0.024 0.024 0.032 pulse\n", "double", 1e-11)


@check
def a_loop_and_something_wet():
    wet = "#material: 3 0 1 0 wet\n#add_dispersion_debye: 1 10 1e-10 wet\n#sphere: 0.024 0.024 0.018 0.006 wet\n"
    agrees("wet", GROUND + wet + "#magnetic_dipole: x 0.024 0.024 0.032 pulse\n", "single", 1e-4)


@check
def a_voltage_beside_metal():
    metal = "#plate: 0.012 0.012 0.012 0.036 0.036 0.012 pec\n#voltage_source: z 0.024 0.024 0.030 50 pulse\n"
    agrees("metal", metal, "single", 1e-4)


main()
