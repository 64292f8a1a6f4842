// What a process holds, to see that nothing is left behind.
#pragma once

#include <dirent.h>
#include <malloc.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "example.h"

// No device has more free memory than the machine has at the moment, and others use that too: a small device always has its own.
inline const int memory_of_a_small_device = setenv("ANYWARP_MEMORY", "2G", 0);

// What other processes of the user hold meanwhile is not free either: nothing is told and heard of them.
inline const int counted_alone = setenv("ANYWARP_RUNTIME_DIR", "", 0);

// Entries of a folder of /proc/self, without "." and "..".
inline long entries(const char *folder) {
    long count = 0;
    if (DIR *open = opendir(folder)) {
        while (readdir(open)) count++;
        closedir(open);
    }
    return count - 2;
}

// The C library keeps a piece of address space for each thread that ever allocated, up to a number that grows with the processors, and who has
// many threads for a while would seem to hold more afterwards.
static const int few_arenas = mallopt(M_ARENA_MAX, 2);

// Code that has run for a while is compiled better, and the compiler is loaded for that where all code was in the cache: it should be there before
// anything is counted.
inline const int compiler_from_the_start = setenv("CUDA_CACHE_DISABLE", "1", 0);

struct Holding {
    long threads, files, mappings, heap_bytes, resident_kib;
    size_t device_bytes;

    static Holding now() {
        Holding holding{};
        holding.threads = entries("/proc/self/task");
        holding.files = entries("/proc/self/fd");
        std::string line;
        for (std::ifstream maps("/proc/self/maps"); std::getline(maps, line);) holding.mappings++;
        const struct mallinfo2 heap = mallinfo2();
        holding.heap_bytes = long(heap.uordblks);
        // Pages of files are the system's to take back: what of a library's code has run is not held. What the C library's heap has free is
        // nobody's either, resident or not.
        holding.resident_kib = -long(heap.fordblks / 1024);
        long kib = 0;
        for (std::ifstream status("/proc/self/status"); std::getline(status, line);)
            if (sscanf(line.c_str(), "RssAnon: %ld", &kib) == 1 || sscanf(line.c_str(), "RssShmem: %ld", &kib) == 1) holding.resident_kib += kib;
        size_t free = 0, total = 0;
        CUDA_CHECK(cudaMemGetInfo(&free, &total));
        holding.device_bytes = total - free;
        return holding;
    }

    // Whether no more is held than `before`, but for what may be kept for the next use: the C library keeps some freed memory for
    // each thread, and counts it: up to 0.45 MB after 100000 operations of eight threads that have ended, and as much after three times as many.
    bool is_back_at(const Holding &before) const {
        return threads <= before.threads && files <= before.files && mappings <= before.mappings + 32 &&
               heap_bytes <= before.heap_bytes + (512 << 10) + threads * (32 << 10) && resident_kib <= before.resident_kib + (24 << 10) &&
               device_bytes == before.device_bytes;
    }

    std::string text() const {
        char text[200];
        snprintf(text, sizeof text, "%ld threads, %ld files, %ld mappings, %ld bytes of heap, %ld KiB resident, %zu device bytes",
                 threads, files, mappings, heap_bytes, resident_kib, device_bytes);
        return text;
    }
};

// Fails unless the process comes back to what it held. Threads that have nothing to do leave after a while, so this looks more
// than once.
inline void require_back_at(const Holding &before, const char *after_what) {
    Holding now = Holding::now();
    for (int tries = 0; tries < 200 && !now.is_back_at(before); tries++) {
        usleep(50 * 1000);
        malloc_trim(0);
        now = Holding::now();
    }
    if (!now.is_back_at(before))
        fail("after %s: %s; before: %s", after_what, now.text().c_str(), before.text().c_str());
}
