/* Series of tasks, with attention of heads of up to 64.
 * Compiled for 90a alone. A module for each of bf16, f16. */
#define SB_SERIES_WIDTH 64
#include "cuda/series/series.cuh"
