// Kernels that launch graphs: at once, at the end of their own graph, their own graph again; what is refused. Kernels that change nodes of graphs.

#include <functional>
#include <string>
#include <vector>

#include "example.h"

// What kernels did, in order.
__device__ int done[1 << 16], count;
__device__ cudaGraphExec_t known[3];

__global__ void note(int what) { done[atomicAdd(&count, 1)] = what; }

__global__ void launch_known(int which, cudaStream_t how, int *code) {
    code[0] = cudaGraphLaunch(known[which], how);
    code[1] = cudaGetCurrentGraphExec() != nullptr;
}

__global__ void tails(int *codes) {
    const int order[] = {0, 1, 0};
    for (int i = 0; i < 3; i++) codes[i] = cudaGraphLaunch(known[order[i]], cudaStreamGraphTailLaunch);
}

__global__ void again(int *rounds, int most) {
    if (++*rounds < most && cudaGraphLaunch(cudaGetCurrentGraphExec(), cudaStreamGraphTailLaunch)) *rounds = -1;
}

__global__ void beside_itself(int *code) { *code = cudaGraphLaunch(cudaGetCurrentGraphExec(), cudaStreamGraphFireAndForget); }

// Beside its first launch, which lasts as long as this kernel, another launch of a graph is refused.
__global__ void twice(int *codes, volatile int *begun, volatile int *ended) {
    for (int i = 0; i < 2; i++) codes[i] = cudaGraphLaunch(known[2], cudaStreamGraphFireAndForget);
    while (!*begun) {
    }
    codes[2] = cudaGraphLaunch(known[2], cudaStreamGraphFireAndForgetAsSibling);
    *ended = 1;
}

__global__ void until(volatile int *begun, volatile int *ended) {
    *begun = 1;
    while (!*ended) {
    }
}

// Changes a node in one way or in all.
__global__ void change(cudaGraphDeviceNode_t node, int how, int what, int *code) {
    const bool enabled = what != 0;
    const dim3 grid(what);
    switch (how) {
    case 0: *code = cudaGraphKernelNodeSetParam(node, size_t(0), what); break;
    case 1: *code = cudaGraphKernelNodeSetGridDim(node, grid); break;
    case 2: *code = cudaGraphKernelNodeSetEnabled(node, enabled); break;
    case 3: *code = cudaGraphKernelNodeSetParam(node, size_t(2), what); break;
    default:
        alignas(8) char space[3 * sizeof(cudaGraphKernelNodeUpdate)] = {};
        auto *updates = reinterpret_cast<cudaGraphKernelNodeUpdate *>(space);
        for (int i = 0; i < 3; i++) updates[i].node = node;
        updates[0].field = cudaGraphKernelNodeFieldEnabled;
        updates[0].updateData.isEnabled = 1;
        updates[1].field = cudaGraphKernelNodeFieldGridDim;
        updates[1].updateData.gridDim = grid;
        updates[2].field = cudaGraphKernelNodeFieldParam;
        updates[2].updateData.param.pValue = &what;
        updates[2].updateData.param.size = sizeof what;
        *code = cudaGraphKernelNodeUpdatesApply(updates, 3);
    }
}

cudaStream_t stream;

cudaGraph_t captured(const std::function<void()> &work) {
    cudaGraph_t graph;
    CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    work();
    CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
    return graph;
}

cudaGraphExec_t ready(const std::function<void()> &work, unsigned flags) {
    cudaGraphExec_t executable;
    CUDA_CHECK(cudaGraphInstantiate(&executable, captured(work), flags));
    return executable;
}

void notes(int what) { note<<<1, 1, 0, stream>>>(what); }

// Launches a graph, and a kernel behind it; what kernels did by the end of both.
std::vector<int> run(cudaGraphExec_t graph) {
    const int none = 0;
    CUDA_CHECK(cudaMemcpyToSymbol(count, &none, sizeof none));
    CUDA_CHECK(cudaGraphLaunch(graph, stream));
    notes(10);
    CUDA_CHECK(cudaStreamSynchronize(stream));
    int number;
    CUDA_CHECK(cudaMemcpyFromSymbol(&number, count, sizeof number));
    std::vector<int> all(number);
    CUDA_CHECK(cudaMemcpyFromSymbol(all.data(), done, number * sizeof(int)));
    return all;
}

std::string shown(const std::vector<int> &all) {
    std::string text;
    for (int what : all) text += ' ' + std::to_string(what);
    return text;
}

void must_be(const char *name, const std::vector<int> &got, const std::vector<int> &wanted) {
    REQUIRE(got == wanted, "%s:%s, not%s", name, shown(got).c_str(), shown(wanted).c_str());
}

cudaError_t refused(const std::function<void()> &work, cudaGraphInstantiateResult *why) {
    cudaGraphExec_t executable;
    cudaGraphInstantiateParams params{};
    params.flags = cudaGraphInstantiateFlagDeviceLaunch;
    const cudaError_t code = cudaGraphInstantiateWithParams(&executable, captured(work), &params);
    *why = params.result_out;
    cudaGetLastError();
    return code;
}

int main() {
    const unsigned by_kernels = cudaGraphInstantiateFlagDeviceLaunch;
    CUDA_CHECK(cudaStreamCreate(&stream));
    int *codes;
    CUDA_CHECK(cudaMallocManaged(&codes, 4 * sizeof *codes));
    auto launching = [&](int which, cudaStream_t how, unsigned flags) {
        auto work = [=] {
            launch_known<<<1, 1, 0, stream>>>(which, how, codes);
            notes(9);
        };
        return ready(work, flags);
    };

    cudaGraphExec_t graphs[] = {ready([] { notes(1); }, by_kernels), ready([] { notes(2); notes(3); }, by_kernels)};
    CUDA_CHECK(cudaMemcpyToSymbol(known, graphs, sizeof graphs));
    must_be("not uploaded", run(launching(0, cudaStreamGraphFireAndForget, 0)), {9, 10});
    REQUIRE(codes[0] == cudaErrorInvalidValue, "not uploaded: %d", codes[0]);
    for (int which : {0, 1}) CUDA_CHECK(cudaGraphUpload(graphs[which], stream));
    must_be("in no such stream", run(launching(0, nullptr, 0)), {9, 10});
    REQUIRE(codes[0] == cudaErrorInvalidValue, "in no such stream: %d", codes[0]);

    for (unsigned flags : {0u, by_kernels}) {
        const std::vector<int> ended = run(launching(1, cudaStreamGraphTailLaunch, flags));
        must_be("at the end", ended, {9, 2, 3, 10});
        REQUIRE(codes[0] == 0 && codes[1] == (flags != 0), "at the end: %d, current %d", codes[0], codes[1]);
        // When the kernels behind it run is not said, but the graph ends behind what it launched.
        for (cudaStream_t how : {cudaStreamGraphFireAndForget, cudaStreamGraphFireAndForgetAsSibling}) {
            const std::vector<int> all = run(launching(0, how, flags));
            REQUIRE(all.size() == 3 && all.back() == 10 && codes[0] == 0, "at once: %d,%s", codes[0], shown(all).c_str());
        }
    }
    must_be("once each", run(ready([=] { tails<<<1, 1, 0, stream>>>(codes); notes(9); }, 0)), {9, 1, 2, 3, 10});
    REQUIRE(codes[0] == 0 && codes[1] == 0 && codes[2] == cudaErrorInvalidValue, "%d %d %d", codes[0], codes[1], codes[2]);

    codes[0] = 0;
    std::vector<int> rounds(3000, 9);
    rounds.push_back(10);
    const auto loop = ready([=] { again<<<1, 1, 0, stream>>>(codes, 3000); notes(9); }, by_kernels);
    REQUIRE(run(loop) == rounds && codes[0] == 3000, "%d rounds", codes[0]);
    run(ready([=] { beside_itself<<<1, 1, 0, stream>>>(codes); }, by_kernels));
    REQUIRE(codes[0] == cudaErrorInvalidValue, "beside itself: %d", codes[0]);

    int *signals;
    CUDA_CHECK(cudaMallocManaged(&signals, 2 * sizeof *signals));
    const auto waits = ready([=] { until<<<1, 1, 0, stream>>>(signals, signals + 1); }, by_kernels);
    CUDA_CHECK(cudaGraphUpload(waits, stream));
    CUDA_CHECK(cudaMemcpyToSymbol(known, &waits, sizeof waits, 2 * sizeof waits));
    const auto beside = ready([=] { twice<<<1, 1, 0, stream>>>(codes, signals, signals + 1); }, 0);
    for (int round = 0; round < 2; round++) {
        signals[0] = signals[1] = 0;
        run(beside);
        REQUIRE(codes[0] == 0 && codes[1] == cudaErrorInvalidValue && codes[2] == cudaErrorInvalidValue, "%d %d %d", codes[0],
                codes[1], codes[2]);
    }

    // A node that kernels change, before and in the launch that runs it.
    cudaLaunchAttribute updatable{};
    updatable.id = cudaLaunchAttributeDeviceUpdatableKernelNode;
    updatable.val.deviceUpdatableKernelNode.deviceUpdatable = 1;
    cudaLaunchConfig_t one{1, 1, 0, stream, &updatable, 1};
    const auto node = [&] { return updatable.val.deviceUpdatableKernelNode.devNode; };
    const cudaGraph_t changed_graph = captured([&] { CUDA_CHECK(cudaLaunchKernelEx(&one, note, 1)); });
    cudaGraphExec_t changed;
    CUDA_CHECK(cudaGraphInstantiate(&changed, changed_graph, 0));
    const auto change_to = [&](int how, int what) {
        change<<<1, 1, 0, stream>>>(node(), how, what, codes);
        CUDA_CHECK(cudaStreamSynchronize(stream));
        return codes[0];
    };
    REQUIRE(change_to(0, 5) == cudaErrorInvalidValue, "before the upload: %d", codes[0]);
    CUDA_CHECK(cudaGraphUpload(changed, stream));
    must_be("as it was made", run(changed), {1, 10});
    REQUIRE(change_to(0, 5) == 0 && change_to(1, 2) == 0, "changed: %d", codes[0]);
    must_be("changed", run(changed), {5, 5, 10});
    REQUIRE(change_to(2, 0) == 0, "left out: %d", codes[0]);
    must_be("left out", run(changed), {10});
    REQUIRE(change_to(4, 3) == 0, "all at once: %d", codes[0]);
    must_be("all at once", run(changed), {3, 3, 3, 10});
    REQUIRE(change_to(1, 0) && change_to(3, 1), "a grid of nothing, a parameter beyond the last");
    must_be("unchanged", run(changed), {3, 3, 3, 10});
    const cudaGraph_t in_turn_graph = captured([&] {
        cudaLaunchAttribute *attributes = one.attrs;
        one.attrs = nullptr, one.numAttrs = 0;
        CUDA_CHECK(cudaLaunchKernelEx(&one, note, 9));
        one.attrs = attributes, one.numAttrs = 1;
        CUDA_CHECK(cudaLaunchKernelEx(&one, note, 1));
    });
    cudaGraphNode_t nodes[2], changing;
    size_t count_of_nodes = 2;
    CUDA_CHECK(cudaGraphGetNodes(in_turn_graph, nodes, &count_of_nodes));
    cudaGraphDeviceNode_t last = node();
    int how = 0, what = 7;
    void *arguments[] = {&last, &how, &what, &codes};
    cudaKernelNodeParams params{(void *)change, 1, 1, 0, arguments, nullptr};
    CUDA_CHECK(cudaGraphAddKernelNode(&changing, in_turn_graph, nodes, 1, &params));
    CUDA_CHECK(cudaGraphAddDependencies(in_turn_graph, &changing, &nodes[1], nullptr, 1));
    cudaGraphExec_t in_turn;
    CUDA_CHECK(cudaGraphInstantiate(&in_turn, in_turn_graph, 0));
    must_be("changed in its turn", run(in_turn), {9, 7, 10});

    cudaGraphInstantiateResult why;
    int there;
    REQUIRE(refused([] { cudaLaunchHostFunc(stream, [](void *) {}, nullptr); }, &why) == cudaErrorInvalidValue
                && why == cudaGraphInstantiateNodeOperationNotSupported,
            "a function of the host: %d", why);
    REQUIRE(refused([&] { cudaMemcpyAsync(&there, codes, 4, cudaMemcpyDefault, stream); }, &why) == cudaErrorInvalidValue
                && why == cudaGraphInstantiateNodeOperationNotSupported,
            "memory that the device does not know: %d", why);
    REQUIRE(refused([] {}, &why) == cudaErrorInvalidValue, "nothing");
    REQUIRE(refused([&] { cudaMemsetAsync(codes, 0, 4, stream); }, &why) == cudaSuccess, "a fill");
    succeed("graphs launched by kernels: at once, at the end, over and over, refused where they must be; nodes changed");
}
