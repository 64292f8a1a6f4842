"""What MDescriptor computes of atoms' surroundings on the device, beside its own code for CPUs: each descriptor that it knows."""

import mdescriptor
import numpy
from checking import check, main
from mdescriptor import ExecutionOptions, StructureBatch, descriptors, predictors


def crystal(seed, atoms, edge, species):
    """Atoms in a skewed cell, none too near to another."""
    random = numpy.random.default_rng(seed)
    cell = edge * numpy.eye(3) + random.uniform(0, 0.1 * edge, (3, 3))
    places = numpy.stack(numpy.meshgrid(*[numpy.arange(3)] * 3), -1).reshape(-1, 3) / 3
    chosen = places[random.permutation(27)[:atoms]] + random.uniform(-0.04, 0.04, (atoms, 3))
    return random.choice(species, atoms), chosen @ cell, cell


def batch(periodic, species, sizes=(5, 9, 14)):
    """Some structures of different sizes."""
    parts = [crystal(seed, atoms, 5.5, species) for seed, atoms in enumerate(sizes)]
    count = len(parts)
    return StructureBatch(
        numbers=numpy.concatenate([part[0] for part in parts]).astype(numpy.int32),
        positions=numpy.concatenate([part[1] for part in parts]),
        cells=numpy.stack([part[2] for part in parts]) * periodic,
        pbc=numpy.full((count, 3), periodic, numpy.int32),
        offsets=numpy.cumsum([0, *sizes], dtype=numpy.int64),
        ids=tuple(f"structure {index}" for index in range(count)),
    )


SPECIES = [1, 6, 8]
# Of more than two species its code for CPUs takes angles of one pair for those of another, which its labels show.
FEWER = {"ACSF": [1, 6]}
GAUSSIANS = {
    "geometry": {"function": "distance"},
    "grid": {"min": 0.5, "max": 8, "n": 40, "sigma": 0.2},
    "weighting": {"function": "exp", "scale": 0.5, "threshold": 1e-3},
}
# What a descriptor is asked for beside what it takes by itself.
SETTINGS = {
    "ACSF": {"r_cut": 4.0, "g2_params": [[1, 1], [0.5, 2]], "g4_params": [[0.1, 1, 1], [0.1, 2, -1]]},
    "C00PSMLFF": {"r_cut": 4.0, "n_radial": 4},
    "CoulombMatrix": {"n_atoms_max": 14},
    "EwaldSumMatrix": {"n_atoms_max": 14},
    "LMBTR": GAUSSIANS,
    "MBTR": GAUSSIANS,
    "MTP": {"min_dist": 0.5, "max_dist": 4.0, "max_rank": 2},
    "SineMatrix": {"n_atoms_max": 14},
    "SOAP": {"r_cut": 4.0, "n_max": 4, "l_max": 4, "average": "off"},
    "SOAPTurbo": {"alpha_max": 4, "l_max": 4, "rcut_hard": 4.0},
}


def values(name, device, structures):
    """What the descriptor of this name makes of the structures."""
    settings = dict(SETTINGS.get(name, {}))
    if "species" in mdescriptor.describe_descriptor(name)["parameters"]:
        settings["species"] = FEWER.get(name, SPECIES)
    with getattr(descriptors, name)(execution=ExecutionOptions(device=device), **settings) as one:
        return numpy.asarray(one.compute(structures).values)


def agree(ours, plain):
    """That both say the same, and something."""
    assert plain.size >= 3 and numpy.abs(plain).max() > 0, "nothing to compare"
    numpy.testing.assert_allclose(ours, plain, rtol=2e-4, atol=2e-5 * numpy.abs(plain).max())


def describes(name):
    """A check of a descriptor."""

    def compare():
        for kind in mdescriptor.describe_descriptor(name)["input"]["periodicity"]:
            structures = batch(kind == "fully_periodic", FEWER.get(name, SPECIES))
            agree(*(values(name, device, structures) for device in ("cuda", "cpu")))

    compare.__name__ = name
    return compare


for each in mdescriptor.list_descriptors():
    check(describes(each))


def predicts(name):
    """A check of energies and forces by a model that the package brings."""

    def compare():
        found = []
        for device in ("cuda", "cpu"):
            with getattr(predictors, name)(execution=ExecutionOptions(device=device)) as model:
                found.append(model.predict(batch(True, SPECIES)))
        for part in ("energy", "atom_energy", "forces"):
            agree(*(numpy.asarray(getattr(result, part)) for result in found))

    compare.__name__ = f"{name}_energies_and_forces"
    return compare


for each in ("NEP", "DPA4C"):
    check(predicts(each))


if __name__ == "__main__":
    main()
