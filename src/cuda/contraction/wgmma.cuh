/* wgmma.mma_async with 64 rows and k of 16: D += A · B with both operands in shared memory,
 * one macro for each number of columns.
 *
 *     SB_WGMMA_<n>(sums, adds, a, b, type, a_mn_major, b_mn_major)
 *
 * `sums` are the thread's n / 2 accumulators: of rows warp * 16 + lane / 4 (+ 8), columns 8 j + lane % 4 * 2 (+ 1), as
 * sums[4 j] (row, column), [4 j + 1] (column + 1), [4 j + 2] and [4 j + 3] (row + 8). `a` and `b` are descriptors,
 * `type` is "bf16" or "f16", a_mn_major says that the rows of A lie side by side, b_mn_major that the columns of B do;
 * else the k lie side by side. Where `adds` is 0 the sums begin with +0.
 *
 *     SB_WGMMA_LEFT_<n>(sums, adds, left, b, type, b_mn_major)
 *
 * The same with A in registers: the thread's `left` are four pairs, of its row lane / 4 at k = lane % 4 * 2 (+ 1), of the row 8 below
 * it, and of both rows 8 k further on. They stay as they are until the products have been waited for. */
#ifndef SB_CUDA_CONTRACTION_WGMMA_CUH
#define SB_CUDA_CONTRACTION_WGMMA_CUH

/* The host has its own: tests/cuda/host_hopper.h. */
#if defined(__CUDACC__)

#define SB_FIELDS_4(d, i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define SB_FIELDS_8(d, i) SB_FIELDS_4(d, i), SB_FIELDS_4(d, i + 4)
#define SB_FIELDS_16(d, i) SB_FIELDS_8(d, i), SB_FIELDS_8(d, i + 8)
#define SB_FIELDS_32(d, i) SB_FIELDS_16(d, i), SB_FIELDS_16(d, i + 16)
#define SB_FIELDS_64(d, i) SB_FIELDS_32(d, i), SB_FIELDS_32(d, i + 32)
#define SB_FIELDS_48(d, i) SB_FIELDS_32(d, i), SB_FIELDS_16(d, i + 32)
#define SB_FIELDS_56(d, i) SB_FIELDS_48(d, i), SB_FIELDS_8(d, i + 48)
#define SB_FIELDS_40(d, i) SB_FIELDS_32(d, i), SB_FIELDS_8(d, i + 32)
#define SB_FIELDS_72(d, i) SB_FIELDS_64(d, i), SB_FIELDS_8(d, i + 64)
#define SB_FIELDS_80(d, i) SB_FIELDS_64(d, i), SB_FIELDS_16(d, i + 64)
#define SB_FIELDS_96(d, i) SB_FIELDS_64(d, i), SB_FIELDS_32(d, i + 64)
#define SB_FIELDS_112(d, i) SB_FIELDS_96(d, i), SB_FIELDS_16(d, i + 96)
#define SB_FIELDS_128(d, i) SB_FIELDS_64(d, i), SB_FIELDS_64(d, i + 64)

/* The same operands by number. */
#define SB_NUMBERS_4 "%0, %1, %2, %3"
#define SB_NUMBERS_8 SB_NUMBERS_4 ", %4, %5, %6, %7"
#define SB_NUMBERS_16 SB_NUMBERS_8 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define SB_NUMBERS_32                                                                                                  \
    SB_NUMBERS_16                                                                                                      \
    ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define SB_NUMBERS_40                                                                                                  \
    SB_NUMBERS_32                                                                                                      \
    ", %32, %33, %34, %35, %36, %37, %38, %39"
#define SB_NUMBERS_48                                                                                                  \
    SB_NUMBERS_32                                                                                                      \
    ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define SB_NUMBERS_56                                                                                                  \
    SB_NUMBERS_48                                                                                                      \
    ", %48, %49, %50, %51, %52, %53, %54, %55"
#define SB_NUMBERS_64                                                                                                  \
    SB_NUMBERS_32                                                                                                      \
    ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"                                 \
    ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define SB_NUMBERS_72                                                                                                  \
    SB_NUMBERS_64                                                                                                      \
    ", %64, %65, %66, %67, %68, %69, %70, %71"
#define SB_NUMBERS_80                                                                                                  \
    SB_NUMBERS_72                                                                                                      \
    ", %72, %73, %74, %75, %76, %77, %78, %79"
#define SB_NUMBERS_96                                                                                                  \
    SB_NUMBERS_64                                                                                                      \
    ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79"                                 \
    ", %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define SB_NUMBERS_112                                                                                                 \
    SB_NUMBERS_96                                                                                                      \
    ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111"
#define SB_NUMBERS_128                                                                                                 \
    SB_NUMBERS_112                                                                                                     \
    ", %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"

#define SB_WGMMA(count, columns, a_at, b_at, adds_at, a_transposed, b_transposed, sums, adds, a, b, type, a_mn_major,  \
                 b_mn_major)                                                                                           \
    asm volatile("{\n\t.reg .pred continues;\n\tsetp.ne.b32 continues, " adds_at ", 0;\n\t"                            \
                 "wgmma.mma_async.sync.aligned.m64n" columns "k16.f32." type "." type " {" SB_NUMBERS_##count          \
                 "}, " a_at ", " b_at ", continues, 1, 1, " a_transposed ", " b_transposed ";\n\t}"                    \
                 : SB_FIELDS_##count(sums, 0)                                                                          \
                 : "l"(a), "l"(b), "r"((int)(adds)), "n"(a_mn_major), "n"(b_mn_major))
#define SB_WGMMA_8(sums, adds, a, b, type, a_mn_major, b_mn_major)                                                     \
    SB_WGMMA(4, "8", "%4", "%5", "%6", "%7", "%8", sums, adds, a, b, type, a_mn_major, b_mn_major)
#define SB_WGMMA_16(sums, adds, a, b, type, a_mn_major, b_mn_major)                                                    \
    SB_WGMMA(8, "16", "%8", "%9", "%10", "%11", "%12", sums, adds, a, b, type, a_mn_major, b_mn_major)
#define SB_WGMMA_32(sums, adds, a, b, type, a_mn_major, b_mn_major)                                                    \
    SB_WGMMA(16, "32", "%16", "%17", "%18", "%19", "%20", sums, adds, a, b, type, a_mn_major, b_mn_major)
#define SB_WGMMA_64(sums, adds, a, b, type, a_mn_major, b_mn_major)                                                    \
    SB_WGMMA(32, "64", "%32", "%33", "%34", "%35", "%36", sums, adds, a, b, type, a_mn_major, b_mn_major)
#define SB_WGMMA_80(sums, adds, a, b, type, a_mn_major, b_mn_major)                                                    \
    SB_WGMMA(40, "80", "%40", "%41", "%42", "%43", "%44", sums, adds, a, b, type, a_mn_major, b_mn_major)
#define SB_WGMMA_96(sums, adds, a, b, type, a_mn_major, b_mn_major)                                                    \
    SB_WGMMA(48, "96", "%48", "%49", "%50", "%51", "%52", sums, adds, a, b, type, a_mn_major, b_mn_major)
#define SB_WGMMA_112(sums, adds, a, b, type, a_mn_major, b_mn_major)                                                   \
    SB_WGMMA(56, "112", "%56", "%57", "%58", "%59", "%60", sums, adds, a, b, type, a_mn_major, b_mn_major)
#define SB_WGMMA_128(sums, adds, a, b, type, a_mn_major, b_mn_major)                                                   \
    SB_WGMMA(64, "128", "%64", "%65", "%66", "%67", "%68", sums, adds, a, b, type, a_mn_major, b_mn_major)
#define SB_WGMMA_144(sums, adds, a, b, type, a_mn_major, b_mn_major)                                                   \
    SB_WGMMA(72, "144", "%72", "%73", "%74", "%75", "%76", sums, adds, a, b, type, a_mn_major, b_mn_major)
#define SB_WGMMA_160(sums, adds, a, b, type, a_mn_major, b_mn_major)                                                   \
    SB_WGMMA(80, "160", "%80", "%81", "%82", "%83", "%84", sums, adds, a, b, type, a_mn_major, b_mn_major)
#define SB_WGMMA_192(sums, adds, a, b, type, a_mn_major, b_mn_major)                                                   \
    SB_WGMMA(96, "192", "%96", "%97", "%98", "%99", "%100", sums, adds, a, b, type, a_mn_major, b_mn_major)
#define SB_WGMMA_224(sums, adds, a, b, type, a_mn_major, b_mn_major)                                                   \
    SB_WGMMA(112, "224", "%112", "%113", "%114", "%115", "%116", sums, adds, a, b, type, a_mn_major, b_mn_major)
#define SB_WGMMA_256(sums, adds, a, b, type, a_mn_major, b_mn_major)                                                   \
    SB_WGMMA(128, "256", "%128", "%129", "%130", "%131", "%132", sums, adds, a, b, type, a_mn_major, b_mn_major)

#define SB_WGMMA_LEFT(count, columns, left_at, b_at, adds_at, b_transposed, sums, adds, left, b, type, b_mn_major)     \
    asm volatile("{\n\t.reg .pred continues;\n\tsetp.ne.b32 continues, " adds_at ", 0;\n\t"                            \
                 "wgmma.mma_async.sync.aligned.m64n" columns "k16.f32." type "." type " {" SB_NUMBERS_##count          \
                 "}, {" left_at "}, " b_at ", continues, 1, 1, " b_transposed ";\n\t}"                                 \
                 : SB_FIELDS_##count(sums, 0)                                                                          \
                 : "r"((left)[0]), "r"((left)[1]), "r"((left)[2]), "r"((left)[3]), "l"(b), "r"((int)(adds)),           \
                   "n"(b_mn_major))
#define SB_WGMMA_LEFT_64(sums, adds, left, b, type, b_mn_major)                                                        \
    SB_WGMMA_LEFT(32, "64", "%32, %33, %34, %35", "%36", "%37", "%38", sums, adds, left, b, type, b_mn_major)
#define SB_WGMMA_LEFT_128(sums, adds, left, b, type, b_mn_major)                                                       \
    SB_WGMMA_LEFT(64, "128", "%64, %65, %66, %67", "%68", "%69", "%70", sums, adds, left, b, type, b_mn_major)
#endif

#endif
