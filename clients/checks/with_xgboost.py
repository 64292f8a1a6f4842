"""Models that XGBoost trains on the device, beside those that it trains on the CPU from the same data."""

import numpy
import xgboost
from checking import check, main

ROUNDS = 4


def table(rows=2000, columns=8, seed=0):
    """Columns that look random, and are the same every time."""
    return numpy.random.default_rng(seed).normal(size=(rows, columns)).astype(numpy.float32)


def trained(device, data, **parameters):
    trees = {} if parameters.get("booster") == "gblinear" else {"tree_method": "hist", "max_depth": 4}
    parameters = {"device": device, **trees, **parameters}
    return xgboost.train(parameters, data, ROUNDS)


def agree(make, tolerance=1e-3, **parameters):
    """Trains on both, predicts on each with its own model; nearly all rows must get the same answer: sums differ in the last
    place, and a split next to another may be chosen for it."""
    answers = []
    for device in ("cpu", "cuda"):
        model = trained(device, make(), **parameters)
        answers.append(model.predict(make()))
    wanted, found = answers
    assert found.shape == wanted.shape, f"{found.shape}, not {wanted.shape}"
    assert numpy.isfinite(found).all(), "not finite"
    off = ~numpy.isclose(found, wanted, rtol=tolerance, atol=tolerance)
    assert off.mean() < 0.02, f"{off.mean():.1%} of the predictions differ"


def equally_good(make, **parameters):
    """Trains on both; where a tie between splits changes what follows, the models must be as good as each other on their data."""
    scores = []
    for device in ("cpu", "cuda"):
        data = make()
        said = trained(device, data, **parameters).eval(data)
        scores.append(float(said.rsplit(":", 1)[1]))
    wanted, found = scores
    assert abs(found - wanted) < 0.01 * abs(wanted), f"{found}, not {wanted}"


@check
def regression():
    x = table()
    y = x[:, 0] * 2 + x[:, 1] ** 2
    agree(lambda: xgboost.DMatrix(x, y))


@check
def missing_values_and_weights():
    x = table()
    y = x[:, 0] - x[:, 2]
    x[numpy.random.default_rng(1).uniform(size=x.shape) < 0.2] = numpy.nan
    weight = numpy.linspace(0.5, 2, len(y))
    agree(lambda: xgboost.DMatrix(x, y, weight=weight))


@check
def classes():
    x = table()
    two = (x[:, 0] + x[:, 1] > 0).astype(int)
    equally_good(lambda: xgboost.DMatrix(x, two), objective="binary:logistic", eval_metric="logloss")
    equally_good(lambda: xgboost.DMatrix(x, two), objective="binary:logistic", eval_metric="auc")
    three = numpy.digitize(x[:, 0] + x[:, 3], [-0.5, 0.5])
    equally_good(lambda: xgboost.DMatrix(x, three), objective="multi:softprob", num_class=3, eval_metric="mlogloss")


@check
def counts_and_quantiles():
    x = table()
    y = numpy.random.default_rng(2).poisson(numpy.exp(x[:, 0].clip(-2, 2)))
    agree(lambda: xgboost.DMatrix(x, y), objective="count:poisson")
    agree(lambda: xgboost.QuantileDMatrix(x, x[:, 1]), objective="reg:quantileerror", quantile_alpha=[0.2, 0.8])


@check
def ranking():
    x = table(1200)
    relevance = numpy.digitize(x[:, 0], [-1, 0, 1])
    groups = numpy.repeat(numpy.arange(60), 20)
    equally_good(lambda: xgboost.DMatrix(x, relevance, qid=groups), objective="rank:ndcg", eval_metric="ndcg")


@check
def categories():
    x = table(1500)
    x[:, 0] = numpy.random.default_rng(4).integers(0, 12, len(x))
    y = numpy.sin(x[:, 0] * 3) + x[:, 1]
    types = ["c"] + ["q"] * 7
    agree(lambda: xgboost.DMatrix(x, y, feature_types=types, enable_categorical=True))


@check
def deeper_trees_grown_by_loss():
    x = table()
    y = x[:, 0] * x[:, 1] + x[:, 2]
    agree(lambda: xgboost.DMatrix(x, y), max_depth=0, max_leaves=20, grow_policy="lossguide")


@check
def sketches_of_approx():
    x = table()
    agree(lambda: xgboost.DMatrix(x, x[:, 0] + x[:, 5]), tree_method="approx")


@check
def sampled_and_constrained():
    x = table()
    y = x[:, 0] + 0.3 * x[:, 1]
    data = xgboost.DMatrix(x, y)
    model = trained("cuda", data, subsample=0.5, colsample_bytree=0.5, sampling_method="gradient_based", seed=3)
    error = numpy.abs(model.predict(data) - y).mean()
    assert error < numpy.abs(y - y.mean()).mean(), "nothing was learnt"
    agree(lambda: xgboost.DMatrix(x, y), monotone_constraints=(1, -1, 0, 0, 0, 0, 0, 0))


@check
def contributions_of_features():
    x = table(300)
    data = xgboost.DMatrix(x, x[:, 0] + x[:, 1] * x[:, 2])
    model = trained("cuda", data)
    found = model.predict(data, pred_contribs=True)
    numpy.testing.assert_allclose(found.sum(1), model.predict(data, output_margin=True), rtol=1e-4, atol=1e-4)
    pairs = model.predict(data, pred_interactions=True)
    numpy.testing.assert_allclose(pairs.sum(2), found, rtol=1e-3, atol=1e-3)
    model.set_param({"device": "cpu"})
    numpy.testing.assert_allclose(found, model.predict(data, pred_contribs=True), rtol=1e-3, atol=1e-3)


@check
def linear_model():
    x = table()
    y = x @ numpy.arange(8, dtype=numpy.float32)
    agree(lambda: xgboost.DMatrix(x, y), booster="gblinear", updater="coord_descent")


@check
def evaluation_while_training():
    x = table()
    data = xgboost.DMatrix(x, x[:, 0])
    history = {}
    parameters = {"device": "cuda", "max_depth": 3, "eval_metric": ["rmse", "mae"]}
    xgboost.train(parameters, data, 6, evals=[(data, "train")], evals_result=history, verbose_eval=False)
    for metric in ("rmse", "mae"):
        values = history["train"][metric]
        assert all(after < before for before, after in zip(values, values[1:])), f"{metric}: {values}"


if __name__ == "__main__":
    main()
