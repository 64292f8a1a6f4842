// Forward progress: every thread that has begun goes on, whatever the others of its warp and block do. Threads lock, wait for each
// other and meet in different branches; all of it must end with the right result, however few cores there are.
//
// An argument selects the parts whose names contain it.

#include <string.h>

#include <vector>

#include "example.h"

using Word = unsigned;
constexpr unsigned everyone = 0xffffffff;

// The recurrence that each holder of a lock applies: its result tells how often, and whether two came between each other.
__host__ __device__ constexpr Word step(Word value) { return value * 5 % 1000003 + 1; }

__device__ void advance(Word *value) { *(volatile Word *)value = step(*(volatile Word *)value); }

// Locks

// The lock is taken before the critical section: lanes leave the loop one by one.
__global__ void lock_before(Word *lock, Word *value) {
    while (atomicCAS(lock, 0, 1) != 0) {}
    __threadfence();
    advance(value);
    __threadfence();
    atomicExch(lock, 0);
}

__global__ void lock_inside(Word *lock, Word *value) {
    for (bool done = false; !done;) {
        if (atomicCAS(lock, 0, 1) == 0) {
            __threadfence();
            advance(value);
            __threadfence();
            atomicExch(lock, 0);
            done = true;
        }
    }
}

__global__ void lock_by_exchange(Word *lock, Word *value) {
    while (atomicExch(lock, 1) != 0) __nanosleep(20);
    __threadfence();
    advance(value);
    __threadfence();
    *(volatile Word *)lock = 0;
}

__global__ void lock_shared(Word *, Word *value) {
    __shared__ Word lock;
    if (threadIdx.x == 0) lock = 0;
    __syncthreads();
    while (atomicCAS(&lock, 0, 1) != 0) {}
    __threadfence_block();
    if (blockIdx.x == 0) advance(value);
    __threadfence_block();
    atomicExch(&lock, 0);
}

// First come, first served: each lane waits for the one with the ticket before its own.
__global__ void tickets(Word *next, Word *value) {
    Word *serving = next + 1;
    const Word ticket = atomicAdd(next, 1);
    while (*(volatile Word *)serving != ticket) {}
    __threadfence();
    advance(value);
    __threadfence();
    *(volatile Word *)serving = ticket + 1;
}

// Lanes contend for the locks of an array, two at a time, in order.
__global__ void lock_pairs(Word *locks, Word *counts) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned a = i % 5, b = 5 + i * 7 % 3;
    for (unsigned round = 0; round < 3; round++) {
        while (atomicCAS(&locks[a], 0, 1) != 0) {}
        while (atomicCAS(&locks[b], 0, 1) != 0) {}
        __threadfence();
        ((volatile Word *)counts)[a]++;
        ((volatile Word *)counts)[b]++;
        __threadfence();
        atomicExch(&locks[b], 0);
        atomicExch(&locks[a], 0);
    }
}

// One lane of each warp takes the lock; the others wait for it at the barrier.
__global__ void lock_then_barrier(Word *lock, Word *value) {
    __shared__ Word entered;
    if (threadIdx.x == 0) entered = 0;
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
        while (atomicCAS(lock, 0, 1) != 0) {}
        advance(value);
        atomicAdd(&entered, 1);
        atomicExch(lock, 0);
    }
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(value + 1, entered);
}

// Waiting within a warp

__global__ void lane_for_lane(Word *flag, Word *value) {
    if (threadIdx.x == 3) {
        while (*(volatile Word *)flag == 0) {}
        *value = 7;
    } else if (threadIdx.x == 20) {
        *(volatile Word *)flag = 1;
    }
}

__global__ void first_lane_for_another(Word *flag, Word *value) {
    if (threadIdx.x == 0) {
        while (atomicAdd(flag, 0) == 0) {}
        *value = 7;
    } else if (threadIdx.x == 1) {
        atomicExch(flag, 1);
    }
}

// The same with the branches the other way round.
__global__ void another_for_first_lane(Word *flag, Word *value) {
    if (threadIdx.x != 0) {
        while (*(volatile Word *)flag == 0) {}
        atomicAdd(value, 1);
    } else {
        *(volatile Word *)flag = 1;
    }
}

// Each lane waits for the lane before it, around the warp.
__global__ void around_the_warp(Word *turn, Word *value) {
    for (unsigned round = 0; round < 3; round++) {
        while (*(volatile Word *)turn != round * 32 + threadIdx.x) {}
        advance(value);
        __threadfence();
        *(volatile Word *)turn = round * 32 + threadIdx.x + 1;
    }
}

// Two lanes throw a ball.
__global__ void ping_pong(Word *ball, Word *value) {
    if (threadIdx.x > 1) return;
    for (unsigned round = 0; round < 50; round++) {
        while (*(volatile Word *)ball % 2 != threadIdx.x) {}
        advance(value);
        __threadfence();
        atomicAdd(ball, 1);
    }
}

// Between blocks

// The first block waits for the last, which has not begun when it does.
__global__ void consumer_first(Word *flag, Word *value) {
    if (blockIdx.x == 0) {
        if (threadIdx.x == 0) {
            while (*(volatile Word *)flag != gridDim.x - 1) {}
            __threadfence();
        }
        __syncthreads();
        if (threadIdx.x < gridDim.x - 1) atomicAdd(value, ((volatile Word *)value)[1 + threadIdx.x]);
    } else if (threadIdx.x == 0) {
        value[blockIdx.x] = blockIdx.x;
        __threadfence();
        atomicAdd(flag, 1);
    }
}

// Every block waits until all have begun: a grid barrier without a cooperative launch.
__global__ void all_meet(Word *arrived, Word *value) {
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicAdd(arrived, 1);
        while (*(volatile Word *)arrived < gridDim.x) {}
    }
    __syncthreads();
    if (threadIdx.x == 5) atomicAdd(value, *(volatile Word *)arrived);
}

// The same where every lane polls for itself.
__global__ void all_meet_by_lanes(Word *arrived, Word *value) {
    atomicAdd(arrived, 1);
    while (*(volatile Word *)arrived < gridDim.x * blockDim.x) {}
    atomicAdd(value, 1);
}

// Barriers in branches

// Warps in different branches use barriers of their own.
__global__ void named_barriers(Word *, Word *value) {
    __shared__ Word words[128];
    const unsigned i = threadIdx.x;
    words[i] = i;
    if (i < 64) {
        asm volatile("bar.sync 1, 64;" ::: "memory");
        const Word other = words[63 - i];
        asm volatile("bar.sync 1, 64;" ::: "memory");
        words[i] = other + 1000;
    } else {
        asm volatile("bar.sync 2, 64;" ::: "memory");
        const Word other = words[191 - i];
        asm volatile("bar.sync 2, 64;" ::: "memory");
        words[i] = other + 2000;
    }
    __syncthreads();
    if (blockIdx.x == 0) value[i] = words[127 - i];
}

// Which branch a warp takes is not known before it runs.
__global__ void barriers_by_data(Word *which, Word *value) {
    __shared__ Word words[128];
    const unsigned i = threadIdx.x;
    words[i] = i;
    if (((volatile Word *)which)[i / 32] == 0) {
        asm volatile("barrier.sync 1, 64;" ::: "memory");
        value[i] = words[i ^ 32] + 1;
    } else {
        asm volatile("barrier.sync 2, 64;" ::: "memory");
        value[i] = words[i ^ 32] + 2;
    }
}

// The lanes of a warp come to the block's barrier in two places.
__global__ void barrier_in_both_branches(Word *, Word *value) {
    __shared__ Word words[128];
    const unsigned i = threadIdx.x;
    if (i % 2 == 0) {
        words[i] = i * 3;
        asm volatile("barrier.sync 0;" ::: "memory");
        if (blockIdx.x == 0) value[i] = words[i ^ 33] + 1;
    } else {
        words[i] = i * 5;
        asm volatile("barrier.sync 0;" ::: "memory");
        if (blockIdx.x == 0) value[i] = words[i ^ 33] + 2;
    }
}

// Threads that have ended do not hold the others at a barrier.
__global__ void early_exit(Word *, Word *value) {
    __shared__ Word words[128];
    words[threadIdx.x] = threadIdx.x;
    if (threadIdx.x % 3 == 0) return;
    __syncthreads();
    if (blockIdx.x == 0) value[threadIdx.x] = words[threadIdx.x / 3 * 3];
}

// Warp operations in branches

__global__ void syncwarp_subsets(Word *, Word *value) {
    __shared__ Word words[128];
    const unsigned lane = threadIdx.x % 32, i = threadIdx.x;
    Word sum = 0;
    if (lane < 16) {
        for (unsigned round = 0; round < 4; round++) {
            words[i] = i + round;
            __syncwarp(0x0000ffff);
            sum += words[i ^ 5];
            __syncwarp(0x0000ffff);
        }
    } else {
        for (unsigned round = 0; round < 6; round++) {
            words[i] = i * 2 + round;
            __syncwarp(0xffff0000);
            sum += words[i ^ 9];
            __syncwarp(0xffff0000);
        }
    }
    if (blockIdx.x == 0) value[i] = sum;
}

// Both branches meet: each `__syncwarp` waits for the other half, which is at another one.
__global__ void syncwarp_across_branches(Word *, Word *value) {
    __shared__ volatile Word words[128];
    const unsigned lane = threadIdx.x % 32, i = threadIdx.x;
    Word seen;
    if (lane < 16) {
        words[i] = i + 100;
        __syncwarp();
        seen = words[i ^ 16];
        __syncwarp();
        words[i] = seen * 2;
        __syncwarp();
    } else {
        words[i] = i + 200;
        __syncwarp();
        seen = words[i ^ 16];
        __syncwarp();
        words[i] = seen * 3;
        __syncwarp();
    }
    if (blockIdx.x == 0) value[i] = words[i ^ 16] * 1000 + seen;
}

__global__ void shuffle_across_branches(Word *, Word *value) {
    const unsigned lane = threadIdx.x % 32, i = threadIdx.x;
    Word seen;
    if (lane % 2 == 0) {
        seen = __shfl_xor_sync(everyone, i * 3, 1) + 1;
    } else {
        seen = __shfl_xor_sync(everyone, i * 7, 1) + 2;
    }
    if (blockIdx.x == 0) value[i] = seen;
}

// Masks that the lanes compute, in a loop that they leave at different times.
__global__ void partial_masks(Word *, Word *value) {
    const unsigned lane = threadIdx.x % 32, i = threadIdx.x;
    Word sum = 0;
    unsigned mask = everyone;
    for (unsigned round = 0; round < lane % 7 + 1; round++) {
        sum += __reduce_add_sync(mask, lane) + __popc(__ballot_sync(mask, lane % 2));
        sum += __shfl_sync(mask, i, __ffs(mask) - 1);
        mask = __ballot_sync(mask, round + 1 < lane % 7 + 1);
    }
    if (blockIdx.x == 0) value[i] = sum;
}

// Groups of lanes with masks of their own reduce at the same place.
__global__ void groups(Word *, Word *value) {
    const unsigned lane = threadIdx.x % 32, i = threadIdx.x;
    const unsigned mask = __match_any_sync(everyone, lane % 5);
    Word sum = __reduce_add_sync(mask, i) * 3 + __reduce_max_sync(mask, lane);
    int all;
    sum += __match_all_sync(mask, lane % 5, &all) & 0xff;
    if (blockIdx.x == 0) value[i] = sum + all * 100000;
}

struct Part {
    const char *name;
    void (*kernel)(Word *, Word *);
    unsigned blocks, threads;
    void (*expect)(Part const &, std::vector<Word> &words, std::vector<Word> &value);
};

using Words = std::vector<Word>;

void stepped(const Part &part, Words &, Words &value) {
    for (unsigned i = 0; i < part.blocks * part.threads; i++) value[0] = step(value[0]);
}

void stepped_in_one_block(const Part &part, Words &, Words &value) {
    for (unsigned i = 0; i < part.threads; i++) value[0] = step(value[0]);
}

void seven(const Part &, Words &, Words &value) { value[0] = 7; }

#define NOTHING [](const Part &, Words &, Words &) {}

const Part parts[] = {
    {"lock_before", lock_before, 4, 48, stepped},
    {"lock_before_many", lock_before, 40, 64, stepped},
    {"lock_inside", lock_inside, 4, 48, stepped},
    {"lock_by_exchange", lock_by_exchange, 3, 70, stepped},
    {"lock_shared", lock_shared, 3, 96, stepped_in_one_block},
    {"tickets", tickets, 3, 64, stepped},
    {"lock_pairs", lock_pairs, 4, 64,
     [](const Part &part, Words &, Words &value) {
         for (unsigned i = 0; i < part.blocks * part.threads; i++) value[i % 5] += 3, value[5 + i * 7 % 3] += 3;
     }},
    {"lock_then_barrier", lock_then_barrier, 6, 128,
     [](const Part &part, Words &, Words &value) {
         for (unsigned i = 0; i < part.blocks * part.threads / 32; i++) value[0] = step(value[0]), value[1]++;
     }},
    {"lane_for_lane", lane_for_lane, 1, 32, seven},
    {"first_lane_for_another", first_lane_for_another, 1, 64, seven},
    {"another_for_first_lane", another_for_first_lane, 1, 64,
     [](const Part &, Words &, Words &value) { value[0] = 63; }},
    {"around_the_warp", around_the_warp, 1, 32,
     [](const Part &, Words &, Words &value) {
         for (unsigned i = 0; i < 96; i++) value[0] = step(value[0]);
     }},
    {"ping_pong", ping_pong, 1, 32,
     [](const Part &, Words &, Words &value) {
         for (unsigned i = 0; i < 100; i++) value[0] = step(value[0]);
     }},
    {"consumer_first", consumer_first, 65, 64,
     [](const Part &, Words &, Words &value) {
         for (unsigned i = 1; i < 65; i++) value[i] = i, value[0] += i;
     }},
    {"all_meet", all_meet, 130, 64, [](const Part &, Words &, Words &value) { value[0] = 130 * 130; }},
    {"all_meet_by_lanes", all_meet_by_lanes, 40, 33, [](const Part &, Words &, Words &value) { value[0] = 40 * 33; }},
    {"named_barriers", named_barriers, 2, 128,
     [](const Part &, Words &, Words &value) {
         for (unsigned i = 0; i < 128; i++)
             value[127 - i] = i < 64 ? 63 - i + 1000 : 191 - i + 2000;
     }},
    {"barriers_by_data", barriers_by_data, 1, 128,
     [](const Part &, Words &words, Words &value) {
         words = {0, 0, 1, 1};
         for (unsigned i = 0; i < 128; i++) value[i] = (i ^ 32) + (i < 64 ? 1 : 2);
     }},
    {"barrier_in_both_branches", barrier_in_both_branches, 2, 128,
     [](const Part &, Words &, Words &value) {
         for (unsigned i = 0; i < 128; i++) value[i] = (i ^ 33) * (i % 2 ? 3 : 5) + (i % 2 ? 2 : 1);
     }},
    {"early_exit", early_exit, 2, 128,
     [](const Part &, Words &, Words &value) {
         for (unsigned i = 0; i < 128; i++) value[i] = i % 3 ? i / 3 * 3 : 0;
     }},
    {"syncwarp_subsets", syncwarp_subsets, 2, 128,
     [](const Part &, Words &, Words &value) {
         for (unsigned i = 0; i < 128; i++)
             for (unsigned round = 0; round < (i % 32 < 16 ? 4 : 6); round++)
                 value[i] += i % 32 < 16 ? (i ^ 5) + round : (i ^ 9) * 2 + round;
     }},
    {"syncwarp_across_branches", syncwarp_across_branches, 2, 128,
     [](const Part &, Words &, Words &value) {
         const auto seen = [](unsigned i) { return i % 32 < 16 ? (i ^ 16) + 200 : (i ^ 16) + 100; };
         for (unsigned i = 0; i < 128; i++) value[i] = seen(i ^ 16) * (i % 32 < 16 ? 3 : 2) * 1000 + seen(i);
     }},
    {"shuffle_across_branches", shuffle_across_branches, 2, 64,
     [](const Part &, Words &, Words &value) {
         for (unsigned i = 0; i < 64; i++) value[i] = i % 2 ? (i ^ 1) * 3 + 2 : (i ^ 1) * 7 + 1;
     }},
    {"partial_masks", partial_masks, 2, 64,
     [](const Part &, Words &, Words &value) {
         for (unsigned warp = 0; warp < 2; warp++) {
             unsigned mask = everyone;
             for (unsigned round = 0; round < 7; round++) {
                 unsigned sum = 0, odd = 0, first = 32, next = 0;
                 for (unsigned lane = 32; lane-- > 0;)
                     if (mask >> lane & 1) {
                         sum += lane, odd += lane % 2, first = lane;
                         if (round + 1 < lane % 7 + 1) next |= 1u << lane;
                     }
                 for (unsigned lane = 0; lane < 32; lane++)
                     if (mask >> lane & 1) value[warp * 32 + lane] += sum + odd + warp * 32 + first;
                 mask = next;
             }
         }
     }},
    {"groups", groups, 2, 64,
     [](const Part &, Words &, Words &value) {
         for (unsigned i = 0; i < 64; i++) {
             unsigned sum = 0, most = 0, mask = 0;
             for (unsigned lane = 0; lane < 32; lane++)
                 if (lane % 5 == i % 32 % 5) sum += i / 32 * 32 + lane, most = lane, mask |= 1u << lane;
             value[i] = sum * 3 + most + (mask & 0xff) + 100000;
         }
     }},
};

void run(const Part &part) {
    const size_t count = 256;
    Words words(count), expected(count);
    part.expect(part, words, expected);
    words.resize(count);
    Word *device_words, *device_value;
    CUDA_CHECK(cudaMalloc(&device_words, count * sizeof(Word)));
    CUDA_CHECK(cudaMalloc(&device_value, count * sizeof(Word)));
    CUDA_CHECK(cudaMemcpy(device_words, words.data(), count * sizeof(Word), cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemset(device_value, 0, count * sizeof(Word)));
    const auto start = std::chrono::steady_clock::now();
    part.kernel<<<part.blocks, part.threads>>>(device_words, device_value);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaDeviceSynchronize());
    Words value(count);
    CUDA_CHECK(cudaMemcpy(value.data(), device_value, count * sizeof(Word), cudaMemcpyDeviceToHost));
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
    for (size_t i = 0; i < count; i++)
        REQUIRE(value[i] == expected[i], "%s: word %zu is %u, not %u", part.name, i, value[i], expected[i]);
    printf("%-26s %9.2f ms\n", part.name, time.count());
    CUDA_CHECK(cudaFree(device_words));
    CUDA_CHECK(cudaFree(device_value));
}

int main(int count, char **arguments) {
    unsigned done = 0;
    for (const Part &part : parts)
        if (count < 2 || strstr(part.name, arguments[1])) run(part), done++;
    succeed("%u ways to wait for others", done);
}
