#include "line_editor.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <termios.h>
#include <unistd.h>
#ifdef SAMEBIT_LIBEDIT
#include <histedit.h>
#include <wchar.h>
#endif

#include "options.h"
#include "support.h"

struct line_editor {
    const volatile sig_atomic_t *interrupted;
    bool terminal;
    const char *prompt;
#ifdef SAMEBIT_LIBEDIT
    EditLine *edit; /* NULL without a terminal */
    History *history;
    sigset_t
        outside; /* signals that are blocked, but while a line is read, where SIGINT comes only while a character is awaited */
    sig_atomic_t before; /* what `interrupted` was when the line began */
#endif
};

/* ---- the terminal stays as it was ---- */

static struct termios as_it_was;
static volatile sig_atomic_t guarded;
static const int endings[] = {SIGTERM, SIGHUP, SIGQUIT};
enum { ENDINGS = sizeof endings / sizeof *endings };

void end_by_signal(int signal_number) {
    if (guarded)
        tcsetattr(STDIN_FILENO, TCSANOW, &as_it_was);
    signal(signal_number, SIG_DFL);
    raise(signal_number); /* is delivered when this returns */
}

static void handle(int signal_number, void (*handler)(int), int flags) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    sigemptyset(&action.sa_mask);
    sigaction(signal_number, &action, NULL);
}

/* Ctrl-Z: other programs have the terminal as it was, and afterwards it is as it is now. */
static void stop_process(int signal_number) {
    int before = errno;
    struct termios now;
    sigset_t this_one;
    bool known = tcgetattr(STDIN_FILENO, &now) == 0;
    tcsetattr(STDIN_FILENO, TCSANOW, &as_it_was);
    handle(signal_number, SIG_DFL, 0);
    sigemptyset(&this_one);
    sigaddset(&this_one, signal_number);
    raise(signal_number);
    sigprocmask(SIG_UNBLOCK, &this_one, NULL); /* it stops here, and goes on here */
    handle(signal_number, stop_process, SA_RESTART);
    if (known)
        tcsetattr(STDIN_FILENO, TCSANOW, &now);
    errno = before;
}

/* A signal that whoever began the process has it ignore, as nohup does, stays ignored. */
static void handle_unless_ignored(int signal_number, void (*handler)(int), int flags) {
    struct sigaction before;
    if (sigaction(signal_number, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        handle(signal_number, handler, flags);
}

static void guard_terminal(void) {
    if (tcgetattr(STDIN_FILENO, &as_it_was) != 0)
        return;
    guarded = 1;
    for (int i = 0; i < ENDINGS; i++)
        handle_unless_ignored(endings[i], end_by_signal, 0);
    handle_unless_ignored(SIGTSTP, stop_process, SA_RESTART);
}

static void leave_terminal(void) {
    if (!guarded)
        return;
    for (int i = 0; i < ENDINGS; i++)
        handle_unless_ignored(endings[i], SIG_DFL, 0);
    handle_unless_ignored(SIGTSTP, SIG_DFL, 0);
    tcsetattr(STDIN_FILENO, TCSANOW, &as_it_was);
    guarded = 0;
}

/* ---- lines as they come ---- */

static line_state read_plain_line(const line_editor *editor, char **line) {
    size_t room = 0;
    *line = NULL;
    if (editor->terminal) {
        fputs(editor->prompt, stdout);
        fflush(stdout);
    }
    errno = 0;
    ssize_t bytes = getline(line, &room, stdin);
    if (bytes >= 0) {
        if (bytes > 0 && (*line)[bytes - 1] == '\n')
            (*line)[--bytes] = '\0';
        if (strlen(*line) == (size_t)bytes)
            return LINE_READ;
        fprintf(stderr, "samebit: standard input: a line has a zero byte, which no message can have\n");
        free(*line);
        *line = NULL;
        return LINE_FAILED;
    }
    int why = errno;
    bool ended = feof(stdin);
    free(*line);
    *line = NULL;
    clearerr(stdin);
    if (ended)
        return LINE_END;
    if (*editor->interrupted > 0)
        return LINE_INTERRUPTED;
    fprintf(stderr, "samebit: standard input cannot be read: %s\n", strerror(why));
    return LINE_FAILED;
}

/* ---- lines that are edited ---- */

#ifdef SAMEBIT_LIBEDIT
static char *prompt_of(EditLine *edit) {
    static char prompt[64];
    line_editor *editor;
    el_get(edit, EL_CLIENTDATA, &editor);
    snprintf(prompt, sizeof prompt, "%s", editor->prompt);
    return prompt;
}

/* libedit's own function goes on behind the first interrupt, and does not see one that comes before it waits. */
static int read_character(EditLine *edit, wchar_t *character) {
    line_editor *editor;
    mbstate_t state;
    char byte;
    memset(&state, 0, sizeof state);
    el_get(edit, EL_CLIENTDATA, &editor);
    while (true) {
        fd_set waits;
        FD_ZERO(&waits);
        FD_SET(STDIN_FILENO, &waits);
        ssize_t count = pselect(STDIN_FILENO + 1, &waits, NULL, NULL, NULL, &editor->outside);
        if (count > 0)
            count = read(STDIN_FILENO, &byte, 1);
        if (count < 0 && errno == EINTR && *editor->interrupted == editor->before)
            continue;
        if (count <= 0)
            return (int)count;
        size_t used = mbrtowc(character, &byte, 1, &state);
        if (used == (size_t)-1)
            memset(&state, 0, sizeof state); /* no character: it is left out */
        else if (used != (size_t)-2)
            return 1;
    }
}

static bool open_edited(line_editor *editor) {
    HistEvent event;
    setlocale(LC_CTYPE, "");
    if (strcmp(nl_langinfo(CODESET), "UTF-8") != 0)
        setlocale(LC_CTYPE, "C.UTF-8");
    editor->history = history_init();
    editor->edit = el_init("samebit", stdin, stdout, stderr);
    if (editor->history == NULL || editor->edit == NULL)
        return false;
    history(editor->history, &event, H_SETSIZE, 1000);
    el_set(editor->edit, EL_CLIENTDATA, editor);
    el_set(editor->edit, EL_PROMPT, prompt_of);
    el_set(editor->edit, EL_EDITOR, "emacs");
    el_set(editor->edit, EL_SIGNAL, 0);
    el_set(editor->edit, EL_GETCFN, read_character);
    el_set(editor->edit, EL_HIST, history, editor->history);
    el_source(editor->edit, NULL); /* ~/.editrc, as libedit's programs do */
    return true;
}

static void close_edited(line_editor *editor) {
    if (editor->edit != NULL)
        el_end(editor->edit);
    if (editor->history != NULL)
        history_end(editor->history);
}

static line_state read_with_libedit(line_editor *editor, const char *draft, char **line) {
    HistEvent event;
    sigset_t interrupts;
    int count = 0;
    if (draft != NULL)
        el_push(editor->edit, draft);
    sigemptyset(&interrupts);
    sigaddset(&interrupts, SIGINT);
    sigprocmask(SIG_BLOCK, &interrupts, &editor->outside);
    editor->before = *editor->interrupted;
    el_resize(editor->edit);
    /* By itself it would be set behind the prompt, and Ctrl-D that comes in between would be nothing: the terminal had taken it for an
     * end of input, which a change of modes takes back. */
    el_set(editor->edit, EL_PREP_TERM, 1);
    errno = 0;
    const char *read = el_gets(editor->edit, &count);
    int why = errno;
    sigprocmask(SIG_SETMASK, &editor->outside, NULL);
    bool interrupted = *editor->interrupted != editor->before;
    if (read == NULL || count <= 0) {
        putchar('\n');
        if (!interrupted && why != 0 && why != EINTR) {
            fprintf(stderr, "samebit: the terminal cannot be read: %s\n", strerror(why));
            return LINE_FAILED;
        }
        return interrupted ? LINE_INTERRUPTED : LINE_END;
    }
    *line = strdup(read);
    if (*line == NULL) {
        out_of_memory();
        return LINE_FAILED;
    }
    (*line)[strcspn(*line, "\n")] = '\0';
    if ((*line)[0] != '\0')
        history(editor->history, &event, H_ENTER, *line);
    return LINE_READ;
}
#endif

/* ---- what callers see ---- */

line_editor *open_line_editor(const volatile sig_atomic_t *interrupted) {
    line_editor *editor = calloc(1, sizeof *editor);
    if (editor == NULL) {
        out_of_memory();
        return NULL;
    }
    editor->interrupted = interrupted;
    editor->terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    if (!editor->terminal)
        return editor;
    guard_terminal();
#ifdef SAMEBIT_LIBEDIT
    if (!open_edited(editor)) {
        close_line_editor(editor);
        out_of_memory();
        return NULL;
    }
#endif
    return editor;
}

void close_line_editor(line_editor *editor) {
    if (editor == NULL)
        return;
#ifdef SAMEBIT_LIBEDIT
    close_edited(editor);
#endif
    if (editor->terminal)
        leave_terminal();
    free(editor);
}

bool is_edited(const line_editor *editor) {
    return editor->terminal;
}

line_state read_edited_line(line_editor *editor, const char *prompt, const char *draft, char **line) {
    editor->prompt = prompt;
    *line = NULL;
#ifdef SAMEBIT_LIBEDIT
    if (editor->terminal)
        return read_with_libedit(editor, draft, line);
#endif
    (void)draft;
    return read_plain_line(editor, line);
}
