/* What the commands share: reporting failures, options of models and sessions, files. */
#ifndef CLI_SUPPORT_H
#define CLI_SUPPORT_H

#include <samebit/samebit.h>

#include "options.h"

/** Prints "samebit: MESSAGE" to stderr and returns EXIT_FAILED, or EXIT_INTERRUPTED for an interrupt. */
int report(const sb_error *error);

/** Prints that memory ran out and returns EXIT_FAILED. */
int out_of_memory(void);

/* The rows of the option tables that set up models and sessions. */
#define MODEL_OPTIONS                                                                                                  \
    {"isa", "NAME", false, "Instruction set: scalar, avx2, avx512 or best"},                                           \
        {"no-passes", NULL, false, "Run the graph as it stands in the file"}, {                                        \
        "reference-evaluation", NULL, false,                                                                           \
            "Run the reference evaluation of every node: slow, the definition of the bits"                             \
    }
/* Of a command that loads one model file. */
#define FILE_OPTION                                                                                                    \
    { "unrelated", "SYMBOLS", false, "Symbols, with commas between, of extents that need not be equal" }
#define SESSION_OPTIONS                                                                                                \
    {"threads", "N", false, "Worker threads; 0 means one per processor"},                                              \
        {"iteration-limit", "N", false,                                                                                \
         "The most iterations that all loops of a run may do together; none by default"},                              \
        {"memory-limit", "BYTES", false,                                                                               \
         "The most memory for the model, and for a run, such as 500M or 2G; by default what the "                      \
         "machine has"},                                                                                               \
        {"device", "NAME", false,                                                                                      \
         "Where to run: cpu, cuda, cuda:N, or auto for a GPU where there is one and a run is estimated to end sooner " \
         "there"},                                                                                                     \
        {"force-cpu", "PARTS", false,                                                                                  \
         "Keep nodes on the CPU whose name or operator contains one of PARTS, comma-separated"},                       \
        {"require-device", NULL, false, "Fail when a node cannot run on the device, and list all such nodes"},         \
        {"allow-cpu", "FILE", false,                                                                                   \
         "Fail when an operator stays on the CPU that has no line in FILE: its name, a tab, why"},                     \
        {"graphs", "MODE", false,                                                                                      \
         "How the device gets the nodes: auto, off, capture or build; the bits are the same"},                         \
    {                                                                                                                  \
        "explain-placement", NULL, false,                                                                              \
            "Print where each node runs, why it does not run on the device, and the copies"                            \
    }

/** Reads --isa, --no-passes and --reference-evaluation, and --memory-limit where the command has
 * it. False after printing what is wrong. */
bool read_model_options(const arguments *arguments, sb_model_options *options);
/** Reads --threads, --iteration-limit and --memory-limit. False after printing what is wrong. */
bool read_session_options(const arguments *arguments, sb_session_options *options);

/** Reads an option that takes a whole number; `*value` stays as it is where the option is not
 * given. False after printing what is wrong. */
bool read_count(const arguments *arguments, const char *name, long long least, long long most, long long *value);

/** "FOLDER/NAME" in fresh memory, or NULL. */
char *join_path(const char *folder, const char *name);

#endif
