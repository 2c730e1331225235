/* How the results of gemm16_hopper.cuh leave: what happens to sums in registers, and their ways through shared memory, with the nodes behind
 * the product and in turns with another warpgroup. Included by that file for each kernel, whose macros and variables they use; it
 * undefines them. */
#if defined(SB_GEMM_LOGITS)
#define BULK 0
#else
#define BULK (TILE_N >= 64)
#endif
/* Whether gates before their values leave in bulk, half as many columns as a tile of two warpgroups has. */
#if BULK && !ONE_WARPGROUP && !TURNS && !defined(SB_GEMM_FUSED) && TILE_N % 128 == 0
#define GATES_IN_BULK 1
#define ROUNDED_COLUMNS rounded_columns
#else
#define GATES_IN_BULK 0
#define ROUNDED_COLUMNS TILE_N
#endif
/* Where there are no registers for nodes beside a whole tile of sums, results are sent before the next tile begins. */
#if defined(SB_GEMM_FUSED) && SB_GEMM_N > 192
#define SENDS_AT_ONCE 1
#else
#define SENDS_AT_ONCE 0
#endif
/* The warpgroup's room whose turn it is, when the store before the last one has read it; and its box, which goes from there. */
#define ENTER_ROOM()                                                                                                   \
    const uint32_t room = rooms + group * ROOM_BYTES + turn * BOX_BYTES;                                               \
    turn ^= 1;                                                                                                         \
    if (leads)                                                                                                         \
        SB_TENSOR_STORES_READ(1);                                                                                      \
    sb_warpgroup_sync(1 + group)
#define LEAVE_ROOM(column, row, batch)                                                                                 \
    do {                                                                                                               \
        sb_shared_written();                                                                                           \
        sb_warpgroup_sync(1 + group);                                                                                  \
        if (leads) {                                                                                                   \
            sb_tensor_store(&p->c, room, column, row, 0, batch);                                                       \
            SB_TENSOR_STORES_END();                                                                                    \
        }                                                                                                              \
    } while (0)
/* Sends the tile in `rounded`, if there is one: through shared memory, a box of 64 columns after the other, of which
 * the last one begins early enough to end with the tile, and repeats some columns. */
#if BULK
#define SEND()                                                                                                         \
    do {                                                                                                               \
        if (rounded_m < 0)                                                                                             \
            break;                                                                                                     \
        const int lane = thread % 32, row = thread % GROUP_THREADS / 32 * 16 + lane % 16;                              \
        SB_CUDA_UNROLL                                                                                                 \
        for (int q = 0; q < (TILE_N + 63) / 64; q++) {                                                                 \
            const int start = q * 64 + 64 <= TILE_N ? q * 64 : TILE_N - 64;                                            \
            if (start >= ROUNDED_COLUMNS)                                                                              \
                break;                                                                                                 \
            ENTER_ROOM();                                                                                              \
            SB_CUDA_UNROLL                                                                                             \
            for (int i = 0; i < 4; i++) {                                                                              \
                const uint32_t *from = rounded + start / 4 + i * 4;                                                    \
                const uint32_t piece = (uint32_t)(2 * i + lane / 16) ^ (uint32_t)(row & 7);                            \
                sb_store_matrices(room + row * 128 + piece * 16, NAME(sb_canonical_pair_, SB_GEMM_SUFFIX)(from[0]),    \
                                  NAME(sb_canonical_pair_, SB_GEMM_SUFFIX)(from[1]),                                   \
                                  NAME(sb_canonical_pair_, SB_GEMM_SUFFIX)(from[2]),                                   \
                                  NAME(sb_canonical_pair_, SB_GEMM_SUFFIX)(from[3]));                                  \
            }                                                                                                          \
            LEAVE_ROOM(rounded_n + start, rounded_m, rounded_batch);                                                   \
        }                                                                                                              \
        rounded_m = -1;                                                                                                \
    } while (0)
#else
#define SEND() (void)0
#endif
#if defined(SB_GEMM_FUSED) && !ONE_WARPGROUP
/* The nodes of a box of 64 columns, in the room that it has been put in order in: of a warp's sixteen rows a thread takes every
 * fourth. What it reads of the first input with rows has been asked for a box ahead, or while the tile's last products went on. */
#define PIECE(row) (room + (uint32_t)(row)*128 + (uint32_t)((lane % 8) ^ ((row)&7)) * 16)
#define BEGIN_NODES()                                                                                                  \
    do {                                                                                                               \
        const int lane = thread % 32, own = thread % GROUP_THREADS / 32 * 16 + lane / 8,                               \
                  left = (int)p->rows - m - own;                                                                       \
        pieces.first = sb_gemm16_nodes_begin(&given.program, at.batch);                                                \
        pieces.first.row = m + own;                                                                                    \
        pieces.first.column = n + lane % 8 * 8;                                                                        \
        pieces.count = (left + SB_GEMM16_PIECE_ROWS - 1) / SB_GEMM16_PIECE_ROWS;                                       \
        sb_gemm16_ask_for_pieces(&given.program, HAS_PIECES(pieces), &pieces);                                         \
    } while (0)
#define HAS_PIECES(pieces) ((pieces).count > 0 && (pieces).first.column < p->columns)
#define COMPUTE_NODES()                                                                                                \
    do {                                                                                                               \
        const int own = warp + lane / 8;                                                                               \
        const sb_gemm16_node_pieces here = pieces;                                                                     \
        pieces.first.column += 64;                                                                                     \
        sb_gemm16_ask_for_pieces(&given.program, q + 1 < TILE_N / 64 && HAS_PIECES(pieces), &pieces);                  \
        __syncwarp();                                                                                                  \
        if (HAS_PIECES(here)) {                                                                                        \
            uint32_t words[4 * SB_GEMM16_PIECES];                                                                      \
            SB_CUDA_UNROLL                                                                                             \
            for (int r = 0; r < SB_GEMM16_PIECES; r++)                                                                 \
                sb_shared_load_eight(PIECE(own + r * SB_GEMM16_PIECE_ROWS), words + 4 * r);                            \
            NAME(sb_gemm16_fuse_, SB_GEMM_SUFFIX)(&given.program, &here, words);                                       \
            SB_CUDA_UNROLL                                                                                             \
            for (int r = 0; r < SB_GEMM16_PIECES; r++)                                                                 \
                sb_shared_store_eight(PIECE(own + r * SB_GEMM16_PIECE_ROWS), words + 4 * r);                           \
        }                                                                                                              \
    } while (0)
/* Of a box of 64 columns those of the tile in `rounded`, or, of results that are sent at once, of the sums themselves. */
#if SENDS_AT_ONCE
#define FIRST_PAIR(i) NAME(sb_round_pair_, SB_GEMM_SUFFIX)(sums[2 * (i)], sums[2 * (i) + 1])
#define MOVE_PAIRS_UP()                                                                                                \
    do {                                                                                                               \
        SB_CUDA_UNROLL                                                                                                 \
        for (int i = 0; i + 32 < SUMS; i++)                                                                            \
            sums[i] = sums[i + 32];                                                                                    \
    } while (0)
#else
#define FIRST_PAIR(i) rounded[i]
#define MOVE_PAIRS_UP()                                                                                                \
    do {                                                                                                               \
        SB_CUDA_UNROLL                                                                                                 \
        for (int i = 0; i + 16 < SUMS / 2; i++)                                                                        \
            rounded[i] = rounded[i + 16];                                                                              \
    } while (0)
#endif
/* With nodes behind, box after box too: its rounded chains are put in order there, and each warp computes the nodes of its
 * own sixteen rows, of which eight threads have a row. */
#undef SEND
#define SEND()                                                                                                         \
    do {                                                                                                               \
        if (rounded_m < 0)                                                                                             \
            break;                                                                                                     \
        const int lane = thread % 32, warp = thread % GROUP_THREADS / 32 * 16, row = warp + lane % 16;                 \
        SB_CUDA_KEEP_LOOP                                                                                              \
        for (int q = 0; q < TILE_N / 64; q++) {                                                                        \
            ENTER_ROOM();                                                                                              \
            SB_CUDA_UNROLL                                                                                             \
            for (int i = 0; i < 4; i++)                                                                                \
                sb_store_matrices(room + row * 128 + ((uint32_t)(2 * i + lane / 16) ^ (uint32_t)(row & 7)) * 16,       \
                                  FIRST_PAIR(4 * i), FIRST_PAIR(4 * i + 1), FIRST_PAIR(4 * i + 2),                     \
                                  FIRST_PAIR(4 * i + 3));                                                              \
            MOVE_PAIRS_UP();                                                                                           \
            COMPUTE_NODES();                                                                                           \
            LEAVE_ROOM(rounded_n + q * 64, rounded_m, rounded_batch);                                                  \
        }                                                                                                              \
        rounded_m = -1;                                                                                                \
    } while (0)
#endif
/* With nodes behind a tile that takes columns of C as rows: chains are turned in shared memory, rounded, to rows of 64 columns, and
 * go from there through the nodes to C, 16 bytes at a time. A warp has sixteen columns of all of the tile's rows. */
#if defined(SB_GEMM_FUSED) && ONE_WARPGROUP
#define BEGIN_NODES()                                                                                                  \
    do {                                                                                                               \
        const int eight = thread % 8, row = thread / 8;                                                                \
        pieces.first = sb_gemm16_nodes_begin(&given.program, at.batch);                                                \
        pieces.first.row = n + row;                                                                                    \
        pieces.first.column = m + eight * 8;                                                                           \
        pieces.count = ((int)p->columns - (n + row) + 15) / 16;                                                        \
        sb_gemm16_ask_for_pieces(&given.program, HAS_PIECES(), &pieces);                                               \
    } while (0)
#define HAS_PIECES()                                                                                                   \
    (pieces.count > 0 && thread / 8 < TILE_N && thread % 8 * 8 < p->tile_rows && m + thread % 8 * 8 < p->rows)
#define SEND_TURNED()                                                                                                  \
    do {                                                                                                               \
        const int lane = thread % 32, warp = thread % GROUP_THREADS / 32, eight = thread % 8, row = thread / 8;        \
        const sb_gemm16_output *c = &p->product.c;                                                                     \
        /* What the tile before has put here has been taken. */                                                        \
        sb_warpgroup_sync(1 + group);                                                                                  \
        SB_CUDA_UNROLL                                                                                                 \
        for (int q = 0; q < (SUMS + 7) / 8; q++) {                                                                     \
            uint32_t pairs[4];                                                                                         \
            const int turned = q * 16 + lane / 16 * 8 + lane % 8, piece = 2 * warp + lane / 8 % 2;                     \
            SB_CUDA_UNROLL                                                                                             \
            for (int j = 0; j < 4; j++)                                                                                \
                pairs[j] = NAME(sb_round_pair_, SB_GEMM_SUFFIX)(sums[(8 * q + 2 * j) % SUMS],                          \
                                                                sums[(8 * q + 2 * j + 1) % SUMS]);                     \
            sb_store_turned_matrices(rooms + turned * 128 + (uint32_t)(piece ^ (turned & 7)) * 16, pairs[0], pairs[1], \
                                     pairs[2], pairs[3]);                                                              \
        }                                                                                                              \
        /* Where the ring ends, the tensor cores read too, and nobody keeps what they make of it. */                   \
        sb_shared_written();                                                                                           \
        sb_warpgroup_sync(1 + group);                                                                                  \
        if (HAS_PIECES()) {                                                                                            \
            uint32_t words[4 * SB_GEMM16_PIECES];                                                                      \
            char *to =                                                                                                 \
                (char *)c->data + 2 * (at.batch * c->batch_stride + (n + row) * c->row_stride + pieces.first.column);  \
            SB_CUDA_UNROLL                                                                                             \
            for (int r = 0; r < SB_GEMM16_PIECES; r++)                                                                 \
                sb_shared_load_eight(rooms + (row + 16 * r) * 128 + (uint32_t)(eight ^ (row & 7)) * 16,                \
                                     words + 4 * r);                                                                   \
            NAME(sb_gemm16_fuse_, SB_GEMM_SUFFIX)(&given.program, &pieces, words);                                     \
            SB_CUDA_UNROLL                                                                                             \
            for (int r = 0; r < SB_GEMM16_PIECES; r++) {                                                               \
                const sb_cuda_eight results = {{words[4 * r], words[4 * r + 1], words[4 * r + 2], words[4 * r + 3]}};  \
                if (r < pieces.count)                                                                                  \
                    sb_cuda_store_eight(to + 32 * r * c->row_stride, results);                                         \
            }                                                                                                          \
        }                                                                                                              \
    } while (0)
#endif
/* Without nodes behind, in tiles of so many columns that a thread would have dozens of results to store one by one: turned in the same
 * way, and stored 16 bytes at a time, sixteen rows of C at once. */
#if SWAPS && TILE_N >= 64 && !defined(SB_GEMM_FUSED)
#undef SEND_TURNED
#define SEND_TURNED()                                                                                                  \
    do {                                                                                                               \
        const int lane = thread % 32, warp = thread % GROUP_THREADS / 32, eight = thread % 8, row = thread / 8;        \
        const sb_gemm16_output *c = &p->product.c;                                                                     \
        const int left = (int)p->columns - n;                                                                          \
        /* (The stride of a single row may be any number.) */                                                          \
        const int first_row = row < left ? n + row : 0;                                                                \
        char *to = (char *)c->data + 2 * (at.batch * c->batch_stride + first_row * c->row_stride + m + eight * 8);     \
        /* What the tile before has put here has been taken. */                                                        \
        sb_warpgroup_sync(1 + group);                                                                                  \
        SB_CUDA_UNROLL                                                                                                 \
        for (int q = 0; q < SUMS / 8; q++) {                                                                           \
            uint32_t pairs[4];                                                                                         \
            const int turned = q * 16 + lane / 16 * 8 + lane % 8, piece = 2 * warp + lane / 8 % 2;                     \
            SB_CUDA_UNROLL                                                                                             \
            for (int j = 0; j < 4; j++)                                                                                \
                pairs[j] = NAME(sb_canonical_pair_, SB_GEMM_SUFFIX)(                                                   \
                    NAME(sb_round_pair_, SB_GEMM_SUFFIX)(sums[8 * q + 2 * j], sums[8 * q + 2 * j + 1]));               \
            sb_store_turned_matrices(rooms + turned * 128 + (uint32_t)(piece ^ (turned & 7)) * 16, pairs[0], pairs[1], \
                                     pairs[2], pairs[3]);                                                              \
        }                                                                                                              \
        /* Where the ring ends, the tensor cores read too, and nobody keeps what they make of it. */                   \
        sb_shared_written();                                                                                           \
        sb_warpgroup_sync(1 + group);                                                                                  \
        if (eight * 8 < p->tile_rows && m + eight * 8 < p->rows) {                                                     \
            SB_CUDA_UNROLL                                                                                             \
            for (int r = 0; r < TILE_N / 16; r++) {                                                                    \
                sb_cuda_eight results;                                                                                 \
                sb_shared_load_eight(rooms + (row + 16 * r) * 128 + (uint32_t)(eight ^ (row & 7)) * 16,                \
                                     results.pairs);                                                                   \
                if (row + 16 * r < left)                                                                               \
                    sb_cuda_store_eight(to + 32 * r * c->row_stride, results);                                         \
            }                                                                                                          \
        }                                                                                                              \
    } while (0)
#endif
/* Finishes a tile's sums and sends them, a box of 64 rows and 64 columns of C after the other, while the other warpgroup
 * multiplies. The first sums are taken each time, and those behind them move up. `gated` is a constant. */
#if TURNS
#define SEND_BOXES(gated)                                                                                              \
    do {                                                                                                               \
        const int32_t dtype = NAME(sb_gemm16_dtype_, SB_GEMM_SUFFIX);                                                  \
        const int lane = thread % 32, warp = thread % GROUP_THREADS / 32 * 16, row = warp + lane % 16;                 \
        const int taken = (gated) ? 2 * SB_GEMM16_BOX : SB_GEMM16_BOX, c_n = (gated) ? n / 2 : n;                      \
        const int boxes = SUMS / taken, across = boxes / HALVES;                                                       \
        const int first_row = m + warp + lane / 4, first_column = c_n + lane % 4 * 2;                                  \
        sb_gemm16_ends ends;                                                                                           \
        sb_gemm16_ask_for_box(p, at.batch, first_row, first_column, dtype, gated, &ends);                              \
        SB_CUDA_KEEP_LOOP                                                                                              \
        for (int box = 0; box < boxes; box++) {                                                                        \
            const int ahead = box + 1;                                                                                 \
            const uint32_t room = rooms + group * ROOM_BYTES + turn * BOX_BYTES;                                       \
            float results[SB_GEMM16_BOX], values[SB_GEMM16_BOX];                                                       \
            SB_CUDA_UNROLL                                                                                             \
            for (int i = 0; i < SB_GEMM16_BOX; i++) {                                                                  \
                results[i] = sums[(gated) ? i / 4 * 8 + i % 4 : i];                                                    \
                values[i] = (gated) ? sums[i / 4 * 8 + 4 + i % 4] : 0;                                                 \
            }                                                                                                          \
            SB_CUDA_UNROLL                                                                                             \
            for (int i = 0; i + taken < SUMS; i++)                                                                     \
                sums[i] = sums[i + taken];                                                                             \
            sb_gemm16_finish_box(&ends, dtype, gated, results, values);                                                \
            if (ahead < boxes)                                                                                         \
                sb_gemm16_ask_for_box(p, at.batch, first_row + ahead / across * 64,                                    \
                                      first_column + ahead % across * 64, dtype, gated, &ends);                        \
            turn ^= 1;                                                                                                 \
            /* The store before the last one has read this room. */                                                    \
            if (leads)                                                                                                 \
                SB_TENSOR_STORES_READ(1);                                                                              \
            sb_warpgroup_sync(1 + group);                                                                              \
            SB_CUDA_UNROLL                                                                                             \
            for (int i = 0; i < 4; i++) {                                                                              \
                const uint32_t piece = (uint32_t)(2 * i + lane / 16) ^ (uint32_t)(row & 7);                            \
                uint32_t pairs[4];                                                                                     \
                SB_CUDA_UNROLL                                                                                         \
                for (int j = 0; j < 4; j++)                                                                            \
                    pairs[j] = NAME(sb_canonical_pair_, SB_GEMM_SUFFIX)(                                               \
                        NAME(sb_round_pair_, SB_GEMM_SUFFIX)(results[8 * i + 2 * j], results[8 * i + 2 * j + 1]));     \
                sb_store_matrices(room + row * 128 + piece * 16, pairs[0], pairs[1], pairs[2], pairs[3]);              \
            }                                                                                                          \
            LEAVE_ROOM(c_n + box % across * 64, m + box / across * 64, at.batch);                                      \
        }                                                                                                              \
    } while (0)
#define SEND_TILE()                                                                                                    \
    do {                                                                                                               \
        if (p->product.gate != SB_GATE_NONE)                                                                           \
            SEND_BOXES(true);                                                                                          \
        else                                                                                                           \
            SEND_BOXES(false);                                                                                         \
    } while (0)
#endif
/* Whether sums are finished in registers: with one warpgroup the nodes are too, unless results are turned behind it. */
#if defined(SB_GEMM_FUSED) && ONE_WARPGROUP
#define FINISHES(storing) ((storing & (SB_GEMM16_PLAIN | SB_GEMM16_TURNED)) != (SB_GEMM16_PLAIN | SB_GEMM16_TURNED))
#define FINISH(place, results)                                                                                         \
    do {                                                                                                               \
        if (!(storing & SB_GEMM16_PLAIN))                                                                              \
            APPLY_EPILOGUE(place, results);                                                                            \
        if (!(storing & SB_GEMM16_TURNED))                                                                             \
            NAME(sb_gemm16_fuse_results_, SB_GEMM_SUFFIX)(&given.program, place, results);                             \
    } while (0)
#else
#define FINISHES(storing) SB_CUDA_SELDOM(!((storing)&SB_GEMM16_PLAIN))
#define FINISH(place, results) APPLY_EPILOGUE(place, results)
#endif
#if defined(SB_GEMM_FUSED)
/* What Gemm itself does is one rounding with the chain's. */
#define APPLY_EPILOGUE(place, results)                                                                                 \
    do {                                                                                                               \
        sb_gemm16_scale_results(place, 0, 1, RESULTS, results);                                                        \
        sb_gemm16_add_residual(place, RESULTS, results);                                                               \
    } while (0)
#else
#define APPLY_EPILOGUE(place, results) sb_gemm16_apply_epilogue(place, RESULTS, results)
#endif
/* A tile's results, to be sent while the next one's products go on; or at once. */
#if SENDS_AT_ONCE
#define KEEP_SUMS() (void)0
#else
#define KEEP_SUMS()                                                                                                    \
    do {                                                                                                               \
        SB_CUDA_UNROLL                                                                                                 \
        for (int i = 0; i < SUMS / 2; i++)                                                                             \
            rounded[i] = NAME(sb_round_pair_, SB_GEMM_SUFFIX)(sums[2 * i], sums[2 * i + 1]);                           \
    } while (0)
#endif
#define KEEP_ROUNDED()                                                                                                 \
    do {                                                                                                               \
        KEEP_SUMS();                                                                                                   \
        rounded_m = m;                                                                                                 \
        rounded_n = n;                                                                                                 \
        rounded_batch = at.batch;                                                                                      \
        KEEP_COLUMNS(TILE_N);                                                                                          \
    } while (0)
/* Of gates and their values the results. The first sums are taken each time, those behind them move up, and so do results. */
#if GATES_IN_BULK
#define KEEP_COLUMNS(count) rounded_columns = (count)
#define KEEP_GATES()                                                                                                   \
    do {                                                                                                               \
        SB_CUDA_KEEP_LOOP                                                                                              \
        for (int q = 0; q < SUMS / 16; q++) {                                                                          \
            const sb_gemm16_results place = {p, at.batch, m, n / 2 + q * 16};                                          \
            float results[SB_GEMM16_RESULTS];                                                                          \
            sb_gemm16_finish_stacked_gates(&place, sums, results);                                                     \
            SB_CUDA_UNROLL                                                                                             \
            for (int i = 0; i + 16 < SUMS; i++)                                                                        \
                sums[i] = sums[i + 16];                                                                                \
            SB_CUDA_UNROLL                                                                                             \
            for (int i = 0; i < SUMS / 4; i++)                                                                         \
                rounded[i] = i + 4 < SUMS / 4 ? rounded[i + 4]                                                         \
                                              : NAME(sb_round_pair_, SB_GEMM_SUFFIX)(                                  \
                                                    results[i + 4 < SUMS / 4 ? 0 : 2 * (i + 4 - SUMS / 4)],            \
                                                    results[i + 4 < SUMS / 4 ? 0 : 2 * (i + 4 - SUMS / 4) + 1]);       \
        }                                                                                                              \
        rounded_m = m;                                                                                                 \
        rounded_n = n / 2;                                                                                             \
        rounded_batch = at.batch;                                                                                      \
        KEEP_COLUMNS(TILE_N / 2);                                                                                      \
    } while (0)
#else
#define KEEP_COLUMNS(count) (void)0
#define KEEP_GATES() (void)0
#endif
/* The first sums are finished and go behind the last ones, until all have come by. */
#define PUT_BEHIND(count)                                                                                              \
    do {                                                                                                               \
        SB_CUDA_UNROLL                                                                                                 \
        for (int i = 0; i < SUMS; i++)                                                                                 \
            sums[i] = i + (count) < SUMS ? sums[i + (count) < SUMS ? i + (count) : 0]                                  \
                                         : results[i + (count) < SUMS ? 0 : i + (count)-SUMS];                         \
    } while (0)
#define FINISH_ALL()                                                                                                   \
    do {                                                                                                               \
        SB_CUDA_KEEP_LOOP                                                                                              \
        for (int q = 0; q < SUMS / RESULTS; q++) {                                                                     \
            const sb_gemm16_results place = {p, at.batch, m, n + q * (2 * RESULTS)};                                   \
            float results[RESULTS];                                                                                    \
            SB_CUDA_UNROLL                                                                                             \
            for (int i = 0; i < RESULTS; i++)                                                                          \
                results[i] = sums[i];                                                                                  \
            FINISH(&place, results);                                                                                   \
            PUT_BEHIND(RESULTS);                                                                                       \
        }                                                                                                              \
    } while (0)
/* Light ends of two warpgroups' tiles: more sums at a time, since moving them took as many instructions as SiLU does, and their
 * biases are underway while those before are finished. */
#if BULK && !ONE_WARPGROUP && !TURNS && !defined(SB_GEMM_FUSED)
#define LIGHT_STEP 8
#define LIGHT_RESULTS (SUMS % 32 == 0 ? 32 : LIGHT_STEP)
#define FINISH_LIGHTLY()                                                                                               \
    do {                                                                                                               \
        const int first_column = n + sb_gemm16_sum_column(0);                                                          \
        float next[LIGHT_RESULTS / 2];                                                                                 \
        sb_gemm16_load_light_biases(&p->product, at.batch, first_column, LIGHT_RESULTS / 2, next);                     \
        SB_CUDA_KEEP_LOOP                                                                                              \
        for (int q = 1; q <= SUMS / LIGHT_RESULTS; q++) {                                                              \
            float results[LIGHT_RESULTS], biases[LIGHT_RESULTS / 2];                                                   \
            SB_CUDA_UNROLL                                                                                             \
            for (int i = 0; i < LIGHT_RESULTS; i++)                                                                    \
                results[i] = sums[i];                                                                                  \
            SB_CUDA_UNROLL                                                                                             \
            for (int i = 0; i < LIGHT_RESULTS / 2; i++)                                                                \
                biases[i] = next[i];                                                                                   \
            if (q < SUMS / LIGHT_RESULTS)                                                                              \
                sb_gemm16_load_light_biases(&p->product, at.batch, first_column + q * (2 * LIGHT_RESULTS),             \
                                            LIGHT_RESULTS / 2, next);                                                  \
            SB_CUDA_UNROLL                                                                                             \
            for (int i = 0; i < LIGHT_RESULTS; i += LIGHT_STEP)                                                        \
                sb_gemm16_finish_light(&p->product.epilogue, NAME(sb_gemm16_dtype_, SB_GEMM_SUFFIX), LIGHT_STEP,       \
                                       biases + i / 2, results + i);                                                   \
            PUT_BEHIND(LIGHT_RESULTS);                                                                                 \
        }                                                                                                              \
    } while (0)
#else
#define LIGHT_RESULTS 0
#define FINISH_LIGHTLY() (void)0
#endif
