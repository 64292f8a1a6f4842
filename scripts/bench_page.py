"""What scripts/bench measured, as Markdown, as a figure, and in the README."""

import json
import math
import os
import statistics

import examples
from bench_workers import OURS

ROOT = examples.ROOT
README = ROOT / "README.md"
BEGIN, END = "<!-- scripts/bench --page on a machine with {} writes from here -->", "<!-- to here -->"
COLOURS = {"PoCL": "#c2571a", "Intel OpenCL": "#2b6cb0", "C++ OpenMP": "#2f855a", "OpenBLAS": "#805ad5"}


def vectors(flags):
    """The widest vectors there are, which decide more than anything else how fast kernels are: each kind has a page."""
    return "AVX-512" if "avx512f" in flags else "AVX2" if "avx2" in flags else "SSE"


def machine(avx2_only):
    """The processor's name, how much memory there is, and its kind of vectors, or of those that are used."""
    name, flags, memory = "an unknown processor", [], ""
    for line in open("/proc/cpuinfo"):
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            name = value.strip()
        elif key.strip() == "flags":
            flags = value.split()
            break
    for line in open("/proc/meminfo"):
        if line.startswith("MemTotal"):
            memory = f", {int(line.split()[1]) / 2**20:.0f} GiB of memory"
    has, kind = vectors(flags), "AVX2" if avx2_only else vectors(flags)
    limited = f", of which all but PoCL use {kind} alone" if kind != has else ""
    virtual = ", a virtual machine" if "hypervisor" in flags else ""
    described = f"{name} with {has}{limited}{virtual}, {len(os.sched_getaffinity(0))} processors{memory}"
    return {"machine": described, "vectors": kind}


def duration(nanoseconds):
    for limit, unit in ((1e3, "ns"), (1e6, "µs"), (1e9, "ms")):
        if nanoseconds < limit:
            return f"{nanoseconds / limit * 1e3:.3g} {unit}"
    return f"{nanoseconds / 1e9:.3g} s"


def size(count):
    return f"{count >> 20} MiB" if count >= 1 << 20 else f"{count >> 10} KiB"


def median(row, name):
    """Nanoseconds, or None where there are none."""
    values = row["times_ns"].get(name)
    return statistics.median(values) if values else None


def fastest(row):
    """The least of the medians, or None."""
    return min((time for name in row["times_ns"] if (time := median(row, name))), default=None)


def names(rows):
    """Of the implementations that have any time, ours first."""
    found = dict.fromkeys(name for row in rows for name, values in row["times_ns"].items() if values)
    return sorted(found, key=lambda name: name != OURS)


def ratio(row, name):
    """How many times as long as ours it takes, or None."""
    ours, theirs = median(row, OURS), median(row, name)
    return theirs / ours if ours and theirs else None


def mean(rows, name):
    """The geometric mean of the ratios, and of how many."""
    ratios = [found for row in rows if (found := ratio(row, name))]
    return (statistics.geometric_mean(ratios), len(ratios)) if ratios else (None, 0)


def computing(rows):
    """Those that neither memory nor launching decides."""
    return [row for row in rows if row.get("bound", "compute") == "compute"]


def cell(row, name):
    time = median(row, name)
    if time is None:
        return "–"
    times = ratio(row, name)
    return duration(time) + (f" ({times:.2f}×)" if times and name != OURS else "")


def markdown(header, rows):
    lines = [f"| {' | '.join(header)} |", f"|---|{'---:|' * (len(header) - 1)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def compared(rows):
    """Those that a worker of ours has, and the limits."""
    return [row for row in rows if median(row, OURS)], [row for row in rows if not row["case"].find("limit_")]


def kernels(rows, heading="Kernels"):
    kernel_rows, limits = compared(rows or [])
    if not kernel_rows:
        return []
    who = names(kernel_rows)
    lines = []
    for row in kernel_rows:
        rate = f"{row['work'] / median(row, OURS):.3g} {row['unit']}" if row["work"] and row["unit"] else ""
        lines.append([row["title"], *(cell(row, name) for name in who), rate])
    if len(who) > 1:
        for title, some in (("geometric mean", kernel_rows), ("of those that compute", computing(kernel_rows))):
            means = [mean(some, name) for name in who[1:]]
            lines.append([f"**{title}**", "", *(f"**{value:.2f}×** of {count}" if count else "–" for value, count in means), ""])
    text = [
        f"## {heading}",
        "The median time of one run; in brackets, how many times as long as ours takes: more than 1 is slower than ours.",
        markdown(["", *who, "ours, per second"], lines),
    ]
    reached = []
    for row in limits:
        for name in row["times_ns"]:
            if time := median(row, name):
                reached.append(f"{row['title'].removeprefix('limit: ')} {row['work'] / time:.3g} {row['unit']}")
    if reached:
        text.append(f"What C++ reaches here at most: {'; '.join(reached)}.")
    copying = next((row["work"] / time for row in limits if row["case"] == "limit_copy" for time in [fastest(row)] if time), None)
    streams = [row for row in kernel_rows if row.get("bound") == "memory"]
    if copying and streams:
        shares = (f"{row['title']} {100 * row['work'] / median(row, OURS) / copying:.0f} %" for row in streams)
        text.append(f"Of what copying moves, kernels that memory decides move: {'; '.join(shares)}.")
    return text


def operations(rows):
    if not rows:
        return []
    who = names(rows)
    lines = [[f"{row['title']}, {size(row['bytes'])}", *(cell(row, name) for name in who)] for row in rows]
    return [
        "## Memory",
        "Copies between ordinary host memory and the device, on the device, fills, and allocation; C++ is `memcpy`, `memset` "
        "and `malloc` on one thread.",
        markdown(["", *who], lines),
    ]


def calls(rows):
    if not rows:
        return []
    lines = []
    for row in rows:
        gpu = row["gpu_ns"]
        lines.append([row["name"], duration(row["ns"]), duration(gpu) if gpu else "–", f"{gpu / row['ns']:.2f}×" if gpu else ""])
    return [
        "## Launches and calls",
        "What a call costs its caller, and NVIDIA's driver on an H200 (`benches/gpu.json`), on another machine's processor: a "
        "measure of what programs are used to, not a race.",
        markdown(["", "Anywarp", "NVIDIA", "in times of ours"], lines),
    ]


def compiling(result, titles):
    if not result:
        return []
    text = ["## Compiling and starting"]
    if rows := result.get("kernels"):
        keys = {"anywarp_ms": OURS, "pocl_ms": "PoCL", "intel_ms": "Intel OpenCL"}
        there = [key for key in keys if any(row.get(key) for row in rows)]
        show = lambda row, key: duration(row[key] * 1e6) if row.get(key) else "–"
        lines = [[titles.get(row["name"], row["name"]), *(show(row, key) for key in there)] for row in rows]
        text.append("From the source that each takes (PTX, OpenCL C) to the end of the first run, with nothing cached. "
                    "Ours runs code that is compiled quickly then; the code that is timed above is compiled beside it once that has run for a while.")
        shares = []
        for key in there[1:]:
            both = [row["anywarp_ms"] / row[key] for row in rows if row.get("anywarp_ms") and row.get(key)]
            shares += [f"{statistics.geometric_mean(both):.3f} of {keys[key]}'s time"] if both else []
        text.append(markdown(["", *(keys[key] for key in there)], lines))
        if shares:
            text.append(f"By geometric mean ours takes {', '.join(shares)}.")
    if start := result.get("start"):
        kinds = {"warm_first_launch_ms": "with the kernel in the cache", "cold_first_launch_ms": "with an empty cache"}
        shown = [f"{kind} {duration(start[key] * 1e6)}" for key, kind in kinds.items() if start.get(key)]
        text.append(f"From the start of a process to the first kernel's result: {', '.join(shown)}.")
        if (idle := start.get("idle_second_ms")) is not None:
            text.append(f"In a second in which nothing is asked of it, a process with a device takes {idle:.0f} ms of the processors.")
    return text


def scaling(rows):
    rows = [row for row in rows or [] if fastest(row)]
    counts = sorted({row["threads"] for row in rows})
    if not rows:
        return []
    who = names(rows)
    lines = []
    for case, title in {row["case"]: row["title"] for row in rows}.items():
        for name in who:
            times = {row["threads"]: median(row, name) for row in rows if row["case"] == case}
            if not times.get(counts[0]):
                continue
            shown = [f"{duration(times[count])} ({times[counts[0]] / times[count]:.2f}×)" if times.get(count) else "–" for count in counts]
            lines.append([title, name, *shown])
    header = ["", "", *(f"{count} thread{'s' if count > 1 else ''}" for count in counts)]
    return [
        "## Scaling",
        f"The same work with more threads; in brackets, how many times as fast as with {counts[0]}.",
        markdown(header, lines),
    ]


def heading(result):
    versions = ", ".join(f"{name} {number}" for name, number in result["versions"].items())
    rounds = f"{result['rounds']} round{'s' if result['rounds'] > 1 else ''}"
    return f"{result['date']}; {result['machine']}; {result['threads']} threads each; {rounds}. {versions}."


def text(result):
    """Everything that was measured."""
    parts = [heading(result)]
    parts += kernels(result.get("kernels"))
    parts += kernels(result.get("single"), "Kernels with one thread")
    parts += calls(result.get("calls"))
    parts += operations(result.get("operations"))
    titles = {row["case"]: row["title"] for row in result.get("kernels") or []}
    parts += compiling(result.get("compile"), titles)
    parts += scaling(result.get("scaling"))
    return "\n\n".join(parts)


def figure(rows):
    """Each kernel a line, each peer a point where its time lies in times of ours; logarithmic."""
    rows = compared(rows)[0]
    who = [name for name in names(rows) if name != OURS]
    found = [value for row in rows for name in who if (value := ratio(row, name))]
    low, high = math.floor(math.log2(min(found + [0.5]))), math.ceil(math.log2(max(found + [2])))
    left, width, top, step = 250, 560, 60, 22
    height = top + step * len(rows) + 40
    place = lambda value: left + width * (math.log2(value) - low) / (high - low)
    escape = lambda text: text.replace("&", "&amp;").replace("<", "&lt;")
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + width + 30} {height}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{left + width + 30}" height="{height}" fill="#ffffff"/>',
        '<text x="10" y="20" font-size="14">Time in times of Anywarp\'s: right of 1× is slower than ours</text>',
    ]
    for index, name in enumerate(who):
        x = 16 + 150 * index
        out.append(f'<circle cx="{x}" cy="38" r="5" fill="{COLOURS.get(name, "#444444")}"/>')
        out.append(f'<text x="{x + 10}" y="42">{escape(name)}</text>')
    bottom = top + step * len(rows)
    for power in range(low, high + 1):
        x, heavy = place(2.0**power), power == 0
        label = f"{2**power}×" if power >= 0 else f"1/{2**-power}×"
        out.append(f'<line x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{bottom}" stroke="{"#000000" if heavy else "#dddddd"}"/>')
        out.append(f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{label}</text>')
    for index, row in enumerate(rows):
        y = top + step * index + step / 2
        out.append(f'<text x="{left - 10}" y="{y + 4}" text-anchor="end">{escape(row["title"])}</text>')
        for name in who:
            if value := ratio(row, name):
                out.append(f'<circle cx="{place(value):.1f}" cy="{y}" r="5" fill="{COLOURS.get(name, "#444444")}" fill-opacity="0.85">'
                           f"<title>{escape(name)}: {value:.2f}×</title></circle>")
    return "\n".join([*out, "</svg>"]) + "\n"


def stem(result):
    """The name of the page for this kind of machine, and of its figure and data, without their endings."""
    return f"speed-{result['vectors'].lower().replace('-', '')}"


def summary(result):
    """For the README."""
    rows = compared(result.get("kernels") or [])[0]
    shown = []
    for name in names(rows)[1:]:
        value, count = mean(rows, name)
        computed, _ = mean(computing(rows), name)
        faster = sum(1 for row in rows if (found := ratio(row, name)) and found > 1)
        if value:
            shown.append([name, f"{value:.2f}×", f"{computed:.2f}×" if computed else "–", f"{faster} of {count}"])
    table = markdown(["compared with", "its time in times of ours, geometric mean", "of kernels that compute", "kernels where ours is faster"], shown)
    page = f"docs/{stem(result)}"
    return f"{heading(result)}\n\n{table}\n\n![Each kernel against each of them]({page}.svg)\n\nAll figures: [{page}.md]({page}.md)."


def write(result):
    """The page, the figure and the README's summary."""
    rows = result.get("kernels") or []
    if len(names(compared(rows)[0])) < 2:
        raise SystemExit("--page needs the kernels, and something to compare with")
    name = stem(result)
    (ROOT / f"docs/{name}.svg").write_text(figure(rows))
    (ROOT / f"docs/{name}.json").write_text(json.dumps(result) + "\n")
    intro = (
        f"# Speed with {result['vectors']}\n\nWhat `make bench` measured; `scripts/bench --page` writes this page, and every time "
        f"that it took into [{name}.json]({name}.json).\n\n"
    )
    body = text(result).replace("## Kernels\n", f"![Each kernel against each of them]({name}.svg)\n\n## Kernels\n", 1)
    (ROOT / f"docs/{name}.md").write_text(f"{intro}{body}\n")
    readme = README.read_text()
    start = BEGIN.format(result["vectors"])
    before, begin, rest = readme.partition(start)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise SystemExit(f"README.md has no lines {start} and {END}: the page is written, the summary is not")
    README.write_text(f"{before}{start}\n{summary(result)}\n{END}{after}")
