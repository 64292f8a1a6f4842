// Litmus tests: some roles, which different threads play at the same time, and which read and write a few words; and what the memory
// model (PTX ISA, "Memory Consistency Model") forbids them to have seen. A role may be played on the host too.

#pragma once

#include <sched.h>

#include <vector>

#include "example.h"

using Word = unsigned;

// The words of one play, each in a cache line of its own, and what the roles have seen.
constexpr unsigned line = 32, words_of_play = 3 * line, seen_of_play = 4;
// Plays between two meetings of the roles.
constexpr unsigned chunk = 64;

#ifdef __CUDA_ARCH__
#define HERE(device, host) device
#else
#define HERE(device, host) host
#endif

#define LOAD(name, text, order)                                                                                 \
    __host__ __device__ inline Word name(const Word *at) {                                                      \
        Word value;                                                                                             \
        HERE(asm volatile(text ".u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory"),                            \
             value = __atomic_load_n(at, __ATOMIC_##order));                                                    \
        return value;                                                                                           \
    }
#define STORE(name, text, order)                                                                                \
    __host__ __device__ inline void name(Word *at, Word value) {                                                \
        HERE(asm volatile(text ".u32 [%0], %1;" ::"l"(at), "r"(value) : "memory"),                              \
             __atomic_store_n(at, value, __ATOMIC_##order));                                                    \
    }
#define ATOMIC(name, text, host, order)                                                                         \
    __host__ __device__ inline Word name(Word *at, Word value) {                                                \
        Word old;                                                                                               \
        HERE(asm volatile(text " %0, [%1], %2;" : "=r"(old) : "l"(at), "r"(value) : "memory"),                  \
             old = host(at, value, __ATOMIC_##order));                                                          \
        return old;                                                                                             \
    }
#define FENCE(name, text, order) \
    __host__ __device__ inline void name() { HERE(asm volatile(text ";" ::: "memory"), __atomic_thread_fence(__ATOMIC_##order)); }
#define SCOPED(scope, word)                                                                                     \
    LOAD(load_relaxed_##scope, "ld.relaxed." word, RELAXED)                                                   \
    LOAD(load_acquire_##scope, "ld.acquire." word, ACQUIRE)                                                   \
    STORE(store_relaxed_##scope, "st.relaxed." word, RELAXED)                                                 \
    STORE(store_release_##scope, "st.release." word, RELEASE)                                                 \
    ATOMIC(exchange_relaxed_##scope, "atom.relaxed." word ".exch.b32", __atomic_exchange_n, RELAXED)          \
    ATOMIC(exchange_release_##scope, "atom.release." word ".exch.b32", __atomic_exchange_n, RELEASE)          \
    ATOMIC(add_relaxed_##scope, "atom.relaxed." word ".add.u32", __atomic_fetch_add, RELAXED)                 \
    ATOMIC(add_acquire_##scope, "atom.acquire." word ".add.u32", __atomic_fetch_add, ACQUIRE)                 \
    ATOMIC(add_both_##scope, "atom.acq_rel." word ".add.u32", __atomic_fetch_add, ACQ_REL)                    \
    FENCE(fence_##scope, "fence.acq_rel." word, ACQ_REL)                                                      \
    FENCE(fence_sc_##scope, "fence.sc." word, SEQ_CST)
#define AT_SCOPE(scope) SCOPED(scope, #scope)
AT_SCOPE(cta)
AT_SCOPE(gpu)
AT_SCOPE(sys)
LOAD(load_volatile, "ld.volatile", RELAXED)
STORE(store_volatile, "st.volatile", RELAXED)
LOAD(load_mmio, "ld.mmio.relaxed.sys", RELAXED)
STORE(store_mmio, "st.mmio.relaxed.sys", RELAXED)
LOAD(load_weak, "ld", RELAXED)
STORE(store_weak, "st", RELAXED)
__host__ __device__ inline void threadfence() { HERE(__threadfence(), __atomic_thread_fence(__ATOMIC_SEQ_CST)); }

// The words x, y, z of a play, and what its roles put down.
struct Play {
    Word *x, *y, *z, *seen;

    __host__ __device__ Play(Word *words, Word *seen, unsigned number)
        : x(words + size_t(number) * words_of_play), y(x + line), z(y + line), seen(seen + size_t(number) * seen_of_play) {}
};

// Message passing: who sees the flag sees the message.
#define MESSAGE(name, put, publish, look, get)                                         \
    struct name {                                                                      \
        static constexpr unsigned roles = 2;                                           \
        static __host__ __device__ void play(unsigned role, const Play &p) {                    \
            if (role == 0) {                                                           \
                put(p.x, 1);                                                           \
                publish;                                                               \
            } else {                                                                   \
                look;                                                                  \
                p.seen[1] = get(p.x);                                                  \
            }                                                                          \
        }                                                                              \
        static bool forbidden(const Word *seen) { return seen[0] == 1 && seen[1] == 0; } \
    };

// Store buffering: with fence.sc between, one of two threads sees the other's store.
#define BUFFERING(name, store, fence, load)                                              \
    struct name {                                                                        \
        static constexpr unsigned roles = 2;                                             \
        static __host__ __device__ void play(unsigned role, const Play &p) {                      \
            store(role ? p.y : p.x, 1);                                                  \
            fence();                                                                     \
            p.seen[role] = load(role ? p.x : p.y);                                       \
        }                                                                                \
        static bool forbidden(const Word *seen) { return seen[0] == 0 && seen[1] == 0; } \
    };

// Load buffering: no two threads see each other's later release.
#define LOADS_FIRST(name, scope)                                                          \
    struct name {                                                                        \
        static constexpr unsigned roles = 2;                                             \
        static __host__ __device__ void play(unsigned role, const Play &p) {                      \
            p.seen[role] = load_acquire_##scope(role ? p.x : p.y);                       \
            store_release_##scope(role ? p.y : p.x, 1);                                  \
        }                                                                                \
        static bool forbidden(const Word *seen) { return seen[0] == 1 && seen[1] == 1; } \
    };

// Coherence: the stores to one word have an order, and no thread sees it backwards.
#define COHERENCE(name, store, load)                                                                \
    struct name {                                                                                   \
        static constexpr unsigned roles = 3;                                                        \
        static __host__ __device__ void play(unsigned role, const Play &p) {                                 \
            if (role == 0) {                                                                        \
                store(p.x, 1);                                                                      \
                store(p.x, 2);                                                                      \
                p.seen[3] = load(p.x);                                                              \
            } else if (role == 1) {                                                                 \
                p.seen[0] = load(p.x);                                                              \
                p.seen[1] = load(p.x);                                                              \
            } else {                                                                                \
                p.seen[2] = load(p.x);                                                              \
            }                                                                                       \
        }                                                                                           \
        static bool forbidden(const Word *seen) { return seen[0] > seen[1] || seen[3] != 2; }       \
    };

// Independent reads of independent writes: with fence.sc between their loads two readers agree on which store came first.
#define INDEPENDENT(name, scope)                                                                    \
    struct name {                                                                                   \
        static constexpr unsigned roles = 4;                                                        \
        static __host__ __device__ void play(unsigned role, const Play &p) {                                 \
            if (role < 2) {                                                                         \
                store_relaxed_##scope(role ? p.y : p.x, 1);                                         \
            } else {                                                                                \
                const Word first = load_relaxed_##scope(role == 2 ? p.x : p.y);                     \
                fence_sc_##scope();                                                                 \
                const Word second = load_relaxed_##scope(role == 2 ? p.y : p.x);                    \
                p.seen[role - 2] = first * 2 + second;                                              \
            }                                                                                       \
        }                                                                                           \
        static bool forbidden(const Word *seen) { return seen[0] == 2 && seen[1] == 2; }            \
    };

// What a thread has seen before it releases, those that acquire from it see too.
#define CAUSALITY(name, scope)                                                           \
    struct name {                                                                        \
        static constexpr unsigned roles = 3;                                             \
        static __host__ __device__ void play(unsigned role, const Play &p) {                      \
            if (role == 0) {                                                             \
                store_weak(p.x, 1);                                                      \
                store_release_##scope(p.y, 1);                                           \
            } else if (role == 1) {                                                      \
                p.seen[0] = load_acquire_##scope(p.y);                                   \
                store_release_##scope(p.z, p.seen[0] + 1);                               \
            } else {                                                                     \
                p.seen[1] = load_acquire_##scope(p.z);                                   \
                p.seen[2] = load_weak(p.x);                                              \
            }                                                                            \
        }                                                                                \
        static bool forbidden(const Word *seen) { return seen[1] == 2 && seen[2] == 0; } \
    };

// No two additions find the same, and none is lost.
#define ADDITIONS(name, scope)                                                           \
    struct name {                                                                        \
        static constexpr unsigned roles = 4;                                             \
        static __host__ __device__ void play(unsigned role, const Play &p) { p.seen[role] = add_relaxed_##scope(p.x, 1); } \
        static bool forbidden(const Word *seen) {                                        \
            return (1u << seen[0] % 32 | 1u << seen[1] % 32 | 1u << seen[2] % 32 | 1u << seen[3] % 32) != 15; \
        }                                                                                \
    };

// All who play meet: each says how often it has come, in a line of its own.
__host__ __device__ inline void meet(Word *meeting, unsigned role, unsigned roles, unsigned times) {
    fence_sc_sys();
    store_release_sys(meeting + role * line, times);
    for (unsigned other = 0; other < roles; other++)
        while (load_acquire_sys(meeting + other * line) < times) HERE({}, sched_yield());
}

// The words and the answers of so many plays, where everyone who plays can reach them.
struct Memory {
    unsigned plays;
    Word *words, *seen, *meeting;
    std::vector<Word> host;

    template <class Allocate>
    Memory(unsigned plays, Allocate allocate) : plays(plays), host(size_t(plays) * seen_of_play) {
        CUDA_CHECK(allocate(&words, size_t(plays) * words_of_play * sizeof(Word)));
        CUDA_CHECK(allocate(&seen, size_t(plays) * seen_of_play * sizeof(Word)));
        CUDA_CHECK(allocate(&meeting, seen_of_play * line * sizeof(Word)));
    }

    void clear() {
        CUDA_CHECK(cudaMemset(words, 0, size_t(plays) * words_of_play * sizeof(Word)));
        CUDA_CHECK(cudaMemset(seen, 0, size_t(plays) * seen_of_play * sizeof(Word)));
        CUDA_CHECK(cudaMemset(meeting, 0, seen_of_play * line * sizeof(Word)));
        CUDA_CHECK(cudaDeviceSynchronize());
    }
};

// The first of some plays that has seen what is forbidden. `judged` are those of each chunk that have been played.
template <class Test>
void judge(const char *name, const char *place, Memory &memory, unsigned plays, unsigned judged) {
    CUDA_CHECK(cudaMemcpy(memory.host.data(), memory.seen, memory.host.size() * sizeof(Word), cudaMemcpyDefault));
    for (unsigned i = 0; i < plays; i++) {
        if (i % chunk >= judged) continue;
        const Word *seen = memory.host.data() + size_t(i) * seen_of_play;
        REQUIRE(!Test::forbidden(seen), "%s among %s, play %u: forbidden: %u %u %u %u", name, place, i, seen[0], seen[1], seen[2],
                seen[3]);
    }
}
