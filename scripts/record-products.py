#!/usr/bin/env python3
"""Asks a GPU about the products of tests/kernels/src/products and prints name and CRC-32 of each result.

    cargo run -p anywarp-kernel-tests --bin products -- FOLDER
    scripts/record-products.py FOLDER

Needs the standard library and NVIDIA's driver. Modules that were assembled beforehand (NUMBER.cubin beside NUMBER.ptx) are loaded as they
are. A product that fails is reported by its code and costs no other: those after it run in a new process. With --full=BYTES results of up to so
many bytes are printed too (zlib, base64).
"""
import base64
import ctypes
import pathlib
import subprocess
import sys
import zlib

POISON = 0xCB
ROOM = 1 << 17


def check(code, what):
    if code:
        raise RuntimeError(f"{what} {code}")


class Gpu:
    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        self.buffers = [ctypes.c_uint64() for _ in range(3)]
        for buffer in self.buffers:
            self.call("cuMemAlloc_v2", ctypes.byref(buffer), ctypes.c_size_t(ROOM))

    def call(self, name, *arguments):
        check(getattr(self.cuda, name)(*arguments), name)

    def run(self, code, threads, inputs, size):
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), code)
        self.call("cuModuleGetFunction", ctypes.byref(function), module, b"k")
        for buffer, content in zip(self.buffers, inputs + [bytes([POISON]) * size]):
            if content:
                self.call("cuMemcpyHtoD_v2", buffer, content, ctypes.c_size_t(len(content)))
        places = (ctypes.c_void_p * 3)(*[ctypes.addressof(buffer) for buffer in self.buffers])
        self.call("cuLaunchKernel", function, 1, 1, 1, threads, 1, 1, 0, None, places, None)
        self.call("cuCtxSynchronize")
        result = ctypes.create_string_buffer(size)
        self.call("cuMemcpyDtoH_v2", result, self.buffers[2], ctypes.c_size_t(size))
        self.call("cuModuleUnload", module)
        return result.raw


def answer(folder, lines, full):
    gpu = Gpu()
    pools = {path.stem: path.read_bytes() for path in folder.glob("*.pool")}

    def content(text):
        parts = [part.split(":") for part in text.split()]
        return b"".join(pools[name][int(at):int(at) + int(count)] for name, at, count in parts)

    for line in lines:
        number, name, threads, image, registers, size = line.split("\t")
        path = folder / f"{number}.cubin"
        code = path.read_bytes() if path.exists() else (folder / f"{number}.ptx").read_bytes() + b"\0"
        try:
            result = gpu.run(code, int(threads), [content(image), content(registers)], int(size))
        except RuntimeError as error:
            print(f"{name}\tFAILED {error}", flush=True)
            return 1
        more = "\t" + base64.b64encode(zlib.compress(result, 9)).decode() if len(result) <= full else ""
        print(f"{name}\t{zlib.crc32(result):08x}{more}", flush=True)
    return 0


def main():
    folder = pathlib.Path(sys.argv[1])
    full = next((int(word.split("=")[1]) for word in sys.argv if word.startswith("--full=")), 0)
    lines = (folder / "products.tsv").read_text().splitlines()
    if "--child" in sys.argv:
        return answer(folder, sys.stdin.read().splitlines(), full)
    failures = 0
    while lines:
        child = subprocess.run([sys.executable, *sys.argv, "--child"], input="\n".join(lines), stdout=subprocess.PIPE, text=True)
        sys.stdout.write(child.stdout)
        # What crashed the process said nothing.
        done = max(1, child.stdout.count("\n"))
        if child.stdout.count("\n") == 0:
            print(f"{lines[0].split(chr(9))[1]}\tFAILED code {child.returncode}")
        lines = lines[done:]
        failures += child.returncode != 0
        if failures > 30:
            print("too many failures")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
