// How the kernels of a random program are launched, and what they leave behind is told: a line for each launch.
#ifdef HOST
#define LAUNCH(kernel, grid, block, some, n) run(#kernel, grid, block, some, n, [&](const Params& p) { \
    gridDim = grid, blockDim = block; \
    for (blockIdx.z = 0; blockIdx.z < gridDim.z; ++blockIdx.z) for (blockIdx.y = 0; blockIdx.y < gridDim.y; ++blockIdx.y) \
    for (blockIdx.x = 0; blockIdx.x < gridDim.x; ++blockIdx.x) for (threadIdx.z = 0; threadIdx.z < blockDim.z; ++threadIdx.z) \
    for (threadIdx.y = 0; threadIdx.y < blockDim.y; ++threadIdx.y) for (threadIdx.x = 0; threadIdx.x < blockDim.x; ++threadIdx.x) \
        kernel(in, inf, out, cells, bytes, columns, p); return 0; })
template <class T> static void get(T** place, size_t bytes) { *place = (T*)aligned_alloc(256, (bytes + 255) / 256 * 256); }
static void copy(void* to, const void* from, size_t bytes) { memcpy(to, from, bytes); }
static void clear(void* at, size_t bytes) { memset(at, 0, bytes); }
#else
#define LAUNCH(kernel, grid, block, some, n) run(#kernel, grid, block, some, n, [&](const Params& p) { \
    kernel<<<grid, block, 4096>>>(in, inf, out, cells, bytes, columns, p); return (int)cudaDeviceSynchronize(); })
template <class T> static void get(T** place, size_t bytes) { cudaMalloc(place, bytes); }
static void copy(void* to, const void* from, size_t bytes) { cudaMemcpy(to, from, bytes, cudaMemcpyDefault); }
static void clear(void* at, size_t bytes) { cudaMemset(at, 0, bytes); }
#endif

static const unsigned THREADS = 4096, OUTPUTS = 14, CELLS = 1024;
static uint32_t *in, *out, *columns;
static float* inf;
static uint64_t* cells;
static uint8_t* bytes;
// What the shared cells begin with: ones where they are combined by minima or by `and`, otherwise zeros.
static uint64_t starts[CELLS];

static uint32_t mixed(uint32_t x) {
    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    return x ^ x >> 16;
}

static void setup() {
    std::vector<uint32_t> words(4096 + 64);
    for (unsigned kind : {1u, 3u, 6u})
        for (unsigned at = 0; at < 8; ++at) starts[512 + kind * 8 + at] = 0x7fffffff7fffffffull;
    std::vector<float> reals(4096 + 64);
    for (uint32_t i = 0; i < words.size(); ++i) {
        const uint32_t h = mixed(i + 1);
        words[i] = h >> 29 == 0 ? h & 255 : h >> 29 == 1 ? i : h;
        reals[i] = (float)((int)(mixed(h) % 4001) - 2000) / 16.0f;
        if (h % 61 == 0) reals[i] = (float[]){1.0f / 0.0f, -0.0f, 1e-41f, 3e38f, 0.1f}[h / 61 % 5];
    }
    get(&in, words.size() * 4), get(&inf, reals.size() * 4), get(&out, THREADS * OUTPUTS * 4), get(&columns, THREADS * 16);
    get(&cells, CELLS * 8), get(&bytes, THREADS * 256);
    copy(in, words.data(), words.size() * 4), copy(inf, reals.data(), reals.size() * 4);
}

static uint64_t sum(const void* at, size_t count) {
    std::vector<unsigned char> own(count);
    copy(own.data(), at, count);
    uint64_t result = 1469598103934665603ull;
    for (unsigned char byte : own) result = (result ^ byte) * 1099511628211ull;
    return result;
}

template <class F> static void run(const char* name, dim3 grid, dim3 block, uint32_t some, uint32_t n, F launch) {
    const char* asked = getenv("ROUNDS");
    const int rounds = asked ? atoi(asked) : 1;
    const unsigned total = grid.x * grid.y * grid.z * block.x * block.y * block.z;
    Params p = {some, n, 0x123456789abcdef0ull + some, {1, some, 3, 70000, 0xffffffffu, 6, some * 7, 8}, {1, 200, 3, 255, (uint8_t)some}, {some, 9, {9, 8, 7, 6, 5}, 7, 3}, 1.5f};
    std::vector<uint64_t> first;
    for (int round = 0; round < rounds; ++round) {
        clear(out, THREADS * OUTPUTS * 4), clear(columns, THREADS * 16), copy(cells, starts, sizeof starts), clear(bytes, THREADS * 256);
        std::vector<uint64_t> now = {(uint64_t)launch(p)};
        for (unsigned at = 0; at < OUTPUTS; ++at) now.push_back(sum(out + at * total, total * 4));
        now.push_back(sum(columns, total * 16)), now.push_back(sum(cells, CELLS * 8)), now.push_back(sum(bytes, total * 256));
        if (round == 0) {
            printf("%s %u,%u,%u error %d:", name, block.x, block.y, block.z, (int)now[0]);
            for (size_t at = 1; at < now.size(); ++at) printf(" %04x", (unsigned)(now[at] & 0xffff));
            first = now;
        } else if (now != first) {
            printf(" round %d differs:", round);
            for (size_t at = 0; at < now.size(); ++at)
                if (now[at] != first[at]) printf(" %d", (int)at);
            break;
        }
    }
    printf("\n");
    fflush(stdout);
}
