"""Forces and trajectories by OpenMM's CUDA platform, compared with its reference platform. Not PME: that needs cuFFT."""

import random

import openmm
from checking import check, main


def particles(force, periodic=True):
    """A box of 216 particles near the points of a grid."""
    draw, side = random.Random(5), 2.4
    system, places = openmm.System(), []
    if periodic:
        system.setDefaultPeriodicBoxVectors(*(openmm.Vec3(*(side * (i == j) for j in range(3))) for i in range(3)))
    for index in range(216):
        system.addParticle(39.9)
        at = (index % 6, index // 6 % 6, index // 36)
        places.append(openmm.Vec3(*(side / 6 * (k + 0.1 * draw.random()) for k in at)))
    force(system)
    return system, places


def compare(system, places, precision, tolerance):
    """Energy and forces at the start, and the energy after 20 steps, on both platforms."""
    found = []
    for name, properties in (("Reference", {}), ("CUDA", {"Precision": precision})):
        platform = openmm.Platform.getPlatformByName(name)
        context = openmm.Context(system, openmm.VerletIntegrator(0.001), platform, properties)
        context.setPositions(places)
        state = context.getState(getEnergy=True, getForces=True)
        start = state.getPotentialEnergy()._value
        forces = [part for force in state.getForces()._value for part in force]
        context.getIntegrator().step(20)
        found.append((start, forces, context.getState(getEnergy=True).getPotentialEnergy()._value))
    (start, forces, end), (own_start, own_forces, own_end) = found
    scale = max(map(abs, forces))
    assert abs(own_start - start) <= tolerance * max(1, abs(start)), (own_start, start)
    assert all(abs(a - b) <= 10 * tolerance * scale for a, b in zip(forces, own_forces)), "forces"
    assert abs(own_end - end) <= 10 * tolerance * max(1, abs(end)), (own_end, end)


def nonbonded(method):
    """Charges and Lennard-Jones by the method of this name."""

    def add(system):
        force = openmm.NonbondedForce()
        for index in range(216):
            force.addParticle(0.2 if index % 2 else -0.2, 0.34, 1.0)
        force.setNonbondedMethod(getattr(openmm.NonbondedForce, method))
        force.setCutoffDistance(1.0)
        system.addForce(force)

    return add


def bonds(system):
    """Chains with bonds, angles, torsions, and a force given by a formula."""
    bond, angle, torsion = openmm.HarmonicBondForce(), openmm.HarmonicAngleForce(), openmm.PeriodicTorsionForce()
    custom = openmm.CustomExternalForce("k*(sin(x)^2+cos(3*y)*z)")
    custom.addGlobalParameter("k", 2.5)
    for index in range(0, 216, 6):
        for at in range(index, index + 5):
            bond.addBond(at, at + 1, 0.3, 1000)
        for at in range(index, index + 4):
            angle.addAngle(at, at + 1, at + 2, 1.9, 50)
        for at in range(index, index + 3):
            torsion.addTorsion(at, at + 1, at + 2, at + 3, 2, 0.5, 3)
    for index in range(216):
        custom.addParticle(index)
    for force in (bond, angle, torsion, custom):
        system.addForce(force)


def solvent(system):
    """Generalised Born."""
    nonbonded("NoCutoff")(system)
    force = openmm.GBSAOBCForce()
    for index in range(216):
        force.addParticle(0.2 if index % 2 else -0.2, 0.15, 0.8)
    system.addForce(force)


@check
def the_platform_is_there():
    names = [openmm.Platform.getPlatform(index).getName() for index in range(openmm.Platform.getNumPlatforms())]
    assert "CUDA" in names, openmm.Platform.getPluginLoadFailures()


@check
def all_pairs_in_single_precision():
    compare(*particles(nonbonded("NoCutoff"), periodic=False), "single", 1e-4)


@check
def a_cutoff_in_mixed_precision():
    compare(*particles(nonbonded("CutoffPeriodic")), "mixed", 1e-4)


@check
def ewald_sums_in_double_precision():
    compare(*particles(nonbonded("Ewald")), "double", 1e-4)


@check
def bonds_and_formulas():
    compare(*particles(bonds, periodic=False), "mixed", 1e-4)


@check
def implicit_solvent():
    compare(*particles(solvent, periodic=False), "mixed", 1e-4)


if __name__ == "__main__":
    main()
