/* The table of a run: the numbers that its open extents and what follows from them have, and small inputs. On a device it
 * gets there in one copy, to where recorded work looks for it. */
#ifndef SB_RUNTIME_RUN_TABLE_H
#define SB_RUNTIME_RUN_TABLE_H

#include "runtime/program.h"

struct sb_open_extents;
struct sb_plan;

/* The most bytes of inputs that go with the table: what is larger is copied by itself. */
#define SB_RUN_TABLE_INPUT_BYTES 65536
/* The most bytes that go through a mailbox, which one block of threads empties. */
#define SB_RUN_TABLE_MAIL_BYTES 16384

/* An input of the caller's on the host that steps on the device read. */
typedef struct sb_sent_input {
    size_t index; /* in sb_program::enter */
    sb_value_id value;
    sb_tensor *rows;  /* in the table, with the planned extents' strides and those extents that the run has */
    sb_tensor *there; /* on the device, with the planned extents */
} sb_sent_input;

typedef struct sb_run_table {
    sb_tensor *here;     /* u8[bytes], on the host */
    sb_tensor *there;    /* the same on the device; NULL on the host */
    int64_t *scalars;    /* in `here`, and first there: a number for each of the open extents' */
    sb_tensor *faults;   /* in `there`, at its end: a word for each step, which comes there as 0 with every run */
    sb_tensor *posted;   /* in `there`: what is in front of these */
    size_t answer;       /* among the scalars: the address in pinned memory where the run's faults go */
    sb_mailbox *mailbox; /* by which recorded runs get it (runtime/again.h); NULL: none does */
    sb_tensor **known;   /* by value: elements that follow from open extents, over `here`; NULL for none */
    size_t shown_count;  /* values with such elements … */
    size_t read_count; /* … of which so many, the first, are read by steps or leave: the rest is shape arithmetic … */
    sb_value_id *shown;      /* … these, */
    sb_tensor **there_shown; /* and their elements over `there`; NULL on the host */
    size_t sent_count;
    sb_sent_input *sent;
} sb_run_table;

/** Makes the table for open extents whose scalars are known, and a plan with its facts; with a queue (entered), on its
 * device as well. What has been made when it fails, sb_run_table_clear gives back. Errors: OUT_OF_MEMORY; DEVICE. */
sb_status sb_run_table_create(sb_run_table *table, const struct sb_open_extents *open, const sb_program *program,
                              const struct sb_plan *plan, sb_queue *queue, sb_error *error);
/** Makes the mailbox for so many runs in flight, if there is none yet and the table is small enough for one. (Entered.) */
sb_status sb_run_table_open_mailbox(sb_run_table *table, sb_queue *queue, size_t count, sb_error *error);
void sb_run_table_clear(sb_run_table *table, sb_queue *queue);

/** When the plan knows which steps run: sorts what the table shows by whether one of them reads it. */
void sb_run_table_sort(sb_run_table *table, const sb_program *program, const struct sb_plan *plan);

/** Puts the run's inputs beside its scalars, */
void sb_run_table_fill(sb_run_table *table, const sb_value *inputs);
/** and sends all to the device, (entered) */
sb_status sb_run_table_send(sb_run_table *table, sb_queue *queue, sb_error *error);
/** or puts it into the mailbox, for work that receives it; `answer` is where faults go. */
void sb_run_table_post(sb_run_table *table, const void *answer);

#endif
