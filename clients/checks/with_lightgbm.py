"""Models that LightGBM trains on the device, beside those that it trains on the CPU from the same data."""

import lightgbm
import numpy
from checking import check, main

ROUNDS = 5


def table(rows=2000, columns=8, seed=0):
    """Columns that look random, and are the same every time."""
    return numpy.random.default_rng(seed).normal(size=(rows, columns))


def trained(device, x, y, data=None, **parameters):
    parameters = {
        "device_type": device,
        "verbosity": -1,
        "num_leaves": 15,
        "min_data_in_leaf": 20,
        "num_threads": 1,
        "gpu_use_dp": True,
        **parameters,
    }
    return lightgbm.train(parameters, lightgbm.Dataset(x, y, **(data or {})), ROUNDS)


def answers(x, y, data=None, **parameters):
    """What the models of both predict, which the CPU computes."""
    return [trained(device, x, y, data, **parameters).predict(x) for device in ("cpu", "cuda")]


def agree(x, y, data=None, tolerance=1e-3, **parameters):
    """Nearly all rows must get the same answer: sums differ in the last place, and a split next to another may be chosen for it."""
    wanted, found = answers(x, y, data, **parameters)
    assert found.shape == wanted.shape, f"{found.shape}, not {wanted.shape}"
    assert numpy.isfinite(found).all(), "not finite"
    off = ~numpy.isclose(found, wanted, rtol=tolerance, atol=tolerance)
    assert off.mean() < 0.02, f"{off.mean():.1%} of the predictions differ"


def equally_good(loss, x, y, data=None, **parameters):
    """Where a tie between splits changes what follows, the models must be as good as each other on their data."""
    wanted, found = (loss(answer) for answer in answers(x, y, data, **parameters))
    assert abs(found - wanted) < 0.02 * abs(wanted), f"{found}, not {wanted}"


@check
def regression():
    x = table()
    agree(x, x[:, 0] * 2 + x[:, 1] ** 2)


@check
def missing_values_and_weights():
    x = table()
    y = x[:, 0] - x[:, 2]
    x[numpy.random.default_rng(1).uniform(size=x.shape) < 0.2] = numpy.nan
    weight = numpy.linspace(0.5, 2, len(y))
    agree(x, y)
    equally_good(lambda found: (weight * (found - y) ** 2).mean(), x, y, {"weight": weight})


@check
def two_classes():
    x = table()
    agree(x, (x[:, 0] + x[:, 1] > 0).astype(int), objective="binary")
    agree(x, (x[:, 0] + x[:, 1] > 1).astype(int), objective="cross_entropy")


@check
def many_classes():
    x = table()
    y = numpy.digitize(x[:, 0] + x[:, 3], [-0.5, 0.5])
    for loss in ("multiclass", "multiclassova"):
        equally_good(lambda found: -numpy.log(found[range(len(y)), y]).mean(), x, y, objective=loss, num_class=3)


@check
def losses():
    x = table()
    y = x[:, 0] + 0.5 * x[:, 1] * x[:, 2]
    positive = numpy.exp(y.clip(-2, 2))
    for loss in ("l1", "huber", "fair", "quantile"):
        equally_good(lambda found: numpy.abs(found - y).mean(), x, y, objective=loss)
    for loss in ("poisson", "mape"):
        equally_good(lambda found: numpy.abs(found - positive).mean(), x, positive, objective=loss)


@check
def ranking():
    x = table(1200)
    relevance = numpy.digitize(x[:, 0], [-1, 0, 1])
    groups = {"group": numpy.repeat(20, 60)}

    def order(found):
        """How often of two of a group the better one is before."""
        pairs = [(f[:, None] > f, r[:, None] > r) for f, r in zip(found.reshape(60, 20), relevance.reshape(60, 20))]
        return sum((f & r).sum() for f, r in pairs) / sum(r.sum() for _, r in pairs)

    equally_good(order, x, relevance, groups, objective="lambdarank")
    equally_good(order, x, relevance, groups, objective="rank_xendcg")


@check
def categories():
    x = table(1500)
    x[:, 0] = numpy.random.default_rng(4).integers(0, 12, len(x))
    y = numpy.sin(x[:, 0] * 3) + x[:, 1]
    # Sets of kinds, which both look for in ways of their own, and kinds one by one.
    equally_good(lambda found: ((found - y) ** 2).mean(), x, y, {"categorical_feature": [0]})
    agree(x, y, {"categorical_feature": [0]}, max_cat_to_onehot=20)


@check
def sparse_columns_in_bundles():
    x = table(3000, 30)
    x[numpy.random.default_rng(5).uniform(size=x.shape) < 0.93] = 0
    agree(x, x[:, 0] + 2 * x[:, 7] - x[:, 20])


@check
def many_bins_and_leaves():
    x = table(6000, 4)
    y = numpy.sin(3 * x[:, 0]) * x[:, 1]
    for bins, doubles in ((255, True), (255, False), (15, False)):
        parameters = {"num_leaves": 63, "max_bin": bins, "min_data_in_leaf": 5, "gpu_use_dp": doubles}
        equally_good(lambda found: ((found - y) ** 2).mean(), x, y, **parameters)


@check
def sampled_rows_and_columns():
    x = table()
    y = x[:, 0] + 0.3 * x[:, 1]
    sampled = {"bagging_fraction": 0.5, "bagging_freq": 1, "feature_fraction": 0.6, "seed": 3}
    agree(x, y, **sampled)
    equally_good(lambda found: ((found - y) ** 2).mean(), x, y, data_sample_strategy="goss", seed=3)


@check
def measures_while_training():
    x = table()
    data = lightgbm.Dataset(x, x[:, 0])
    history = {}
    parameters = {"device_type": "cuda", "metric": ["l2", "l1", "rmse"], "verbosity": -1, "num_leaves": 7}
    lightgbm.train(parameters, data, 6, [data], callbacks=[lightgbm.record_evaluation(history)])
    for metric, values in next(iter(history.values())).items():
        assert len(values) == 6 and all(b < a for a, b in zip(values, values[1:])), f"{metric}: {values}"


if __name__ == "__main__":
    main()
