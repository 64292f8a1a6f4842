// What the examples share: error checks that say where, and the verdict on the last line.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>
#include <libgen.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <sstream>
#include <string>

// Ends the program with a reason.
[[noreturn, gnu::format(printf, 1, 2)]] inline void fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    printf("failed: ");
    vprintf(format, arguments);
    printf("\n");
    exit(1);
}

// Ends the program with what it showed.
[[noreturn, gnu::format(printf, 1, 2)]] inline void succeed(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    printf("ok: ");
    vprintf(format, arguments);
    printf("\n");
    exit(0);
}

// Runtime API: every call answers a code, and every code deserves a look.
#define CUDA_CHECK(call)                                                                        \
    do {                                                                                        \
        cudaError_t code_ = (call);                                                             \
        if (code_ != cudaSuccess)                                                               \
            fail("%s:%d: %s: %s (%s)", __FILE__, __LINE__, #call, cudaGetErrorString(code_),    \
                 cudaGetErrorName(code_));                                                      \
    } while (0)

// Driver API, likewise.
#define CU_CHECK(call)                                                                          \
    do {                                                                                        \
        CUresult code_ = (call);                                                                \
        if (code_ != CUDA_SUCCESS) {                                                            \
            const char *name_ = "unknown code", *text_ = "";                                    \
            cuGetErrorName(code_, &name_);                                                      \
            cuGetErrorString(code_, &text_);                                                    \
            fail("%s:%d: %s: %s (%s)", __FILE__, __LINE__, #call, text_, name_);                \
        }                                                                                       \
    } while (0)

// A result that the host computed too.
#define REQUIRE(condition, ...)                                                                 \
    do {                                                                                        \
        if (!(condition)) fail(__VA_ARGS__);                                                    \
    } while (0)

// The path of a file that lies beside the executable.
inline std::string beside_executable(const char *name) {
    char path[PATH_MAX] = {};
    if (readlink("/proc/self/exe", path, sizeof path - 1) < 0) fail("cannot read /proc/self/exe");
    return std::string(dirname(path)) + "/" + name;
}

// A whole file as text.
inline std::string read_file(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) fail("cannot read %s", path.c_str());
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

// Milliseconds of wall-clock time that a piece of work takes.
template <class Work>
double milliseconds(Work work) {
    auto start = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}
