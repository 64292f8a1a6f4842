"""Pictures that pyclesperanto changes on the device, beside SciPy's."""

import numpy
import pyclesperanto as cle
from checking import check, main
from scipy import ndimage

PICTURE = numpy.random.default_rng(0).random((32, 40)).astype(numpy.float32) * 100
STACK = numpy.random.default_rng(1).random((12, 14, 16)).astype(numpy.float32)
SPOTS = (ndimage.gaussian_filter(PICTURE, 2) > 50).astype(numpy.uint8)
SQUARE = numpy.ones((3, 3))


def agree(found, wanted, tolerance=0.0):
    found = numpy.asarray(cle.pull(found)).astype(float)
    assert found.shape == wanted.shape, f"{found.shape}, not {wanted.shape}"
    numpy.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)


@check
def is_on_the_device():
    cle.select_device("Anywarp")
    assert any("Anywarp" in name for name in cle.list_available_devices()), cle.list_available_devices()


@check
def arithmetic():
    given = cle.push(PICTURE)
    agree(cle.add_image_and_scalar(given, scalar=3), PICTURE + 3)
    agree(cle.multiply_images(given, given), PICTURE * PICTURE, 1e-6)
    agree(cle.absolute_difference(given, cle.push(PICTURE.max() - PICTURE)), abs(2 * PICTURE - PICTURE.max()), 1e-4)
    agree(cle.square_root(given), numpy.sqrt(PICTURE), 1e-5)


@check
def filters():
    given = cle.push(PICTURE)
    agree(cle.gaussian_blur(given, sigma_x=2, sigma_y=2), ndimage.gaussian_filter(PICTURE, 2, mode="nearest"), 1e-3)
    agree(cle.median(given, radius_x=1, radius_y=1, connectivity="box"), ndimage.median_filter(PICTURE, 3, mode="nearest"))
    box = {"radius_x": 2, "radius_y": 1, "connectivity": "box"}
    agree(cle.maximum_filter(given, **box), ndimage.maximum_filter(PICTURE, (3, 5), mode="nearest"))
    agree(cle.minimum_filter(given, **box), ndimage.minimum_filter(PICTURE, (3, 5), mode="nearest"))


@check
def filters_of_stacks():
    given = cle.push(STACK)
    blurred = cle.gaussian_blur(given, sigma_x=1, sigma_y=1, sigma_z=1)
    agree(blurred, ndimage.gaussian_filter(STACK, 1, mode="nearest"), 1e-5)
    agree(cle.mean_filter(given, radius_x=1, radius_y=1, radius_z=1, connectivity="box"),
          ndimage.uniform_filter(STACK, 3, mode="nearest"), 1e-5)


@check
def projections_and_turns():
    given = cle.push(STACK)
    agree(cle.maximum_z_projection(given), STACK.max(0))
    agree(cle.sum_y_projection(given), STACK.sum(1), 1e-4)
    agree(cle.mean_x_projection(given), STACK.mean(2), 1e-5)
    agree(cle.transpose_xz(given), STACK.T)
    # Moved by whole numbers: interpolation, by the hardware's textures where there are any, has nothing between.
    moved = cle.translate(cle.push(PICTURE), translate_x=3, translate_y=2)
    wanted = numpy.zeros_like(PICTURE)
    wanted[2:, 3:] = PICTURE[:-2, :-3]
    agree(moved, wanted, 1e-4)


@check
def spots_and_labels():
    given = cle.push(SPOTS)
    agree(cle.binary_erode(given, connectivity="box"), ndimage.binary_erosion(SPOTS, SQUARE, border_value=1))
    agree(cle.binary_dilate(given, connectivity="box"), ndimage.binary_dilation(SPOTS, SQUARE))
    wanted, count = ndimage.label(SPOTS, SQUARE)
    labels = cle.connected_component_labeling(given, connectivity="box")
    agree(labels, wanted)
    sizes = cle.labels_statistics(labels, cle.push(PICTURE))
    numpy.testing.assert_allclose(sizes["area"], numpy.bincount(wanted.ravel())[1:])
    means = ndimage.mean(PICTURE, wanted, range(1, count + 1))
    numpy.testing.assert_allclose(sizes["mean_intensity"], means, rtol=1e-4)


@check
def thresholds():
    spread = numpy.where(SPOTS, 80, 20).astype(numpy.float32) + PICTURE / 10
    # Any threshold between both kinds is as good, from the brightest of the darker ones on.
    found = cle.pull(cle.threshold_otsu(cle.push(spread)))
    assert (found == SPOTS).mean() > 0.99, f"{(found == SPOTS).mean():.1%} of the spots"
    agree(cle.greater_constant(cle.push(PICTURE), scalar=50), PICTURE > 50)


if __name__ == "__main__":
    main()
