"""Depths, features and matches that COLMAP computes on the device from pictures of a plane whose place is known."""

import struct
import tempfile
import zlib
from pathlib import Path

import numpy
import pycolmap
from checking import check, main

WIDTH, HEIGHT, FOCAL = 64, 48, 65.0
# The plane z = DEPTH + SLOPE x, seen from places beside each other.
DEPTH, SLOPE = 4.0, 0.25
PLACES = [(-0.3, -0.1), (0.0, 0.0), (0.3, 0.15)]


def rays():
    """The direction of each pixel's ray, with z one."""
    y, x = numpy.mgrid[0:HEIGHT, 0:WIDTH] + 0.5
    return (x - WIDTH / 2) / FOCAL, (y - HEIGHT / 2) / FOCAL


def depths(place):
    """How far the plane is at each pixel of the camera at `place`."""
    along, _ = rays()
    return (DEPTH + SLOPE * place[0]) / (1 - SLOPE * along)


def picture(place, scale=1.0):
    """What the camera sees: spots of many sizes, painted onto the plane."""
    along, down = rays()
    far = depths(place)
    x, y = place[0] + far * along, place[1] + far * down
    random = numpy.random.default_rng(7)
    grey = numpy.zeros((HEIGHT, WIDTH))
    for _ in range(400):
        at = random.uniform((-3, -2.2), (3, 2.2))
        size, weight = scale * random.uniform(0.03, 0.2), random.uniform(-1, 1)
        grey += weight * numpy.exp(-((x - at[0]) ** 2 + (y - at[1]) ** 2) / (2 * size**2))
    return numpy.clip(128 + 90 * grey, 0, 255).astype(numpy.uint8)


def write_png(path, grey):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + row.tobytes() for row in grey)
    header = struct.pack(">IIBBBBB", grey.shape[1], grey.shape[0], 8, 0, 0, 0, 0)
    data = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + data)


def workspace(folder, count=len(PLACES)):
    """Pictures, and a model that knows where they were taken, as COLMAP's own text files; depths are wanted of so many."""
    for name in ("images", "sparse", "stereo/depth_maps", "stereo/normal_maps", "stereo/consistency_graphs"):
        (folder / name).mkdir(parents=True)
    names = [f"{index}.png" for index in range(len(PLACES))]
    images = []
    # Points that all of them see: which pictures have to do with each other is told by those.
    points = [(x, y, DEPTH + SLOPE * x) for x in numpy.linspace(-0.8, 0.8, 5) for y in numpy.linspace(-0.6, 0.6, 5)]
    for index, (name, place) in enumerate(zip(names, PLACES), 1):
        write_png(folder / "images" / name, picture(place))
        seen = []
        for number, (x, y, z) in enumerate(points, 1):
            at = (x - place[0]) / z * FOCAL + WIDTH / 2, (y - place[1]) / z * FOCAL + HEIGHT / 2
            seen.append(f"{at[0]} {at[1]} {number}")
        images.append(f"{index} 1 0 0 0 {-place[0]} {-place[1]} 0 1 {name}\n{' '.join(seen)}\n")
    camera = f"1 PINHOLE {WIDTH} {HEIGHT} {FOCAL} {FOCAL} {WIDTH / 2} {HEIGHT / 2}\n"
    (folder / "sparse/cameras.txt").write_text(camera)
    (folder / "sparse/images.txt").write_text("".join(images))
    lines = []
    for number, (x, y, z) in enumerate(points, 1):
        track = " ".join(f"{image} {number - 1}" for image in range(1, len(names) + 1))
        lines.append(f"{number} {x} {y} {z} 128 128 128 0.1 {track}\n")
    (folder / "sparse/points3D.txt").write_text("".join(lines))
    sources = {name: ", ".join(other for other in names if other != name) for name in names[:count]}
    (folder / "stereo/patch-match.cfg").write_text("".join(f"{name}\n{sources[name]}\n" for name in sources))
    (folder / "stereo/fusion.cfg").write_text("\n".join(names) + "\n")
    return names[:count]


def stereo(folder, **more):
    options = {"depth_min": 2.0, "depth_max": 8.0, "window_radius": 3, "num_iterations": 2, "gpu_index": "0"}
    pycolmap.patch_match_stereo(folder, options=pycolmap.PatchMatchOptions(**{**options, **more}))


def read_map(path):
    """A map of numbers as COLMAP keeps it: its size as text, then channels one after another."""
    data = path.read_bytes()
    width, height, channels, rest = data.split(b"&", 3)
    numbers = numpy.frombuffer(rest, numpy.float32)
    return numbers.reshape(int(channels), int(height), int(width))


def near_plane(folder, names, kind, whole, close):
    """Of the depths found, nearly all are the plane's, and there is one for most pixels."""
    for name, place in zip(names, PLACES):
        found = read_map(folder / f"stereo/depth_maps/{name}.{kind}.bin")[0]
        known = found > 0
        assert known.mean() > whole, f"{name}: depths for {known.mean():.0%} of the pixels"
        off = numpy.abs(found - depths(place))[known] / DEPTH
        assert numpy.median(off) < close, f"{name}: off by {numpy.median(off):.4f}"


@check
def depths_of_pictures():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        names = workspace(folder, 1)
        stereo(folder, geom_consistency=False, filter=False)
        near_plane(folder, names, "photometric", 0.9, 0.01)


@check
def depths_that_agree_and_points_of_them():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        names = workspace(folder)
        stereo(folder, geom_consistency=True, filter=True)
        near_plane(folder, names, "geometric", 0.5, 0.01)
        normals = read_map(folder / f"stereo/normal_maps/{names[1]}.geometric.bin")
        wanted = numpy.array([SLOPE, 0, -1]) / numpy.hypot(SLOPE, 1)
        known = numpy.abs(normals).sum(axis=0) > 0
        along = numpy.tensordot(wanted, normals, 1)[known]
        assert numpy.median(along) > 0.95, f"normals are off: {numpy.median(along):.3f}"
        (folder / "fused").mkdir()
        options = pycolmap.StereoFusionOptions(min_num_pixels=2)
        fused = pycolmap.stereo_fusion(folder / "fused", folder, input_type="geometric", options=options)
        points = numpy.array([point.xyz for point in fused.points3D.values()])
        assert len(points) > 800, f"{len(points)} points"
        off = numpy.abs(points[:, 2] - DEPTH - SLOPE * points[:, 0])
        assert numpy.median(off) < 0.05, f"points are off by {numpy.median(off):.3f}"


def features(folder, device):
    """The features of two pictures, and which of them match."""
    database = folder / f"{device.name}.db"
    extraction = pycolmap.FeatureExtractionOptions(gpu_index="0")
    pycolmap.extract_features(database, folder / "images", extraction_options=extraction, device=device)
    pycolmap.match_exhaustive(database, device=device)
    with pycolmap.Database.open(database) as opened:
        images = sorted(opened.read_all_images(), key=lambda image: image.name)
        points = [opened.read_keypoints(image.image_id)[:, :2] for image in images]
        matches = opened.read_matches(images[0].image_id, images[1].image_id)
    return points, matches


@check
def features_and_matches():
    global WIDTH, HEIGHT, FOCAL
    WIDTH, HEIGHT, FOCAL = 320, 240, 330.0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "images").mkdir()
        for index in (0, 1):
            write_png(folder / f"images/{index}.png", picture(PLACES[index], 0.6))
        points, matches = features(folder, pycolmap.Device.cuda)
        plain, plain_matches = features(folder, pycolmap.Device.cpu)
        for found, wanted in zip(points, plain):
            assert 0.5 < len(found) / len(wanted) < 2, f"{len(found)} features, {len(wanted)} on the CPU"
            apart = numpy.linalg.norm(wanted[:, None] - found[None], axis=2).min(axis=1)
            assert (apart < 1).mean() > 0.7, f"of the CPU's features {(apart < 1).mean():.0%} were found"
        assert len(matches) > 0.5 * len(plain_matches), f"{len(matches)} matches, {len(plain_matches)} on the CPU"
        # The plane tells where a point of the first picture is in the second.
        first, second = points[0][matches[:, 0]], points[1][matches[:, 1]]
        along = (first[:, 0] - WIDTH / 2) / FOCAL
        far = (DEPTH + SLOPE * PLACES[0][0]) / (1 - SLOPE * along)
        wanted = first + numpy.subtract(PLACES[0], PLACES[1]) * FOCAL / far[:, None]
        off = numpy.linalg.norm(wanted - second, axis=1)
        assert (off < 2).mean() > 0.9, f"of the matches {(off < 2).mean():.0%} are right"


if __name__ == "__main__":
    main()
