// The best score of a local alignment of two sequences (Smith-Waterman), a pair to a block, a row of its matrix to a thread: along
// diagonals, whose cells do not depend on each other.
#define LENGTH 128
#define MATCH 2
#define MISMATCH -1
#define GAP 1

extern "C" __global__ void align(const char *first, const char *second, int *scores) {
    __shared__ char letters[LENGTH];
    __shared__ int cells[3][LENGTH + 1];
    __shared__ int best[LENGTH];
    int row = threadIdx.x, start = blockIdx.x * LENGTH;
    char own = first[start + row];
    letters[row] = second[start + row];
    for (int i = 0; i < 3; i++) cells[i][row + 1] = 0;
    if (row == 0) cells[0][0] = cells[1][0] = cells[2][0] = 0;
    int most = 0;
    __syncthreads();
    for (int diagonal = 0; diagonal < 2 * LENGTH - 1; diagonal++) {
        int *now = cells[diagonal % 3], *before = cells[(diagonal + 2) % 3], *earlier = cells[(diagonal + 1) % 3];
        int column = diagonal - row;
        if (column >= 0 && column < LENGTH) {
            int score = earlier[row] + (own == letters[column] ? MATCH : MISMATCH);
            score = max(score, max(before[row], before[row + 1]) - GAP);
            score = max(score, 0);
            now[row + 1] = score;
            most = max(most, score);
        }
        __syncthreads();
    }
    best[row] = most;
    for (int half = LENGTH / 2; half > 0; half /= 2) {
        __syncthreads();
        if (row < half) best[row] = max(best[row], best[row + half]);
    }
    if (row == 0) scores[blockIdx.x] = best[0];
}
