"""Models that CatBoost trains on the device, beside those that it trains on the CPU from the same data. The two choose borders and
splits by rules of their own: the models must be about as good as each other."""

import numpy
from catboost import CatBoost, Pool
from checking import check, main

TREES = 8


def table(rows=2000, columns=8, seed=0):
    """Columns that look random, and are the same every time."""
    return numpy.random.default_rng(seed).normal(size=(rows, columns)).astype(numpy.float32)


def trained(device, data, **parameters):
    shared = {"iterations": TREES, "depth": 4, "learning_rate": 0.3, "random_seed": 1, "boosting_type": "Plain"}
    shared |= {"border_count": 64, "leaf_estimation_iterations": 1}
    quiet = {"verbose": False, "allow_writing_files": False}
    where = {"task_type": "GPU", "devices": "0", "gpu_ram_part": 0.1} if device == "GPU" else {"task_type": "CPU"}
    return CatBoost({"bootstrap_type": "No", **shared, **quiet, **where, **parameters}).fit(data)


def equally_good(data, metric, tolerance=0.15, said_while_training=True, **parameters):
    """Trains on both. What the device's trees give must also be what was said while it trained them."""
    scores = []
    for device in ("CPU", "GPU"):
        model = trained(device, data, **parameters)
        (scored,) = model.eval_metrics(data, metric).values()
        scores.append(scored[-1])
    wanted, found = scores
    assert numpy.isfinite(found), "not finite"
    assert abs(found - wanted) <= tolerance * abs(wanted), f"{found}, not {wanted}"
    if said_while_training:
        said = model.get_best_score()["learn"][metric]
        assert abs(said - found) < 1e-3 * max(1, abs(found)), f"{said} while training, {found} then"


@check
def regression():
    x = table()
    equally_good(Pool(x, x[:, 0] * 2 + x[:, 1] ** 2), "RMSE", loss_function="RMSE")


@check
def missing_values_and_weights():
    x = table()
    y = x[:, 0] - x[:, 2]
    x[numpy.random.default_rng(1).uniform(size=x.shape) < 0.2] = numpy.nan
    equally_good(Pool(x, y, weight=numpy.linspace(0.5, 2, len(y))), "RMSE", loss_function="RMSE")


@check
def two_classes():
    x = table()
    equally_good(Pool(x, (x[:, 0] + x[:, 1] > 0).astype(int)), "Logloss", loss_function="Logloss")


@check
def several_classes():
    x = table()
    classes = numpy.digitize(x[:, 0] + x[:, 3], [-0.5, 0.5])
    equally_good(Pool(x, classes), "MultiClass", loss_function="MultiClass")


@check
def categories():
    x = table()
    kinds = numpy.random.default_rng(3).integers(0, 6, len(x))
    y = x[:, 0] + numpy.array([0, 3, -2, 1, 5, -4])[kinds]
    rows = [[*map(float, row), f"kind {kind}"] for row, kind in zip(x[:, :3], kinds)]
    # While trees grow, a row's categories are counted over the rows before it only.
    equally_good(Pool(rows, y, cat_features=[3]), "RMSE", 0.35, said_while_training=False, loss_function="RMSE")


@check
def groups_are_ranked():
    x = table()
    relevance = numpy.digitize(x[:, 0] - x[:, 4], [-1, 0, 1])
    data = Pool(x, relevance, group_id=numpy.repeat(numpy.arange(100), 20))
    # What the device cannot score is not said.
    equally_good(data, "NDCG", said_while_training=False, loss_function="YetiRank")


@check
def quantiles_and_robust_losses():
    x = table()
    data = Pool(x, x[:, 0] * 3 + numpy.random.default_rng(4).standard_cauchy(len(x)))
    equally_good(data, "MAE", said_while_training=False, loss_function="MAE")
    equally_good(data, "Quantile:alpha=0.8", loss_function="Quantile:alpha=0.8")


@check
def rows_and_columns_by_chance():
    x = table()
    data = Pool(x, x[:, 0] * 2 + x[:, 1])
    equally_good(data, "RMSE", 0.2, loss_function="RMSE", bootstrap_type="Bernoulli", subsample=0.7)
    equally_good(data, "RMSE", 0.3, loss_function="RMSE", bootstrap_type="Bayesian", bagging_temperature=1)


@check
def trees_that_grow_by_leaves():
    x = table()
    data = Pool(x, x[:, 0] * x[:, 1] + x[:, 2])
    equally_good(data, "RMSE", loss_function="RMSE", grow_policy="Lossguide", max_leaves=12)
    equally_good(data, "RMSE", loss_function="RMSE", grow_policy="Depthwise")


main()
