"""What cupoch computes on the device with its kernels and Thrust's, beside NumPy: clouds of points, meshes, grids, images, registrations."""

import cupoch
import numpy
from checking import check, main

geometry, vectors = cupoch.geometry, cupoch.utility
random = numpy.random.default_rng(11)
CLOUD = random.random((3000, 3)).astype(numpy.float32)


def cloud(points):
    """A cloud of points on the device."""
    return geometry.PointCloud(vectors.Vector3fVector(points))


def host(values):
    """What a vector of the device has."""
    return numpy.asarray(values.cpu())


def distances(a, b):
    """Between each point of one array and each of another."""
    return numpy.sqrt(((a[:, None].astype(numpy.float64) - b[None]) ** 2).sum(2))


def turned(angle, shift):
    """A rotation about the third axis, and a translation."""
    c, s = numpy.cos(angle), numpy.sin(angle)
    matrix = numpy.eye(4, dtype=numpy.float32)
    matrix[:2, :2], matrix[:3, 3] = [[c, -s], [s, c]], shift
    return matrix


def moved(points, matrix):
    return points @ matrix[:3, :3].T + matrix[:3, 3]


@check
def bounds_and_transformations():
    held = cloud(CLOUD)
    numpy.testing.assert_array_equal(held.get_max_bound(), CLOUD.max(0))
    numpy.testing.assert_array_equal(held.get_min_bound(), CLOUD.min(0))
    numpy.testing.assert_allclose(held.get_center(), CLOUD.mean(0), rtol=1e-5)
    matrix = turned(0.3, [0.1, 0.2, 0.3])
    held.transform(matrix)
    numpy.testing.assert_allclose(host(held.points), moved(CLOUD, matrix), atol=1e-6)


@check
def means_of_voxels():
    size = 0.2
    cells = numpy.floor((CLOUD - (CLOUD.min(0) - size / 2)) / size).astype(int)
    _, of, counts = numpy.unique(cells, axis=0, return_inverse=True, return_counts=True)
    sums = numpy.zeros((counts.size, 3))
    numpy.add.at(sums, of.ravel(), CLOUD)
    wanted = sums / counts[:, None]
    given = host(cloud(CLOUD).voxel_down_sample(size).points)
    assert len(given) == len(wanted), f"{len(given)} voxels, not {len(wanted)}"
    assert distances(given, wanted).min(0).max() < 1e-5


@check
def normals():
    held = cloud(CLOUD)
    held.estimate_normals(geometry.KDTreeSearchParamKNN(20))
    given = host(held.normals)
    near = numpy.argsort(distances(CLOUD, CLOUD), 1)[:, :20]
    part = CLOUD[near].astype(numpy.float64)
    part -= part.mean(1, keepdims=True)
    values, axes = numpy.linalg.eigh(part.transpose(0, 2, 1) @ part)
    # Where the two smallest are alike, the normal may be anything between them.
    clear = values[:, 1] > 1.3 * values[:, 0]
    assert clear.sum() > 2000
    alike = numpy.abs((given * axes[:, :, 0]).sum(1))[clear]
    assert (alike > 0.999).mean() > 0.995, f"{(alike <= 0.999).sum()} of {clear.sum()} point elsewhere"


@check
def nearest_neighbours():
    queries = random.random((20, 3)).astype(numpy.float32)
    tree = geometry.KDTreeFlann(cloud(CLOUD))
    for query, wanted in zip(queries, numpy.sort(distances(queries, CLOUD), 1)[:, :8]):
        count, indices, squares = tree.search_knn_vector_3f(query, 8)
        assert count == 8
        numpy.testing.assert_allclose(numpy.sqrt(squares), wanted, atol=1e-5)
        numpy.testing.assert_allclose(numpy.linalg.norm(CLOUD[indices] - query, axis=1), wanted, atol=1e-5)


@check
def clusters():
    centres = numpy.array([[0, 0, 0], [5, 0, 0], [0, 5, 0], [5, 5, 5]], numpy.float32)
    of = random.integers(0, 4, 800)
    points = (centres[of] + 0.3 * random.standard_normal((800, 3))).astype(numpy.float32)
    labels = host(cloud(points).cluster_dbscan(0.8, 5, False, 800))
    for number in range(4):
        inside = labels[of == number]
        assert (inside == numpy.bincount(inside[inside >= 0]).argmax()).mean() > 0.97
    assert len(set(labels[labels >= 0])) == 4


@check
def outliers():
    far = CLOUD[:1000].copy()
    far[::100] += 4
    held, kept = cloud(far).remove_radius_outlier(4, 0.3)[:2]
    wanted = numpy.flatnonzero((distances(far, far) <= 0.3).sum(1) > 4)
    assert set(host(kept)) == set(wanted), f"{len(host(kept))} points, not {len(wanted)}"
    numpy.testing.assert_array_equal(host(held.points), far[host(kept).astype(int)])


@check
def planes():
    flat = random.random((2000, 3)).astype(numpy.float32)
    flat[:1500, 2] = 0.5 + 0.25 * flat[:1500, 0] - 0.1 * flat[:1500, 1]
    plane, inside = cloud(flat).segment_plane(0.005, 3, 200)
    plane = plane.ravel() / plane.ravel()[2]
    numpy.testing.assert_allclose(plane, [-0.25, 0.1, 1, -0.5], atol=5e-3)
    assert len(host(inside)) >= 1490


@check
def iterative_closest_points():
    matrix = turned(0.05, [0.02, -0.01, 0.015])
    methods = cupoch.registration
    source, target = cloud(CLOUD), cloud(moved(CLOUD, matrix).astype(numpy.float32))
    target.estimate_normals(geometry.KDTreeSearchParamKNN(20))
    for method in (methods.TransformationEstimationPointToPoint(), methods.TransformationEstimationPointToPlane()):
        result = methods.registration_icp(source, target, 0.1, numpy.eye(4, dtype=numpy.float32), method)
        assert result.fitness > 0.999, result
        numpy.testing.assert_allclose(result.transformation, matrix, atol=2e-3)


@check
def features_of_points():
    held = cloud(CLOUD)
    held.estimate_normals(geometry.KDTreeSearchParamKNN(20))
    features = cupoch.registration.compute_fpfh_feature(held, geometry.KDTreeSearchParamKNN(30))
    table = host(features.data).reshape(-1, 33)
    assert table.shape[0] == len(CLOUD) and numpy.isfinite(table).all()
    # Each of three histograms is a sum of 100 for the point itself, and of 100 for its neighbours.
    numpy.testing.assert_allclose(table.reshape(-1, 3, 11).sum(2), 200, rtol=2e-2)


@check
def meshes():
    sphere = geometry.TriangleMesh.create_sphere(2.0, 20)
    sphere.compute_vertex_normals()
    points, corners = host(sphere.vertices), host(sphere.triangles)
    numpy.testing.assert_allclose(numpy.linalg.norm(points, axis=1), 2, rtol=1e-5)
    alike = (host(sphere.vertex_normals) * points).sum(1) / 2
    assert alike.min() > 0.98, alike.min()
    a, b, c = (points[corners[:, at]] for at in range(3))
    area = numpy.linalg.norm(numpy.cross(b - a, c - a), axis=1).sum() / 2
    numpy.testing.assert_allclose(sphere.get_surface_area(), area, rtol=1e-4)
    # Smoothing: the mean of a vertex and its neighbours.
    smooth = host(sphere.filter_smooth_simple(1).vertices)
    around = [{at} for at in range(len(points))]
    for corner in corners:
        for at in corner:
            around[at].update(corner)
    wanted = numpy.array([points[sorted(near)].mean(0) for near in around])
    numpy.testing.assert_allclose(smooth, wanted, atol=1e-4)


@check
def distances_in_a_grid():
    resolution = 24
    points = ((random.integers(0, resolution, (12, 3)) + 0.5) / resolution - 0.5).astype(numpy.float32)
    size = 1 / resolution
    low = numpy.full((3, 1), -0.5, numpy.float32)
    voxels = geometry.VoxelGrid.create_from_point_cloud_within_bounds(cloud(points), size, low, -low)
    transform = geometry.DistanceTransform(size, resolution)
    transform.compute_edt(voxels)
    places = ((random.integers(0, resolution, (300, 3)) + 0.5) / resolution - 0.5).astype(numpy.float32)
    given = host(transform.get_distances(vectors.Vector3fVector(places)))
    wanted = distances(places, points).min(1)
    outside = wanted > 0
    numpy.testing.assert_allclose(given[outside], wanted[outside], atol=1.01 * size)
    assert numpy.corrcoef(given, wanted)[0, 1] > 0.99


@check
def surfaces_of_depth_images():
    camera = cupoch.camera.PinholeCameraIntrinsic()
    camera.set_intrinsics(160, 120, 140.0, 140.0, 79.5, 59.5)
    x, y = numpy.meshgrid((numpy.arange(160) - 79.5) / 140, (numpy.arange(120) - 59.5) / 140)
    # A sphere of radius 0.5 at a distance of 1.5, before nothing.
    a, b = x * x + y * y + 1, -3
    root = b * b - 4 * a * 2
    depth = numpy.where(root > 0, (-b - numpy.sqrt(numpy.maximum(root, 0))) / (2 * a), 0).astype(numpy.float32)
    held = geometry.PointCloud.create_from_depth_image(geometry.Image(depth), camera, numpy.eye(4, dtype=numpy.float32), 1.0)
    points = host(held.points)
    assert len(points) == (depth > 0).sum()
    numpy.testing.assert_allclose(numpy.linalg.norm(points - [0, 0, 1.5], axis=1), 0.5, atol=1e-4)
    color = geometry.Image(numpy.zeros((120, 160, 3), numpy.uint8))
    image = geometry.RGBDImage.create_from_color_and_depth(color, geometry.Image(depth), 1.0, 4.0, False)
    shift = numpy.eye(4, dtype=numpy.float32)
    shift[2, 3] = 1.5
    volume = cupoch.integration.UniformTSDFVolume(1.5, 64, 0.08, cupoch.integration.TSDFVolumeColorType.NoColor)
    volume.integrate(image, camera, shift)
    mesh = host(volume.extract_triangle_mesh().vertices)
    assert len(mesh) > 500, f"{len(mesh)} vertices"
    radius = numpy.linalg.norm(mesh, axis=1)
    # Towards the camera; at the edge the volume knows little.
    front = mesh[:, 2] < -0.2
    numpy.testing.assert_allclose(radius[front], 0.5, atol=0.03)


@check
def filters_of_images():
    x = (1 + random.random((60, 80))).astype(numpy.float32)
    blurred = geometry.Image(x).filter(geometry.ImageFilterType.Gaussian3)
    # An image tells its values as the depths of points.
    camera = cupoch.camera.PinholeCameraIntrinsic()
    camera.set_intrinsics(80, 60, 70.0, 70.0, 39.5, 29.5)
    held = geometry.PointCloud.create_from_depth_image(blurred, camera, numpy.eye(4, dtype=numpy.float32), 1.0)
    given = host(held.points)[:, 2].reshape(60, 80)
    kernel = numpy.array([0.25, 0.5, 0.25])
    padded = numpy.pad(x, 1, mode="edge")
    wanted = sum(kernel[i] * kernel[j] * padded[i : i + 60, j : j + 80] for i in range(3) for j in range(3))
    numpy.testing.assert_allclose(given[1:-1, 1:-1], wanted[1:-1, 1:-1], atol=1e-5)


@check
def shortest_paths():
    sphere = geometry.TriangleMesh.create_sphere(1.0, 6)
    points, corners = host(sphere.vertices), host(sphere.triangles)
    graph = geometry.Graph.create_from_triangle_mesh(sphere)
    graph.set_edge_weights_from_distance()
    table = numpy.full((len(points), len(points)), numpy.inf)
    numpy.fill_diagonal(table, 0)
    for a, b in ((0, 1), (1, 2), (2, 0)):
        for i, j in ((corners[:, a], corners[:, b]), (corners[:, b], corners[:, a])):
            table[i, j] = numpy.linalg.norm(points[i] - points[j], axis=1)
    for k in range(len(points)):
        table = numpy.minimum(table, table[:, k : k + 1] + table[k])
    for goal in range(1, len(points), 9):
        path, cost = graph.dijkstra_path(0, goal)
        numpy.testing.assert_allclose(cost, table[0, goal], rtol=1e-5)


if __name__ == "__main__":
    main()
