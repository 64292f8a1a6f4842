// Litmus tests of the memory model (PTX ISA, "Memory Consistency Model"): what it forbids is never seen, among the threads of a warp, the
// warps of a block, the blocks of a grid, in global and in shared memory, and between device and host. What it allows need not be seen.
//
// Each test is played on many sets of words; what each role has read is judged afterwards. An argument selects the tests whose names
// contain it.

#include <string.h>

#include "litmus.h"

MESSAGE(message_cta, store_relaxed_cta, store_release_cta(p.y, 1), p.seen[0] = load_acquire_cta(p.y), load_relaxed_cta)
MESSAGE(message_gpu, store_weak, store_release_gpu(p.y, 1), p.seen[0] = load_acquire_gpu(p.y), load_weak)
MESSAGE(message_sys, store_weak, store_release_sys(p.y, 1), p.seen[0] = load_acquire_sys(p.y), load_weak)
MESSAGE(message_fences, store_weak, (fence_gpu(), store_relaxed_gpu(p.y, 1)),
        (p.seen[0] = load_relaxed_gpu(p.y), fence_gpu()), load_weak)
MESSAGE(message_volatile, store_weak, (fence_sys(), store_volatile(p.y, 1)),
        (p.seen[0] = load_volatile(p.y), fence_sys()), load_weak)
MESSAGE(message_mmio, store_mmio, (fence_sys(), store_mmio(p.y, 1)), (p.seen[0] = load_mmio(p.y), fence_sys()), load_mmio)
MESSAGE(message_atomics, store_weak, exchange_release_gpu(p.y, 1), p.seen[0] = add_acquire_gpu(p.y, 0), load_weak)
MESSAGE(message_both, store_relaxed_gpu, add_both_gpu(p.y, 1), p.seen[0] = add_both_gpu(p.y, 0), load_relaxed_gpu)
MESSAGE(message_sc, store_weak, (fence_sc_gpu(), exchange_relaxed_gpu(p.y, 1)),
        (p.seen[0] = load_relaxed_gpu(p.y), fence_sc_gpu()), load_weak)
// The release begins a sequence that another thread's addition continues.
struct message_through_addition {
    static constexpr unsigned roles = 3;
    static __host__ __device__ void play(unsigned role, const Play &p) {
        if (role == 0) {
            store_weak(p.x, 1);
            add_both_gpu(p.y, 1);
        } else if (role == 1) {
            exchange_relaxed_gpu(p.z, 1);
            add_relaxed_gpu(p.y, 2);
        } else {
            p.seen[0] = load_acquire_gpu(p.y);
            p.seen[1] = load_weak(p.x);
        }
    }
    static bool forbidden(const Word *seen) { return seen[0] & 1 && seen[1] == 0; }
};

BUFFERING(buffering_cta, store_relaxed_cta, fence_sc_cta, load_relaxed_cta)
BUFFERING(buffering_gpu, store_relaxed_gpu, fence_sc_gpu, load_relaxed_gpu)
BUFFERING(buffering_sys, store_relaxed_sys, fence_sc_sys, load_relaxed_sys)
BUFFERING(buffering_volatile, store_volatile, fence_sc_sys, load_volatile)
BUFFERING(buffering_mmio, store_mmio, fence_sc_sys, load_mmio)
BUFFERING(buffering_atomics, exchange_relaxed_gpu, fence_sc_gpu, load_relaxed_gpu)
BUFFERING(buffering_threadfence, store_volatile, threadfence, load_volatile)
LOADS_FIRST(load_buffering_cta, cta)
LOADS_FIRST(load_buffering_gpu, gpu)
LOADS_FIRST(load_buffering_sys, sys)
COHERENCE(coherence_cta, store_relaxed_cta, load_relaxed_cta)
COHERENCE(coherence_gpu, store_relaxed_gpu, load_relaxed_gpu)
COHERENCE(coherence_sys, store_relaxed_sys, load_relaxed_sys)
COHERENCE(coherence_volatile, store_volatile, load_volatile)
COHERENCE(coherence_mmio, store_mmio, load_mmio)

// Two writers: all readers see their stores in the same order.
struct coherence_of_two_sys {
    static constexpr unsigned roles = 4;
    static __host__ __device__ void play(unsigned role, const Play &p) {
        if (role < 2) {
            store_relaxed_sys(p.x, role + 1);
        } else {
            const Word first = load_relaxed_sys(p.x), second = load_relaxed_sys(p.x);
            p.seen[role - 2] = first * 4 + second;
        }
    }
    static bool forbidden(const Word *seen) {
        return seen[0] == 1 * 4 + 2 && seen[1] == 2 * 4 + 1 || seen[0] == 2 * 4 + 1 && seen[1] == 1 * 4 + 2 ||
               seen[0] == 4 || seen[0] == 8 || seen[1] == 4 || seen[1] == 8;
    }
};

INDEPENDENT(independent_cta, cta)
INDEPENDENT(independent_gpu, gpu)
INDEPENDENT(independent_sys, sys)
CAUSALITY(causality_cta, cta)
CAUSALITY(causality_gpu, gpu)
CAUSALITY(causality_sys, sys)
ADDITIONS(additions_cta, cta)
ADDITIONS(additions_gpu, gpu)
ADDITIONS(additions_sys, sys)

enum Place { lanes, warps, blocks, shared_memory };
const char *const place_names[] = {"lanes", "warps", "blocks", "shared memory"};

template <class Test>
__global__ void played(Place place, unsigned plays, Word *words, Word *seen, Word *meeting) {
    __shared__ Word own[chunk / 4 * 3];
    const unsigned role = place == lanes ? threadIdx.x : place == blocks ? blockIdx.x : threadIdx.x / 32;
    if (place != lanes && threadIdx.x % 32 || role >= Test::roles) return;
    unsigned times = 0;
    const unsigned each = place == shared_memory ? chunk / 4 : chunk;
    for (unsigned start = 0; start < plays; start += chunk) {
        if (place == shared_memory && role == 0)
            for (Word &word : own) *(volatile Word *)&word = 0;
        meet(meeting, role, Test::roles, ++times);
        for (unsigned i = start; i < start + each; i++) {
            Play play(words, seen, i);
            if (place == shared_memory) play.x = own + (i - start) * 3, play.y = play.x + 1, play.z = play.x + 2;
            Test::play(role, play);
        }
        meet(meeting, role, Test::roles, ++times);
    }
}

template <class Test>
void judge(const char *name, Memory &memory, const char *wanted, unsigned &done) {
    if (wanted && !strstr(name, wanted)) return;
    for (Place place : {lanes, warps, blocks, shared_memory}) {
        // A scope of one block does not reach others, and shared memory is no device's.
        if (place == blocks && strstr(name, "_cta") || place == shared_memory && strstr(name, "_mmio")) continue;
        memory.clear();
        const unsigned count = place == blocks ? Test::roles : 1, threads = place == warps || place == shared_memory ? 32 * Test::roles : 32;
        played<Test><<<count, threads>>>(place, memory.plays, memory.words, memory.seen, memory.meeting);
        CUDA_CHECK(cudaGetLastError());
        judge<Test>(name, place_names[place], memory, memory.plays, place == shared_memory ? chunk / 4 : chunk);
        done++;
    }
}

// The other roles than the host's, each in a block of its own.
template <class Test>
__global__ void played_with_host(unsigned host, unsigned plays, Word *words, Word *seen, Word *meeting) {
    const unsigned role = blockIdx.x + (blockIdx.x >= host);
    unsigned times = 0;
    for (unsigned start = 0; start < plays; start += chunk) {
        meet(meeting, role, Test::roles, ++times);
        for (unsigned i = start; i < start + chunk; i++) Test::play(role, Play(words, seen, i));
        meet(meeting, role, Test::roles, ++times);
    }
}

// Each role in turn is played by the host, in memory that both have.
template <class Test>
void judge_with_host(const char *name, Memory &memory, const char *wanted, unsigned &done) {
    if (wanted && !strstr(name, wanted) && !strstr("host", wanted)) return;
    const unsigned plays = memory.plays / 8 < chunk ? chunk : memory.plays / 8 / chunk * chunk;
    for (unsigned host = 0; host < Test::roles; host++) {
        memory.clear();
        played_with_host<Test><<<Test::roles - 1, 1>>>(host, plays, memory.words, memory.seen, memory.meeting);
        CUDA_CHECK(cudaGetLastError());
        unsigned times = 0;
        for (unsigned start = 0; start < plays; start += chunk) {
            meet(memory.meeting, host, Test::roles, ++times);
            for (unsigned i = start; i < start + chunk; i++) Test::play(host, Play(memory.words, memory.seen, i));
            meet(memory.meeting, host, Test::roles, ++times);
        }
        CUDA_CHECK(cudaDeviceSynchronize());
        judge<Test>(name, "host and device", memory, plays, chunk);
        done++;
    }
}

int main(int count, char **arguments) {
    const char *wanted = count > 1 ? arguments[1] : nullptr;
    // The interpreter takes its time.
    const char *backend = getenv("ANYWARP_BACKEND"), *blocking = getenv("CUDA_LAUNCH_BLOCKING");
    unsigned plays = (backend && !strcmp(backend, "interp") ? 8 : 64) * chunk, done = 0;
    if (count > 2) plays = atoi(arguments[2]) * chunk;
    Memory memory(plays, [](Word **at, size_t bytes) { return cudaMalloc(at, bytes); });
#define JUDGE(test) judge<test>(#test, memory, wanted, done)
    JUDGE(message_cta);
    JUDGE(message_gpu);
    JUDGE(message_sys);
    JUDGE(message_fences);
    JUDGE(message_volatile);
    JUDGE(message_mmio);
    JUDGE(message_atomics);
    JUDGE(message_both);
    JUDGE(message_sc);
    JUDGE(message_through_addition);
    JUDGE(buffering_cta);
    JUDGE(buffering_gpu);
    JUDGE(buffering_sys);
    JUDGE(buffering_volatile);
    JUDGE(buffering_mmio);
    JUDGE(buffering_atomics);
    JUDGE(buffering_threadfence);
    JUDGE(load_buffering_cta);
    JUDGE(load_buffering_gpu);
    JUDGE(load_buffering_sys);
    JUDGE(coherence_cta);
    JUDGE(coherence_gpu);
    JUDGE(coherence_sys);
    JUDGE(coherence_volatile);
    JUDGE(coherence_mmio);
    JUDGE(coherence_of_two_sys);
    JUDGE(independent_cta);
    JUDGE(independent_gpu);
    JUDGE(independent_sys);
    JUDGE(causality_cta);
    JUDGE(causality_gpu);
    JUDGE(causality_sys);
    JUDGE(additions_cta);
    JUDGE(additions_gpu);
    JUDGE(additions_sys);
    // A launch that is waited for leaves nobody on the host to play.
    if (!(blocking && *blocking == '1')) {
        Memory mapped(plays, [](Word **at, size_t bytes) { return cudaHostAlloc(at, bytes, cudaHostAllocMapped); });
#define JUDGE_WITH_HOST(test) judge_with_host<test>(#test, mapped, wanted, done)
        JUDGE_WITH_HOST(message_sys);
        JUDGE_WITH_HOST(message_volatile);
        JUDGE_WITH_HOST(message_mmio);
        JUDGE_WITH_HOST(buffering_sys);
        JUDGE_WITH_HOST(buffering_volatile);
        JUDGE_WITH_HOST(buffering_mmio);
        JUDGE_WITH_HOST(load_buffering_sys);
        JUDGE_WITH_HOST(coherence_sys);
        JUDGE_WITH_HOST(coherence_mmio);
        JUDGE_WITH_HOST(coherence_of_two_sys);
        JUDGE_WITH_HOST(independent_sys);
        JUDGE_WITH_HOST(causality_sys);
    }
    succeed("%u litmus tests, %u plays each", done, plays);
}
