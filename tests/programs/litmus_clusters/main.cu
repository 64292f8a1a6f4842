// Litmus tests of the memory model among the blocks of a cluster: at the scope of the cluster, in global memory and in the shared memory
// of each of them. An argument selects the tests whose names contain it.

#include <cooperative_groups.h>
#include <string.h>

#include "litmus.h"

// Only code for compute capability 9.0 knows clusters; that for 8.0, which programs have beside it, is never run here.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#define HAS_CLUSTERS
AT_SCOPE(cluster)
#else
SCOPED(cluster, "gpu")
#endif

MESSAGE(message, store_weak, store_release_cluster(p.y, 1), p.seen[0] = load_acquire_cluster(p.y), load_weak)
MESSAGE(message_fences, store_weak, (fence_cluster(), store_relaxed_cluster(p.y, 1)),
        (p.seen[0] = load_relaxed_cluster(p.y), fence_cluster()), load_weak)
MESSAGE(message_atomics, store_weak, exchange_release_cluster(p.y, 1), p.seen[0] = add_acquire_cluster(p.y, 0), load_weak)
MESSAGE(message_wider, store_weak, store_release_sys(p.y, 1), p.seen[0] = load_acquire_gpu(p.y), load_weak)
BUFFERING(buffering, store_relaxed_cluster, fence_sc_cluster, load_relaxed_cluster)
BUFFERING(buffering_atomics, exchange_relaxed_cluster, fence_sc_cluster, load_relaxed_cluster)
LOADS_FIRST(load_buffering, cluster)
COHERENCE(coherence, store_relaxed_cluster, load_relaxed_cluster)
INDEPENDENT(independent, cluster)
CAUSALITY(causality, cluster)
ADDITIONS(additions, cluster)

// Each block of a cluster plays a role: in global memory, or in the shared memory of the block of rank `owner`.
constexpr unsigned nobody = ~0u;

template <class Test>
__global__ void played(unsigned owner, unsigned plays, Word *words, Word *seen, Word *meeting) {
#ifdef HAS_CLUSTERS
    __shared__ Word own[chunk * 3];
    auto cluster = cooperative_groups::this_cluster();
    const unsigned role = cluster.block_rank();
    Word *shared = owner == nobody ? nullptr : cluster.map_shared_rank(own, owner);
    unsigned times = 0;
    for (unsigned start = 0; start < plays; start += chunk) {
        if (role == owner)
            for (Word &word : own) *(volatile Word *)&word = 0;
        if (start / chunk % 2) cluster.sync();
        meet(meeting, role, Test::roles, ++times);
        for (unsigned i = start; i < start + chunk; i++) {
            Play play(words, seen, i);
            if (shared) play.x = shared + (i - start) * 3, play.y = play.x + 1, play.z = play.x + 2;
            Test::play(role, play);
        }
        meet(meeting, role, Test::roles, ++times);
    }
    // A block's memory is there as long as it runs.
    cluster.sync();
#endif
}

template <class Test>
void judge(const char *name, Memory &memory, const char *wanted, unsigned &done) {
    if (wanted && !strstr(name, wanted)) return;
    for (unsigned owner : {nobody, 0u, Test::roles - 1}) {
        memory.clear();
        cudaLaunchAttribute attribute = {};
        attribute.id = cudaLaunchAttributeClusterDimension;
        attribute.val.clusterDim.x = Test::roles, attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
        cudaLaunchConfig_t config = {};
        config.gridDim = Test::roles, config.blockDim = 1;
        config.attrs = &attribute, config.numAttrs = 1;
        CUDA_CHECK(cudaLaunchKernelEx(&config, played<Test>, owner, memory.plays, memory.words, memory.seen, memory.meeting));
        judge<Test>(name, owner == nobody ? "blocks" : "blocks in shared memory", memory, memory.plays, chunk);
        done++;
    }
}

int main(int count, char **arguments) {
    const char *wanted = count > 1 ? arguments[1] : nullptr;
    // The interpreter takes its time.
    const char *backend = getenv("ANYWARP_BACKEND");
    unsigned plays = (backend && !strcmp(backend, "interp") ? 4 : 16) * chunk, done = 0;
    if (count > 2) plays = atoi(arguments[2]) * chunk;
    Memory memory(plays, [](Word **at, size_t bytes) { return cudaMalloc(at, bytes); });
#define JUDGE(test) judge<test>(#test, memory, wanted, done)
    JUDGE(message);
    JUDGE(message_fences);
    JUDGE(message_atomics);
    JUDGE(message_wider);
    JUDGE(buffering);
    JUDGE(buffering_atomics);
    JUDGE(load_buffering);
    JUDGE(coherence);
    JUDGE(independent);
    JUDGE(causality);
    JUDGE(additions);
    succeed("%u litmus tests, %u plays each", done, plays);
}
