/* Tile programs: bodies of element-wise nodes, run over rows in pieces that stay in the first-level cache.
 *
 * Each node becomes an instruction: its op's own row loop, on registers instead of tensors. Every value is rounded to
 * its dtype between two instructions, just as it is between two nodes. QuantizeLinear and DequantizeLinear behind it are one. */
#ifndef SB_CPU_ELEMENTWISE_TILE_PROGRAM_H
#define SB_CPU_ELEMENTWISE_TILE_PROGRAM_H

#include "graph/op.h"

/* Elements of a register: long enough to hide the cost of an instruction (some 5 ns), short enough that the registers of a
 * program stay within half of a 32 KiB cache: half as many where there are more than eight of them. */
#define SB_TILE_ELEMENTS 512
/* Registers for values inside the program. */
#define SB_TILE_REGISTERS 16
/* Inputs of the program, its hidden constants included: with the output, one less than a walk takes. */
#define SB_TILE_INPUTS (SB_WALK_OPERANDS - 1)

typedef struct sb_tile_program sb_tile_program;

/** Compiles `graph`, skipping its first `skip` nodes: the output of node `skip` - 1 is then the program's base. The
 * graph's inputs carry their facts in `inputs`. UNSUPPORTED, with the reason, when a node has no loop or the program is
 * too large. The graph must outlive the program. */
sb_status sb_tile_program_create(const sb_graph *graph, size_t skip, const sb_fact *const *inputs, sb_isa isa,
                                 sb_tile_program **program, sb_error *error);
void sb_tile_program_destroy(sb_tile_program *program);

/** The number of tensors that the program reads: see sb_tile_program_input. */
int sb_tile_program_inputs(const sb_tile_program *program);
/** Input `index` of the program: *graph_input is the graph input it reads, or -1 for a hidden constant,
 * which goes to *constant. */
void sb_tile_program_input(const sb_tile_program *program, int index, int *graph_input, sb_tensor **constant);
/* An instruction as the kernels of contractions see it, which have steps of their own for the simplest ones. */
typedef struct sb_tile_instruction {
    const sb_node *node;
    int operand_count; /* without the output */
    /* What each operand is: SB_TILE_PREVIOUS the result of the instruction before (the base for the first one), 0 and
     * up an input of the program, SB_TILE_OTHER any other value. */
    int operands[SB_WALK_OPERANDS];
    /* Of an operand that is no input, which instruction made it; -1: none, it is the base. */
    int made_by[SB_WALK_OPERANDS];
} sb_tile_instruction;
enum { SB_TILE_PREVIOUS = -1, SB_TILE_OTHER = -2 };

/** The number of instructions. */
int sb_tile_program_count(const sb_tile_program *program);
/** Instruction `index`; for BatchNormalization the operands are x and the two factors of y = fma(x, a, b). */
void sb_tile_program_instruction(const sb_tile_program *program, int index, sb_tile_instruction *instruction);

/** Runs the program over a row: data[0] is the output, data[1] the base (if any), then the inputs in order; steps are
 * in bytes. An instance of sb_walk_row, with the program as context: safe from many threads. The output must not
 * overlap what is read. */
void sb_tile_program_row(void *program, int64_t count, char *const *data, const int64_t *steps);

#endif
