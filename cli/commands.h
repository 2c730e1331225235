/* The commands, one source file each. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "options.h"

extern const option run_options[];
int run_run(const arguments *arguments);

extern const option dump_options[];
int run_dump(const arguments *arguments);

extern const option compare_options[];
int run_compare(const arguments *arguments);

extern const option bench_options[];
int run_bench(const arguments *arguments);

extern const option profile_options[];
int run_profile(const arguments *arguments);

extern const option digest_options[];
int run_digest(const arguments *arguments);

extern const option devices_options[];
int run_devices(const arguments *arguments);

extern const option generate_options[];
int run_generate(const arguments *arguments);

extern const option tokenize_options[];
int run_tokenize(const arguments *arguments);

extern const option verify_options[];
int run_verify(const arguments *arguments);

extern const option perplexity_options[];
int run_perplexity(const arguments *arguments);

extern const option info_options[];
int run_info(const arguments *arguments);

extern const option conformance_options[];
int run_conformance(const arguments *arguments);

#endif
