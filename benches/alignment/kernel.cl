// The best score of a local alignment of two sequences (Smith-Waterman), a pair to a group, a row of its matrix to an item: along
// diagonals, whose cells do not depend on each other.
#define LENGTH 128
#define MATCH 2
#define MISMATCH -1
#define GAP 1

kernel void align(global const char *first, global const char *second, global int *scores) {
    local char letters[LENGTH];
    local int cells[3][LENGTH + 1];
    local int best[LENGTH];
    int row = get_local_id(0), start = get_group_id(0) * LENGTH;
    char own = first[start + row];
    letters[row] = second[start + row];
    for (int i = 0; i < 3; i++) cells[i][row + 1] = 0;
    if (row == 0) cells[0][0] = cells[1][0] = cells[2][0] = 0;
    int most = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int diagonal = 0; diagonal < 2 * LENGTH - 1; diagonal++) {
        local int *now = cells[diagonal % 3], *before = cells[(diagonal + 2) % 3], *earlier = cells[(diagonal + 1) % 3];
        int column = diagonal - row;
        if (column >= 0 && column < LENGTH) {
            int score = earlier[row] + (own == letters[column] ? MATCH : MISMATCH);
            score = max(score, max(before[row], before[row + 1]) - GAP);
            score = max(score, 0);
            now[row + 1] = score;
            most = max(most, score);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    best[row] = most;
    for (int half_ = LENGTH / 2; half_ > 0; half_ /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (row < half_) best[row] = max(best[row], best[row + half_]);
    }
    if (row == 0) scores[get_group_id(0)] = best[0];
}
