/* The table of commands. */
#include "commands.h"

const option common_options[] = {
    {"help", NULL, false, "Print this help and exit"},
    {0},
};

const command commands[] = {
    {.name = "run",
     .operands = "MODEL",
     .least_operands = 1,
     .most_operands = 1,
     .summary = "Run a model on tensors from files",
     .description = "Reads the inputs, runs the model once and prints what came out, or writes it to a file. MODEL is "
                    "a file, or - "
                    "for standard input.",
     .options = run_options,
     .run = run_run},
    {.name = "dump",
     .operands = "MODEL",
     .least_operands = 1,
     .most_operands = 1,
     .summary = "Show the graph of a model",
     .description = "Prints nodes, values with their types and shapes, parameters, operations "
                    "(FLOP) and the kernels that "
                    "will compute them, as formulas where extents are symbolic. The graph is shown "
                    "as it runs; with "
                    "--no-passes, as it stands in the file.",
     .options = dump_options,
     .run = run_dump},
    {.name = "compare",
     .operands = "MODEL",
     .least_operands = 1,
     .most_operands = 1,
     .summary = "Compare a model, node by node, with recorded tensors or with the CPU",
     .description = "Runs the model and compares each node's outputs with the recorded ones of the "
                    "same names. Each node gets the "
                    "recorded inputs, so that the culprit stands alone; with --cumulative, errors "
                    "flow on. Names the first node "
                    "that differs. With --device and without recorded tensors, the run on the "
                    "device is compared with one "
                    "on the CPU, of the graph as it stands in the file. Values that passes hide "
                    "are listed as not compared. "
                    "With --record, writes such a file instead: what one machine "
                    "records, another compares.",
     .options = compare_options,
     .run = run_compare},
    {.name = "bench",
     .operands = "MODEL",
     .least_operands = 1,
     .most_operands = 1,
     .summary = "Measure how long runs take",
     .description =
         "Inputs that are not given are filled with fixed pseudo-random numbers. With --llm, MODEL is a "
         "language model as for 'samebit generate', and what is measured is how many tokens of a prompt, and "
         "how many new ones behind it, come a second.",
     .options = bench_options,
     .run = run_bench},
    {.name = "profile",
     .operands = "MODEL",
     .least_operands = 1,
     .most_operands = 1,
     .summary = "Show where the time of a run goes",
     .description = "Measures every node and prints a table of operators and one of nodes. Inputs "
                    "that are not given are filled "
                    "with fixed pseudo-random numbers. On a device each node is waited for, which "
                    "takes time of its own: "
                    "what the device itself worked, and what runs take when nothing is waited for, "
                    "is printed beside it.",
     .options = profile_options,
     .run = run_profile},
    {.name = "digest",
     .operands = "FILE…",
     .least_operands = 1,
     .most_operands = -1,
     .summary = "Print the SHA-256 digest of each array in .npy and .npz files",
     .description = "The digest covers dtype, extents and elements, in a form that is the same on "
                    "every machine; every "
                    "NaN counts as the same. FILE may be - for standard input.",
     .options = digest_options,
     .run = run_digest},
    {.name = "devices",
     .operands = "",
     .least_operands = 0,
     .most_operands = 0,
     .summary = "List the GPUs of this machine",
     .description = "Prints the CUDA driver's version and each GPU with its compute capability, "
                    "its memory, and the kernels that "
                    "Samebit has for it, or why it has none. The driver's library is libcuda.so.1, "
                    "or what the environment variable "
                    "SAMEBIT_CUDA_DRIVER names. A machine without a driver or a GPU is no failure; a "
                    "driver that is too old or broken is.",
     .options = devices_options,
     .run = run_devices},
    {.name = "generate",
     .operands = "MODEL",
     .least_operands = 1,
     .most_operands = 1,
     .summary = "Let a language model go on with a text or a sequence of tokens",
     .description =
         "MODEL is a folder with config.json and safetensors files, or a GGUF file (of a split one the first). "
         "With --prompt, prints the text as it comes, whole characters at a time; else the ids of new tokens. Ends at "
         "a token that ends texts, as the checkpoint names them. Every logit has the same bits whatever the pieces in "
         "which the prompt was read, the number of threads, the instruction set and the device: --digest tells them.",
     .options = generate_options,
     .letters = "p=prompt",
     .run = run_generate},
    {.name = "tokenize",
     .operands = "MODEL [TEXT | -]",
     .least_operands = 1,
     .most_operands = 2,
     .summary = "Show the tokens of a text, or the text of tokens",
     .description =
         "MODEL is a folder with tokenizer.json or tokenizer.model, such a file, or a GGUF file. Prints the ids of "
         "TEXT, or of what standard input has, with commas between, as 'samebit generate --tokens' takes them. With "
         "--decode, TEXT is ids, and their text is printed.",
     .options = tokenize_options,
     .run = run_tokenize},
    {.name = "verify",
     .operands = "MODEL FILE",
     .least_operands = 2,
     .most_operands = 2,
     .summary = "Verify a receipt that 'samebit generate --receipt' has written",
     .description =
         "Computes the generation again, the prompt and all tokens in a few runs, and compares files, hidden states, "
         "chosen tokens and log-probabilities. Prints the first step that differs and what differs. Neither the "
         "device, nor threads, nor the instruction set have to be those of the generation. Exits with 1 where "
         "something differs, and with 2 where the receipt, or a key, cannot be used.",
     .options = verify_options,
     .run = run_verify},
    {.name = "perplexity",
     .operands = "MODEL FILE",
     .least_operands = 2,
     .most_operands = 2,
     .summary = "Measure how well a language model foretells a text",
     .description =
         "MODEL is as for 'samebit generate', FILE a text, or - for standard input. Prints the perplexity, e to the "
         "mean negative log-probability of a token, with its standard error. The text is cut into windows of "
         "--context positions, each of which is run by itself with the token that texts begin with before it, where "
         "the "
         "tokenizer puts one. With --method full, the default, the next window ends --stride tokens further on, and "
         "each token counts once, in the first window that has it. With --method llama.cpp, windows stand one behind "
         "the other, and of each the second half counts, as llama.cpp's own tool does.",
     .options = perplexity_options,
     .run = run_perplexity},
    {.name = "info",
     .operands = "MODEL",
     .least_operands = 1,
     .most_operands = 1,
     .summary = "Show what a language model's checkpoint is",
     .description =
         "MODEL is a folder with config.json and safetensors files, or a GGUF file. All of its tensors are checked "
         "against its configuration, as for a run.",
     .options = info_options,
     .run = run_info},
    {.name = "conformance",
     .operands = "DIR…",
     .least_operands = 1,
     .most_operands = -1,
     .summary = "Run ONNX backend test folders",
     .description = "Each DIR is a case (model.onnx and test_data_set_*) or holds cases at any "
                    "depth. Every output is "
                    "compared with the recorded one. Closes with a line of counts.",
     .options = conformance_options,
     .run = run_conformance},
    {0},
};
