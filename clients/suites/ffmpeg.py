"""FFmpeg, Debian's: its filters on the device beside those on the CPU."""

import shutil

import harness

NAME = "ffmpeg"
VERSION = "5.1, Debian's"
HOW = "driver through dlopen; PTX inside, of clang"
GAPS = {}

SOURCE = ["-f", "lavfi", "-i", "testsrc2=size=320x240:rate=5:duration=2"]
BARS = ["-f", "lavfi", "-i", "smptebars=size=80x60:rate=5:duration=2"]

# What is done to two seconds of video, on the device and on the CPU; the input, and how much bytes may differ: on average, and how many of them.
FILTERS = {
    "up and down": (SOURCE, "{up},{down}", "null", 0, 0),
    "scale, nearest": (SOURCE, "{up},scale_cuda=160:120:interp_algo=nearest,{down}", "scale=160:120:flags=neighbor", 16, 1),
    "scale, bilinear": (SOURCE, "{up},scale_cuda=480:360:interp_algo=bilinear,{down}", "scale=480:360:flags=bilinear", 2, 1),
    "scale, bicubic": (SOURCE, "{up},scale_cuda=480:360:interp_algo=bicubic,{down}", "scale=480:360:flags=bicubic", 1, 1),
    "scale, Lanczos": (SOURCE, "{up},scale_cuda=480:360:interp_algo=lanczos,{down}", "scale=480:360:flags=lanczos", 1, 1),
    "change of format": (SOURCE, "{up},scale_cuda=format=nv12,hwdownload,format=nv12,format=yuv420p", "null", 0, 0),
    # The two treat the ends of rows otherwise.
    "deinterlacing": (SOURCE, "{up},yadif_cuda=0:-1:0,{down}", "yadif=0:-1:0", 0.1, 0.01),
    "overlay": ([*SOURCE, *BARS], "[0]{up}[a];[1]format=yuva420p,hwupload_cuda[b];[a][b]overlay_cuda=10:20,{down}",
                "[0]format=yuv420p[a];[1]format=yuva420p[b];[a][b]overlay=10:20,format=yuv420p", 0, 0),
    "thumbnail": (SOURCE, "{up},thumbnail_cuda=5,{down}", "thumbnail=5", 0, 0),
}


def install(home):
    if not shutil.which("ffmpeg"):
        harness.install_from_debian(home, "ffmpeg")


def filtered(home, env, name, inputs, graph, log):
    """The bytes of the video that comes out of a graph of filters."""
    out = home / f"{name}.yuv"
    out.unlink(missing_ok=True)
    command = ["ffmpeg", "-hide_banner", "-loglevel", "error", *inputs, "-filter_complex", graph, "-f", "rawvideo", "-y", out]
    status = harness.run(command, home, env, 300, log)
    return out.read_bytes() if status == 0 and out.exists() else b""


def run(home, library, whole):
    env = harness.environment(home, library)
    words = {"up": "format=yuv420p,hwupload_cuda", "down": "hwdownload,format=yuv420p"}
    tests = []
    for name, (inputs, here, there, apart, share) in FILTERS.items():
        log = home / f"{name.replace(' ', '-').replace(',', '')}.log"
        ours = filtered(home, env, "device", inputs, here.format(**words), log)
        wanted = filtered(home, env, "cpu", inputs, there if "[" in there else f"format=yuv420p,{there}", home / "cpu.log")
        distances = [abs(a - b) for a, b in zip(ours, wanted)]
        right = len(ours) == len(wanted) > 0 and sum(distances) <= apart * len(ours)
        right = right and sum(distance > 0 for distance in distances) <= share * len(ours)
        average = sum(distances) / max(len(distances), 1)
        text = f"{len(ours)} bytes for {len(wanted)}, {average} apart, see {log}"
        tests.append(harness.Test(name, "passed" if right else "failed", text))
    return tests
