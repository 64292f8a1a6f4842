"""Distances, alignments and fingerprints of strings that StringZilla computes on the device, beside plain ones and its CPU's."""

import numpy
import stringzilla
import stringzillas
from checking import check, main

DEVICE = stringzillas.DeviceScope(gpu_device=0)
HOST = stringzillas.DeviceScope(cpu_cores=1)


def words(count, longest, letters, seed):
    """Words that look random, one of them empty."""
    random = numpy.random.default_rng(seed)
    lengths = random.integers(1, longest, count)
    return ["", *("".join(random.choice(list(letters), length)) for length in lengths)]


def distance(first, second, costs):
    """The least cost of changes that make one of the other; a gap's first character has a cost of its own."""
    match, mismatch, opening, extending = costs
    far = 10**6
    best = [0, *(opening + extending * index for index in range(len(second)))]
    below = [far] * (len(second) + 1)
    for row, a in enumerate(first, 1):
        before, best = best, [opening + extending * (row - 1)]
        beside = far
        for column, b in enumerate(second, 1):
            below[column] = min(before[column] + opening, below[column] + extending)
            beside = min(best[column - 1] + opening, beside + extending)
            diagonal = before[column - 1] + (match if a == b else mismatch)
            best.append(min(diagonal, below[column], beside))
    return best[-1]


def agree(engine, firsts, seconds, wanted):
    """Each of the first strings with each of the second, on the device."""
    found = numpy.asarray(engine(stringzilla.Strs(firsts), stringzilla.Strs(seconds), DEVICE))
    plain = numpy.array([[wanted(a, b) for b in seconds] for a in firsts])
    numpy.testing.assert_array_equal(found, plain)


@check
def changes_of_bytes():
    engine = stringzillas.LevenshteinDistances(capabilities=DEVICE)
    agree(engine, words(12, 20, "abc", 0), words(9, 60, "abcd", 1), lambda a, b: distance(a, b, (0, 1, 1, 1)))
    # Longer ones are shared out among more threads.
    agree(engine, words(2, 400, "acgt", 2), words(2, 700, "acgt", 3), lambda a, b: distance(a, b, (0, 1, 1, 1)))


@check
def changes_with_costs():
    for costs in ((0, 2, 3, 3), (0, 2, 5, 1)):
        match, mismatch, opening, extending = costs
        engine = stringzillas.LevenshteinDistances(
            match=match, mismatch=mismatch, open=opening, extend=extending, capabilities=DEVICE
        )
        agree(engine, words(8, 30, "abc", 4), words(8, 30, "abc", 5), lambda a, b: distance(a, b, costs))


def scores(kind, **gaps):
    """What the device and the CPU make of the same strings, by costs of the kinds that letters are of."""
    kinds = (numpy.arange(256) % 32).astype(numpy.uint8)
    costs = numpy.random.default_rng(6).integers(-4, 3, (32, 32)).astype(numpy.int8)
    costs = numpy.maximum(costs, costs.T)
    numpy.fill_diagonal(costs, 4)
    firsts, seconds = words(10, 50, "ACGTN", 7), words(11, 300, "ACGTN", 8)
    found = []
    for scope in (DEVICE, HOST):
        engine = kind(kinds, costs, capabilities=scope, **gaps)
        found.append(numpy.asarray(engine(stringzilla.Strs(firsts), stringzilla.Strs(seconds), scope)))
    assert len(numpy.unique(found[1])) > 10, "all scores are alike"
    numpy.testing.assert_array_equal(*found)


@check
def global_alignments():
    scores(stringzillas.NeedlemanWunschScores, open=-3, extend=-3)
    scores(stringzillas.NeedlemanWunschScores, open=-5, extend=-1)


@check
def local_alignments():
    scores(stringzillas.SmithWatermanScores, open=-3, extend=-3)
    scores(stringzillas.SmithWatermanScores, open=-5, extend=-1)


@check
def fingerprints():
    texts = stringzilla.Strs(words(20, 900, "abcdefgh ", 9))
    found = []
    for scope in (DEVICE, HOST):
        engine = stringzillas.Fingerprints(ndim=128, capabilities=scope)
        found.append([numpy.asarray(part) for part in engine(texts, scope)])
    for ours, plain in zip(*found):
        numpy.testing.assert_array_equal(ours, plain)


if __name__ == "__main__":
    main()
