/* Lines that a user types: edited where there is a terminal and libedit was there when this was built, read as they come elsewhere. */
#ifndef CLI_LINE_EDITOR_H
#define CLI_LINE_EDITOR_H

#include <signal.h>
#include <stdbool.h>

typedef struct line_editor line_editor;

typedef enum line_state {
    LINE_READ,
    LINE_END,         /* there are no more */
    LINE_INTERRUPTED, /* by Ctrl-C: what was typed is forgotten */
    LINE_FAILED       /* what is wrong has been printed */
} line_state;

/** Begins to read standard input. `interrupted` is what the caller's handler of SIGINT, which has to be there without SA_RESTART, counts
 * up. While there is one, signals that end or stop the process leave the terminal as it was. NULL after printing what
 * is wrong. There can be one at a time. */
line_editor *open_line_editor(const volatile sig_atomic_t *interrupted);
void close_line_editor(line_editor *editor); /**< NULL is allowed */

/** Whether lines come from a terminal. */
bool is_edited(const line_editor *editor);

/** For handlers of signals: leaves the terminal as it was, and lets the signal end the process. */
void end_by_signal(int signal_number);

/** Reads a line into fresh memory, without its end. A terminal shows `prompt` and, where its lines can be edited, `draft` (NULL: nothing)
 * to go on with. */
line_state read_edited_line(line_editor *editor, const char *prompt, const char *draft, char **line);

#endif
