// What a folder of benches/ describes: its cases, each with its memory, its launches, and the same work in C++.
//
// case.cpp defines `cases`; the workers load it as a shared object, so that adding a kernel is adding a folder.
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

// A number of binary16, as memory holds it.
struct Half {
    uint16_t bits;
    Half() : bits(0) {}
    explicit Half(float value) {
        _Float16 half = value;
        memcpy(&bits, &half, 2);
    }
    explicit operator double() const {
        _Float16 half;
        memcpy(&half, &bits, 2);
        return half;
    }
};

// A result is right within `absolute + relative * |wanted|`; this fraction of the elements may be anything.
struct Tolerance {
    double relative = 0, absolute = 0, fraction = 0;
};

struct Buffer {
    std::vector<unsigned char> bytes;  // what it holds before the first run
    std::function<void(const void *found, const void *wanted)> compare;  // throws what is wrong; empty: not a result
};

// Names a buffer and the type of its elements.
template <typename T>
struct Handle {
    int index;
};

struct Argument {
    int buffer = -1;  // or, where that is negative, a value:
    size_t size = 0;
    alignas(8) unsigned char value[8] = {};
};

struct Extent {
    unsigned x, y = 1, z = 1;
};

struct Launch {
    std::string kernel;
    Extent grid, block;
    std::vector<Argument> arguments;
};

// c = a b, all n by n by rows: what a BLAS can do in the kernels' place.
struct Product {
    int n = 0;
    bool doubles = false;
    int a = -1, b = -1, c = -1;
};

// The buffers of a run in C++.
class Memory {
public:
    explicit Memory(const std::vector<Buffer> &buffers) {
        for (const Buffer &buffer : buffers) bytes_.push_back(buffer.bytes);
    }
    template <typename T>
    T *operator[](Handle<T> handle) { return reinterpret_cast<T *>(bytes_[size_t(handle.index)].data()); }
    void *at(int index) { return bytes_[size_t(index)].data(); }

private:
    std::vector<std::vector<unsigned char>> bytes_;
};

template <typename T>
void compare(const T *found, const T *wanted, size_t count, Tolerance tolerance) {
    size_t different = 0, first = 0;
    for (size_t i = 0; i < count; i++) {
        const double a = double(found[i]), b = double(wanted[i]);
        if (a == b || fabs(a - b) <= tolerance.absolute + tolerance.relative * fabs(b)) continue;
        if (different++ == 0) first = i;
    }
    if (double(different) > tolerance.fraction * double(count))
        throw std::runtime_error(std::to_string(different) + " of " + std::to_string(count) + " wrong, first element " +
                                 std::to_string(first) + ": " + std::to_string(double(found[first])) + ", not " +
                                 std::to_string(double(wanted[first])));
}

class Case {
public:
    bool waited = false;  // for each run by itself: what is measured is the way there and back
    double work = 0;      // of one run, in what the entry's unit counts (bytes for GB/s)
    std::vector<Buffer> buffers;
    std::vector<Launch> launches;  // one run is all of them, in order; none: only C++ has this case
    std::function<void(Memory &)> reference;
    Product product;

    template <typename T>
    Handle<T> input(const std::vector<T> &values) { return add(values); }

    // Not read before it is written, and not looked at.
    template <typename T>
    Handle<T> scratch(size_t count) { return add(std::vector<T>(count)); }

    template <typename T>
    Handle<T> output(size_t count, Tolerance tolerance = {}) { return result(std::vector<T>(count), tolerance); }

    template <typename T>
    Handle<T> result(const std::vector<T> &values, Tolerance tolerance = {}) {
        const Handle<T> handle = add(values);
        const size_t count = values.size();
        buffers.back().compare = [=](const void *found, const void *wanted) {
            compare(static_cast<const T *>(found), static_cast<const T *>(wanted), count, tolerance);
        };
        return handle;
    }

    template <typename... Arguments>
    void launch(const char *kernel, Extent grid, Extent block, Arguments... arguments) {
        launches.push_back({kernel, grid, block, {argument(arguments)...}});
    }

private:
    template <typename T>
    Handle<T> add(const std::vector<T> &values) {
        Buffer buffer;
        buffer.bytes.resize(values.size() * sizeof(T));
        if (!values.empty()) memcpy(buffer.bytes.data(), values.data(), buffer.bytes.size());
        buffers.push_back(std::move(buffer));
        return {int(buffers.size()) - 1};
    }
    template <typename T>
    static Argument argument(Handle<T> handle) {
        Argument result;
        result.buffer = handle.index;
        return result;
    }
    template <typename T>
    static Argument argument(T value) {
        static_assert(std::is_arithmetic<T>::value && sizeof(T) <= 8, "a kernel's argument is a number or a buffer");
        Argument result;
        result.size = sizeof(T);
        memcpy(result.value, &value, sizeof(T));
        return result;
    }
};

// What decides how long a case takes where everything else is done well.
enum class Bound { compute, memory, launch };

struct Entry {
    const char *name;   // of the case: unique, a word
    const char *title;  // for the table, with the size
    const char *unit;   // work per nanosecond, such as GB/s; empty: there is none
    std::function<Case(bool small)> make;  // small: for checks only, where it must not take long
    bool for_many = false;  // only for the section on more threads: of a size that keeps many of them busy for milliseconds
    Bound bound = Bound::compute;
};

extern "C" const std::vector<Entry> cases;

inline unsigned blocks(size_t count, size_t each) { return unsigned((count + each - 1) / each); }

// The same numbers in each process.
class Random {
public:
    explicit Random(uint32_t seed = 12345) : state_(seed) {}
    uint32_t next() {
        state_ = state_ * 1664525 + 1013904223;
        return state_ >> 8;
    }
    float uniform(float low, float high) { return low + (high - low) * float(next()) / float(1 << 24); }

private:
    uint32_t state_;
};

template <typename T = float>
std::vector<T> random_values(size_t count, float low, float high, uint32_t seed = 12345) {
    Random random(seed);
    std::vector<T> values(count);
    for (T &value : values) value = T(random.uniform(low, high));
    return values;
}
