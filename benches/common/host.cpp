// The cases in C++ with OpenMP, as clang compiles them for this processor: `host FOLDER CASES...`. With BENCH_BLAS in the
// environment only the matrix products, by that library.

#include "worker.h"

class HostCase : public Prepared {
public:
    explicit HostCase(Case c) : case_(std::move(c)), memory_(case_.buffers) {}
    void start() override { case_.reference(memory_); }
    void read(int index, std::vector<unsigned char> &bytes) override { memcpy(bytes.data(), memory_.at(index), bytes.size()); }

private:
    Case case_;
    Memory memory_;
};

// The two functions of CBLAS that matter here; the enumerations are row-major and not transposed.
using Sgemm = void (*)(int, int, int, int, int, int, float, const float *, int, const float *, int, float, float *, int);
using Dgemm = void (*)(int, int, int, int, int, int, double, const double *, int, const double *, int, double, double *, int);

class HostWorker : public Worker {
public:
    HostWorker() {
        const char *path = getenv("BENCH_BLAS");
        if (!path) return;
        blas_ = dlopen(path, RTLD_NOW);
        if (!blas_) throw std::runtime_error(dlerror());
    }

    std::unique_ptr<Prepared> prepare(const Located &located, const Case &c, bool small) override {
        if (blas_) return product(c);
        const char *chosen = getenv("BENCH_FAST");
        const std::string fast_object = chosen ? chosen : "fast.so";
        for (const Entry &entry : load_cases(located.path + "/" + fast_object))
            if (entry.name == std::string(located.entry.name)) {
                // The same description in the fast object: its reference is the one compiled for this processor.
                Case fast = c;
                fast.reference = entry.make(small).reference;
                return std::make_unique<HostCase>(std::move(fast));
            }
        throw std::runtime_error("not in " + fast_object);
    }

    std::unique_ptr<Prepared> operation(const std::string &kind, size_t bytes) override {
        if (blas_) return nullptr;
        const auto nothing = [] {};
        if (kind == "alloc") return std::make_unique<Operation>([=] { keep(malloc(bytes)); }, nothing);
        auto to = std::make_shared<std::vector<unsigned char>>(bytes, 1);
        auto from = std::make_shared<std::vector<unsigned char>>(bytes, 2);
        if (kind == "memset") return std::make_unique<Operation>([=] { memset(to->data(), 3, bytes); }, nothing);
        return std::make_unique<Operation>([=] { memcpy(to->data(), from->data(), bytes); }, nothing);
    }

private:
    // So that an allocation is not optimised away.
    static void keep(void *memory) {
        asm volatile("" : : "r"(memory) : "memory");
        free(memory);
    }

    std::unique_ptr<Prepared> product(Case c) {
        const Product p = c.product;
        if (p.n == 0) return nullptr;
        void *function = dlsym(blas_, p.doubles ? "cblas_dgemm" : "cblas_sgemm");
        if (!function) throw std::runtime_error("the BLAS has no CBLAS");
        constexpr int by_rows = 101, as_it_is = 111;
        c.reference = [=](Memory &memory) {
            const int n = p.n;
            void *a = memory.at(p.a), *b = memory.at(p.b), *out = memory.at(p.c);
            if (p.doubles)
                reinterpret_cast<Dgemm>(function)(by_rows, as_it_is, as_it_is, n, n, n, 1, (double *)a, n, (double *)b, n, 0, (double *)out, n);
            else
                reinterpret_cast<Sgemm>(function)(by_rows, as_it_is, as_it_is, n, n, n, 1, (float *)a, n, (float *)b, n, 0, (float *)out, n);
        };
        return std::make_unique<HostCase>(std::move(c));
    }

    void *blas_ = nullptr;
};

int main(int count, char **arguments) {
    return run_worker([] { return std::make_unique<HostWorker>(); }, count, arguments);
}
