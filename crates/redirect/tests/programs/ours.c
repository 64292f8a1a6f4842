/* Stands for our libcudart.so: the answers tell which one was asked, and what arrived. */
long __cudaRegisterFatBinary(void *binary) { return OURS * 100 + 1; }
long cudaMalloc(void **pointer, unsigned long size) { return OURS * 100 + 2; }
long cudaLaunchKernel(long a, long b, long c, long d, long e, long f, double g, long h, long i) {
    return a == 1 && b == 2 && c == 3 && d == 4 && e == 5 && f == 6 && g == 7.5 && h == 8 && i == 9 ? OURS * 100 + 3 : -2;
}
long cudaGetErrorString(int error) { return OURS * 100 + 4; }
long cudaGetDeviceProperties(void *properties, int device) { return OURS * 100 + 5; }
long cudaCtxResetPersistingL2Cache(void) { return OURS * 100 + 12; }
#if OURS == 12
long cudaGetDeviceProperties_v2(void *properties, int device) { return OURS * 100 + 6; }
#endif
long cudaInitDevice(int device) { return OURS * 100 + 7; }
long cudaThreeBytes(void) { return OURS * 100 + 8; }
long cudaTenBytes(void) { return OURS * 100 + 9; }
long cudaTwoBytes(void) { return OURS * 100 + 10; }
long cudaPeekAtLastError(void) { return OURS * 100 + 11; }
