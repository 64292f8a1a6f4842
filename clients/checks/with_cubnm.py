"""What cuBNM simulates on the device beside its CPU: all its models of brains, with conduction delays, controlled feedback, many regions."""

import numpy as np
from checking import check, main
from cubnm import sim

RANDOM = np.random.default_rng(3)
RUNS = 4


def connections(regions):
    """How strongly regions are connected."""
    weights = RANDOM.random((regions, regions))
    weights = (weights + weights.T) / 2
    np.fill_diagonal(weights, 0)
    return weights / weights.max()


def agree(model, regions=20, duration=6, bits=20, parameters=None, **options):
    """Whether the device's simulations are the CPU's, up to a relative error of 2^-bits of the largest."""
    weights, results = connections(regions), []
    for on_device in (False, True):
        group = getattr(sim, model)(
            duration=duration,
            TR=1,
            sc=weights,
            force_gpu=on_device,
            force_cpu=not on_device,
            sim_seed=1,
            window_size=4,
            window_step=1,
            bold_remove_s=0,
            gof_terms=["+fc_corr"],
            noise_segment_length=2,
            **options,
        )
        group.param_lists["G"] = np.linspace(0.2, 1.5, RUNS)
        for name, values in (parameters or {}).items():
            group.param_lists[name] = values
        group.N = RUNS
        group._set_default_params()
        group.run()
        results.append(group)
    cpu, device = results
    for name in ("sim_bold", "sim_fc_trils", "sim_fcd_trils"):
        expected, found = (np.asarray(getattr(group, name)) for group in (cpu, device))
        assert found.shape == expected.shape and np.isfinite(expected).all(), name
        error = np.abs(found - expected).max()
        assert error <= np.abs(expected).max() * 2.0**-bits, f"{name} is off by {error}"
        assert np.abs(expected[0] - expected[-1]).max() > 0, name
    return cpu, device


@check
def reduced_wong_wang():
    agree("rWWSimGroup")


@check
def reduced_wong_wang_of_excitation():
    agree("rWWExSimGroup")


@check
def kuramoto():
    agree("KuramotoSimGroup")


@check
def wilson_cowan():
    agree("WCSimGroup")


@check
def jansen_rit():
    agree("JRSimGroup")


@check
def feedback_is_controlled():
    """Inhibition that is adjusted while the device simulates, until rates are as they shall be."""
    cpu, device = agree("rWWSimGroup", duration=12, do_fic=True, max_fic_trials=2)
    assert np.array_equal(np.asarray(cpu.fic_unstable), np.asarray(device.fic_unstable))


@check
def delays():
    distances = RANDOM.uniform(5, 90, (20, 20))
    distances = (distances + distances.T) / 2
    np.fill_diagonal(distances, 0)
    agree("rWWExSimGroup", sc_dist=distances, parameters={"v": np.linspace(1, 4, RUNS)})
    agree("WCSimGroup", sc_dist=distances, parameters={"v": np.linspace(1, 4, RUNS)})


@check
def states_and_noise():
    """The course of all states."""
    cpu, device = agree("WCSimGroup", states_ts=True)
    for name in cpu.sim_states:
        expected, found = (np.asarray(group.sim_states[name]) for group in (cpu, device))
        assert found.shape == expected.shape
        assert np.abs(found - expected).max() <= np.abs(expected).max() * 2.0**-20, name


@check
def many_regions():
    """As many as its wheel takes."""
    agree("JRSimGroup", regions=200)


main()
