/* Stands for the runtime that nvcc links in: one object file whose functions say that nothing led them elsewhere. */
#define UNREDIRECTED                    \
    {                                   \
        asm volatile(".skip 64, 0x90"); \
        return -1;                      \
    }

/* By name it asks the driver for a function that programs do not call. */
#ifndef ANOTHER_REGISTERS
__attribute__((used)) static const char asked_for[] = "cuGetExportTable";
#endif

long __cudaRegisterFatBinary(void *binary) UNREDIRECTED
long cudaMalloc(void **pointer, unsigned long size) UNREDIRECTED
long cudaLaunchKernel(long a, long b, long c, long d, long e, long f, double g, long h, long i) UNREDIRECTED
long cudaGetErrorString(int error) UNREDIRECTED
long cudaGetDeviceProperties(void *properties, int device) UNREDIRECTED
#if INSIDE >= 11
long cudaCtxResetPersistingL2Cache(void) UNREDIRECTED
#endif
#if INSIDE == 12
long cudaGetDeviceProperties_v2(void *properties, int device) UNREDIRECTED
#endif
#if INSIDE >= 12
long cudaInitDevice(int device) UNREDIRECTED
#endif
long cudaOfTheFuture(void) UNREDIRECTED

/* The real one has a function of three bytes and some of ten, with padding up to the next. */
asm(".balign 16; .globl cudaThreeBytes; .hidden cudaThreeBytes; .type cudaThreeBytes, @function\n"
    "cudaThreeBytes: xor %eax, %eax; ret; .size cudaThreeBytes, 3; .balign 16\n"
    ".globl neighbour; .hidden neighbour; .type neighbour, @function\n"
    "neighbour: mov $77, %eax; ret; .size neighbour, 6; .balign 16\n"
    ".globl cudaTenBytes; .hidden cudaTenBytes; .type cudaTenBytes, @function\n"
    "cudaTenBytes: xor %eax, %eax; nop; nop; nop; nop; nop; nop; nop; ret; .size cudaTenBytes, 10\n"
#ifdef CROWDED
    /* No room for a jump, not even in padding. */
    "cudaTwoBytes: .type cudaTwoBytes, @function; .globl cudaTwoBytes; nop; ret; .size cudaTwoBytes, 2\n"
    "crowd: nop; ret\n"
#endif
    ".balign 16");

long cudaPeekAtLastError(void) UNREDIRECTED
