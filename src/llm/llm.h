/* The inside of a language model. See <samebit/llm.h> for the contract. */
#ifndef SB_LLM_LLM_H
#define SB_LLM_LLM_H

#include <samebit/llm.h>

#include <stdatomic.h>

#include "base/workers.h"
#include "llm/fingerprint.h"
#include "llm/graph.h"
#include "llm/pages.h"

struct sb_llm {
    atomic_int references;
    sb_checkpoint *checkpoint; /* kept for its metadata; weights are the model's */
    sb_llm_config config;      /* refers to the checkpoint */
    sb_model *model;
    sb_llm_description description;
    sb_model_options options;       /* that the model was made with */
    char *unrelated;                /* … its names */
    uint64_t version;               /* counts up when weights are replaced */
    bool hidden_states;             /* steps give them */
    bool receipts;                  /* so, and the next is there */
    sb_llm_fingerprint fingerprint; /* of the files */
};

struct sb_llm_batch {
    int references; /* the caller's and the sequences' */
    sb_llm *llm;
    sb_state *state;
    sb_session *session;
    int64_t page_positions;
    sb_llm_pages pages;
    uint64_t version;              /* of the model's weights */
    sb_session_options options;    /* to make the session again */
    char *force_cpu;               /* … its names */
    struct sb_llm_flight *flights; /* steps on their way, the oldest first … */
    int flight_count;              /* … and how many */
};

struct sb_llm_sequence {
    sb_llm_batch *batch;
    int64_t length;
    int64_t page_count, page_room;
    int64_t *pages;   /* in the order of positions; room for page_room */
    int64_t part;     /* while a step is checked: which part it is in; -1: none */
    uint64_t version; /* of the weights that its positions were computed with; 0 positions: of any */
};

/* A batch with a single page, as long as the context, and the sequence that has it. */
struct sb_llm_session {
    sb_llm *llm;
    sb_llm_batch *batch;
    sb_llm_sequence *sequence;
};

/** The graph of the checkpoint's weights, as the model was asked for. */
sb_status sb_llm_make_model(const sb_llm *llm, sb_model **model, sb_error *error);

/** sb_llm_batch_create with pages of another size. */
sb_status sb_llm_batch_make(sb_llm *llm, const sb_session_options *options, int64_t pages, int64_t page_positions,
                            sb_llm_batch **batch, sb_error *error);

/** Drops pages behind those of the sequence's positions. */
void sb_llm_sequence_let_go(sb_llm_sequence *sequence);

/** sb_llm_batch_step with all outputs: outputs[SB_LLM_HIDDEN] is NULL for a model without receipts, and
 * outputs[SB_LLM_CHOSEN] is. The caller releases them; on failure there are none. */
sb_status sb_llm_batch_run(sb_llm_batch *batch, int count, const sb_llm_step_part *parts,
                           sb_tensor *outputs[SB_LLM_OUTPUTS], sb_error *error);

/* A token that a step chooses where its logits are, and that waits there for the sequence's next step. */
typedef struct sb_llm_choice {
    int part;    /* of the step: whose sequence */
    int64_t row; /* of the step's wanted rows, of all parts one behind the other */
    sb_choose_settings by;
} sb_llm_choice;

/* What a step that is left to the device does beside running its parts. A part with tokens of NULL and a count of 1 takes the token that
 * waits for its sequence, which the step before it has chosen. */
typedef struct sb_llm_ahead {
    int count;
    const sb_llm_choice *choices;
    bool logits; /* come to the host, too */
} sb_llm_ahead;

/** Threads for loops over what a step gave, until the next call with the batch. */
sb_workers *sb_llm_batch_workers(const sb_llm_batch *batch);
/** Whether steps are given to a device, which can choose tokens and go on with them before the host has seen them. */
bool sb_llm_batch_has_device(const sb_llm_batch *batch);
/* Tokens of a prompt in one run: usually on the host; usually on a device, and the most. Products of 2,048 tokens of Llama-3.2-1B's shape took
 * 8.4 ms in runs of 512 rows (H200), and 6.3 in one (H100). */
#define SB_LLM_CHUNK 512
#define SB_LLM_MOST_CHUNK 2048
/** Tokens of a prompt in one run, where `asked` are asked for; 0: nobody says. */
int64_t sb_llm_batch_chunk(const sb_llm_batch *batch, int64_t asked);

/* A step that is left to the device, from when it is given until it is collected: whoever gives it keeps this where it is. */
typedef struct sb_llm_flight {
    struct sb_llm_flight *behind; /* the next one on its way */
    uint64_t run;                 /* of the batch's session; 0: it has landed, and the rest is there */
    sb_status status;
    sb_error error;
    sb_tensor *outputs[SB_LLM_OUTPUTS];
} sb_llm_flight;

/** Gives a step to the device, behind those that it has; sequences are longer from now on. On success `flight` is to be collected before
 * the batch is released. Errors: those of sb_llm_batch_step, after which the step is not underway. */
sb_status sb_llm_batch_enqueue(sb_llm_batch *batch, int count, const sb_llm_step_part *parts, const sb_llm_ahead *ahead,
                               sb_llm_flight *flight, sb_error *error);
/** Waits for a step, if it has not landed: the oldest ones do where another step needs their place, or a session of other weights. As
 * sb_llm_batch_run's, but for logits that were not asked for (NULL), and with outputs[SB_LLM_CHOSEN]. On failure the positions of the step
 * are not computed, nor those of steps behind it: sequences are to be trimmed, and the batch mended. */
sb_status sb_llm_batch_collect(sb_llm_batch *batch, sb_llm_flight *flight, sb_tensor *outputs[SB_LLM_OUTPUTS],
                               sb_error *error);
/** Behind a step that failed, when those behind it are collected too: the cache is whole, since what they may have written lies behind the
 * sequences' lengths, where nobody looks, on pages that are theirs alone. */
void sb_llm_batch_mend(sb_llm_batch *batch);

/** sb_llm_batch_step of a model with hidden states, with those of the wanted rows alone: no logits are computed. */
sb_status sb_llm_batch_look(sb_llm_batch *batch, int count, const sb_llm_step_part *parts, sb_tensor **hidden,
                            sb_error *error);

/** sb_llm_step with all outputs, likewise. */
sb_status sb_llm_run(sb_llm_session *session, int64_t count, const int64_t *tokens, int64_t wanted_count,
                     const int64_t *wanted, sb_tensor *outputs[SB_LLM_OUTPUTS], sb_error *error);

#endif
