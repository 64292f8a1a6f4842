// Graphs whose kernels decide what runs next: a loop to a fixed point, a choice in a loop, a machine that takes its program apart.

#include <cmath>
#include <vector>

#include "example.h"

using Condition = cudaGraphConditionalHandle;

// A conditional node behind others, and what it chooses from.
std::vector<cudaGraph_t> add(cudaGraph_t graph, Condition condition, cudaGraphConditionalNodeType type, unsigned size,
                             cudaGraphNode_t after = nullptr) {
    cudaGraphNodeParams params = {cudaGraphNodeTypeConditional};
    params.conditional.handle = condition, params.conditional.type = type, params.conditional.size = size;
    cudaGraphNode_t node;
    CUDA_CHECK(cudaGraphAddNode(&node, graph, after ? &after : nullptr, nullptr, after ? 1 : 0, &params));
    cudaGraph_t *bodies = params.conditional.phGraph_out;
    return {bodies, bodies + size};
}

Condition make_condition(cudaGraph_t graph, unsigned at_first) {
    Condition condition;
    CUDA_CHECK(cudaGraphConditionalHandleCreate(&condition, graph, at_first, cudaGraphCondAssignDefault));
    return condition;
}

// What `launches` queue in a stream, as nodes of a graph behind one of its nodes; the last of them.
template <typename Launches>
cudaGraphNode_t capture(cudaGraph_t graph, Launches launches) {
    cudaStream_t stream;
    CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CUDA_CHECK(cudaStreamBeginCaptureToGraph(stream, graph, nullptr, nullptr, 0, cudaStreamCaptureModeRelaxed));
    launches(stream);
    CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
    CUDA_CHECK(cudaStreamDestroy(stream));
    size_t count = 0;
    CUDA_CHECK(cudaGraphGetNodes(graph, nullptr, &count));
    std::vector<cudaGraphNode_t> nodes(count);
    CUDA_CHECK(cudaGraphGetNodes(graph, nodes.data(), &count));
    return nodes.back();
}

cudaGraphExec_t ready(cudaGraph_t graph) {
    cudaGraphExec_t executable;
    CUDA_CHECK(cudaGraphInstantiate(&executable, graph, 0));
    return executable;
}

// --- Square roots by Newton's method, all at once, until none of them moves.

__global__ void improve(const float *of, float *root, unsigned *moved, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float next = 0.5f * (root[i] + of[i] / root[i]);
    if (fabsf(next - root[i]) > 1e-6f * next) *moved = 1;
    root[i] = next;
}

__global__ void go_on_while(Condition condition, const unsigned *flag) { cudaGraphSetConditional(condition, *flag); }

void fixed_point() {
    const int n = 1000;
    float *of, *root;
    unsigned *moved;
    CUDA_CHECK(cudaMallocManaged(&of, n * sizeof *of));
    CUDA_CHECK(cudaMallocManaged(&root, n * sizeof *root));
    CUDA_CHECK(cudaMallocManaged(&moved, sizeof *moved));
    cudaGraph_t graph;
    CUDA_CHECK(cudaGraphCreate(&graph, 0));
    const Condition moving = make_condition(graph, 1);
    capture(add(graph, moving, cudaGraphCondTypeWhile, 1)[0], [&](cudaStream_t stream) {
        CUDA_CHECK(cudaMemsetAsync(moved, 0, sizeof *moved, stream));
        improve<<<(n + 127) / 128, 128, 0, stream>>>(of, root, moved, n);
        go_on_while<<<1, 1, 0, stream>>>(moving, moved);
    });
    cudaGraphExec_t executable = ready(graph);
    for (int round = 1; round <= 3; round++) {
        for (int i = 0; i < n; i++) of[i] = float(i + 1) * round * round, root[i] = 1;
        CUDA_CHECK(cudaGraphLaunch(executable, 0));
        CUDA_CHECK(cudaDeviceSynchronize());
        for (int i = 0; i < n; i++) {
            const double right = std::sqrt(double(of[i]));
            REQUIRE(std::fabs(root[i] - right) < 1e-5 * right, "root of %g: %g", of[i], root[i]);
        }
    }
    CUDA_CHECK(cudaGraphExecDestroy(executable));
    CUDA_CHECK(cudaGraphDestroy(graph));
}

// --- Collatz: a choice within a loop.

__global__ void look(Condition odd, unsigned long long *state) { cudaGraphSetConditional(odd, state[0] & 1); }
__global__ void up(unsigned long long *state) { state[0] = 3 * state[0] + 1; }
__global__ void down(unsigned long long *state) { state[0] /= 2; }
__global__ void count(Condition going, unsigned long long *state) {
    state[1]++;
    cudaGraphSetConditional(going, state[0] != 1);
}

void choice_in_a_loop() {
    unsigned long long *state;
    CUDA_CHECK(cudaMallocManaged(&state, 2 * sizeof *state));
    cudaGraph_t graph;
    CUDA_CHECK(cudaGraphCreate(&graph, 0));
    const Condition going = make_condition(graph, 1);
    const cudaGraph_t body = add(graph, going, cudaGraphCondTypeWhile, 1)[0];
    const Condition odd = make_condition(body, 0);
    const cudaGraphNode_t looked = capture(body, [&](cudaStream_t stream) { look<<<1, 1, 0, stream>>>(odd, state); });
    const std::vector<cudaGraph_t> ways = add(body, odd, cudaGraphCondTypeIf, 2, looked);
    capture(ways[0], [&](cudaStream_t stream) { up<<<1, 1, 0, stream>>>(state); });
    capture(ways[1], [&](cudaStream_t stream) { down<<<1, 1, 0, stream>>>(state); });
    void *arguments[] = {const_cast<Condition *>(&going), &state};
    cudaKernelNodeParams params = {(void *)count, dim3(1), dim3(1), 0, arguments, nullptr};
    size_t nodes = 2;
    cudaGraphNode_t before[2], counted;
    CUDA_CHECK(cudaGraphGetNodes(body, before, &nodes));
    CUDA_CHECK(cudaGraphAddKernelNode(&counted, body, before, nodes, &params));
    cudaGraphExec_t executable = ready(graph);
    for (unsigned long long start : {2, 7, 27, 97}) {
        state[0] = start, state[1] = 0;
        CUDA_CHECK(cudaGraphLaunch(executable, 0));
        CUDA_CHECK(cudaDeviceSynchronize());
        unsigned long long steps = 0;
        for (unsigned long long n = start; n != 1; steps++) n = n & 1 ? 3 * n + 1 : n / 2;
        REQUIRE(state[0] == 1 && state[1] == steps, "%llu: %llu steps, not %llu", start, state[1], steps);
    }
}

// --- A machine: each instruction is a graph, and the kernel that takes the next one apart chooses among them.

struct Machine {
    unsigned at;
    long long top, result;
    unsigned code[16];
};

enum { DOUBLE, INCREMENT, STORE, STOP };

__global__ void fetch(Condition running, Condition instruction, Machine *machine) {
    const unsigned code = machine->code[machine->at++];
    cudaGraphSetConditional(instruction, code);
    cudaGraphSetConditional(running, code != STOP);
}
__global__ void twice(Machine *machine) { machine->top *= 2; }
__global__ void increment(Machine *machine) { machine->top += 1; }
__global__ void store(Machine *machine) { machine->result = machine->top; }

void a_machine() {
    Machine *machine;
    CUDA_CHECK(cudaMallocManaged(&machine, sizeof *machine));
    cudaGraph_t graph;
    CUDA_CHECK(cudaGraphCreate(&graph, 0));
    const Condition running = make_condition(graph, 1);
    const cudaGraph_t body = add(graph, running, cudaGraphCondTypeWhile, 1)[0];
    const Condition instruction = make_condition(body, STOP);
    const cudaGraphNode_t fetched =
        capture(body, [&](cudaStream_t stream) { fetch<<<1, 1, 0, stream>>>(running, instruction, machine); });
    const std::vector<cudaGraph_t> graphs = add(body, instruction, cudaGraphCondTypeSwitch, STOP, fetched);
    capture(graphs[DOUBLE], [&](cudaStream_t stream) { twice<<<1, 1, 0, stream>>>(machine); });
    capture(graphs[INCREMENT], [&](cudaStream_t stream) { increment<<<1, 1, 0, stream>>>(machine); });
    capture(graphs[STORE], [&](cudaStream_t stream) { store<<<1, 1, 0, stream>>>(machine); });
    *machine = {0, 1, 0, {DOUBLE, DOUBLE, INCREMENT, DOUBLE, STORE, INCREMENT, STOP}};
    CUDA_CHECK(cudaGraphLaunch(ready(graph), 0));
    CUDA_CHECK(cudaDeviceSynchronize());
    REQUIRE(machine->result == 10 && machine->top == 11 && machine->at == 7, "%lld %lld after %u", machine->result,
            machine->top, machine->at);
}

int main() {
    fixed_point();
    choice_in_a_loop();
    a_machine();
    succeed("square roots to a fixed point, Collatz sequences, a machine of graphs");
}
