#include "converse.h"

#include <stdlib.h>
#include <string.h>

#include "answering.h"
#include "line_editor.h"
#include "messages.h"
#include "text.h"
#include "whole_file.h"

typedef struct conversation {
    const arguments *arguments;
    answering answering;
    line_editor *editor;
    json_t *messages;
    uint32_t request; /* of a message's first answer */
    bool ended, failed;
} conversation;

/* ---- Ctrl-C: once ends the answer, or forgets the line; twice ends the process ---- */

static volatile sig_atomic_t interrupts;
static sb_llm_session *volatile answering_session; /* NULL: nothing is being answered */

static volatile sig_atomic_t ends_at_once; /* while a line is awaited that nobody edits */

static void interrupt(int signal_number) {
    if (++interrupts > 1 || (ends_at_once && answering_session == NULL))
        end_by_signal(signal_number);
    else if (answering_session != NULL)
        sb_llm_session_interrupt(answering_session);
}

static void listen_for_interrupts(void (*handler)(int)) {
    struct sigaction action = {.sa_handler = handler}; /* without SA_RESTART: reading a line ends, too */
    sigemptyset(&action.sa_mask);
    interrupts = 0;
    sigaction(SIGINT, &action, NULL);
}

/* ---- messages ---- */

/* The place of the user's last message; -1: there is none. */
static int last_question(const conversation *c) {
    int at = (int)json_array_size(c->messages) - 1;
    while (at >= 0 && strcmp(message_role(json_array_get(c->messages, (size_t)at)), "user") != 0)
        at--;
    return at;
}

static void forget_from(conversation *c, int place) {
    while ((int)json_array_size(c->messages) > place)
        json_array_remove(c->messages, json_array_size(c->messages) - 1);
}

/* ---- answers ---- */

static void tell_end(const conversation *c, const answered *what) {
    const sb_llm_result *result = &what->result;
    if (what->cut_off)
        fprintf(stderr, "(cut off)\n");
    else if (result->end == SB_LLM_END_CONTEXT)
        fprintf(stderr, "(the context is full: /reset or /undo make room, --context loads the model with more)\n");
    else if (result->end == SB_LLM_END_LIMIT)
        fprintf(stderr, "(cut off after %lld tokens: --count allows more)\n", (long long)result->new_tokens);
    if (!what->cut_off && has_option(c->arguments, "digest"))
        printf("%s\n", result->digest);
    if (!what->cut_off && has_option(c->arguments, "stats"))
        fprintf(stderr, "%lld tokens of the prompt, %lld of which the cache had; %lld new in %.2f s\n",
                (long long)result->prompt_tokens, (long long)what->kept, (long long)result->new_tokens,
                (result->first_token_ns + result->decode_ns) / 1e9);
    fflush(stdout);
}

/* Answers the last message. Where nothing comes of it, that message is forgotten. */
static void answer_last(conversation *c) {
    answered what;
    sb_error error;
    answering_session = c->answering.session;
    sb_status status = answer_messages(&c->answering, c->messages, &what, &error);
    answering_session = NULL;
    const answer_text *text = &c->answering.text;
    bool said = status == SB_OK && (text->bytes > 0 || !what.cut_off);
    printf("\n");
    fflush(stdout);
    if (status != SB_OK) {
        report(&error);
        c->failed = true;
    } else {
        tell_end(c, &what);
    }
    if (said && !add_chat_message(c->messages, "assistant", text->bytes > 0 ? text->text : "", text->bytes)) {
        out_of_memory();
        said = false;
        c->failed = true;
    }
    if (!said)
        forget_from(c, last_question(c));
}

/* Answers the last message of those that were read, if it is the user's, as if it had been typed. */
static void answer_open(conversation *c) {
    size_t count = json_array_size(c->messages);
    c->answering.generation.sampling.request = c->request;
    if (count > 0 && strcmp(message_role(json_array_get(c->messages, count - 1)), "user") == 0)
        answer_last(c);
}

static void ask(conversation *c, const char *message) {
    c->answering.generation.sampling.request = c->request;
    if (add_chat_message(c->messages, "user", message, strlen(message))) {
        answer_last(c);
    } else {
        fprintf(stderr, "samebit: the message is not UTF-8\n");
        c->failed = true;
    }
}

/* ---- commands ---- */

typedef struct chat_command {
    const char *name, *other, *argument, *help;
    void (*run)(conversation *c, const char *argument);
} chat_command;

enum { CHAT_COMMANDS = 8 };
static const chat_command chat_commands[CHAT_COMMANDS + 1];

static void complain(conversation *c, const char *what) {
    fprintf(stderr, "samebit: %s\n", what);
    c->failed = c->failed || !is_edited(c->editor);
}

static void run_help(conversation *c, const char *argument) {
    (void)argument;
    (void)c;
    for (const chat_command *command = chat_commands; command->name != NULL; command++)
        fprintf(stderr, "  /%s%s%s%s%*s %s\n", command->name, command->other != NULL ? ", /" : "",
                command->other != NULL ? command->other : "", command->argument,
                (int)(18 - strlen(command->name) - strlen(command->argument) -
                      (command->other != NULL ? strlen(command->other) + 3 : 0)),
                "", command->help);
    fprintf(stderr,
            "A line that ends in \\ goes on in the next one; one that begins with // is a message that begins with /.\n"
            "Ctrl-C ends an answer, and twice the program; so does Ctrl-D on an empty line.\n");
}

static void run_reset(conversation *c, const char *argument) {
    (void)argument;
    bool has_system =
        json_array_size(c->messages) > 0 && strcmp(message_role(json_array_get(c->messages, 0)), "system") == 0;
    forget_from(c, has_system ? 1 : 0);
}

static void run_undo(conversation *c, const char *argument) {
    (void)argument;
    int place = last_question(c);
    if (place < 0)
        complain(c, "/undo: nothing has been said");
    else
        forget_from(c, place);
}

static void run_retry(conversation *c, const char *argument) {
    (void)argument;
    int place = last_question(c);
    sb_llm_sampling *sampling = &c->answering.generation.sampling;
    if (place < 0) {
        complain(c, "/retry: nothing has been said");
        return;
    }
    if (sampling->temperature == 0)
        fprintf(stderr, "(without --temperature the answer is the same every time)\n");
    forget_from(c, place + 1);
    sampling->request++;
    answer_last(c);
}

/* The user's last message as a line, for the editor; NULL where memory ran out. */
static char *draft_of(const json_t *message) {
    const char *said = json_string_value(json_object_get(message, "content")); /* none: a list, from a file */
    char *draft = strdup(said != NULL ? said : "");
    for (char *at = draft; at != NULL && *at != '\0'; at++)
        *at = *at == '\n' ? ' ' : *at;
    return draft;
}

static void run_edit(conversation *c, const char *argument) {
    int place = last_question(c);
    char *line = NULL;
    if (place < 0) {
        complain(c, "/edit: nothing has been said");
        return;
    }
    if (*argument == '\0' && !is_edited(c->editor)) {
        complain(c, "/edit: give the new text, as in /edit TEXT");
        return;
    }
    if (*argument == '\0') {
        char *draft = draft_of(json_array_get(c->messages, (size_t)place));
        line_state state = draft != NULL ? read_edited_line(c->editor, "edit> ", draft, &line) : LINE_FAILED;
        free(draft);
        if (state != LINE_READ || *line == '\0') {
            free(line);
            return;
        }
    }
    forget_from(c, place);
    ask(c, line != NULL ? line : argument);
    free(line);
}

static void run_save(conversation *c, const char *argument) {
    whole_file file;
    if (*argument == '\0') {
        complain(c, "/save: give the file, as in /save talk.json");
        return;
    }
    json_t *all = json_pack("{s:O}", "messages", c->messages);
    bool begun = all != NULL && begin_file(argument, &file);
    bool written = begun && json_dumpf(all, file.stream, JSON_INDENT(2)) == 0 && fputc('\n', file.stream) != EOF;
    bool kept = begun && end_file(&file, written) && written;
    json_decref(all);
    c->failed = c->failed || (!kept && !is_edited(c->editor));
    if (kept)
        fprintf(stderr, "(%zu messages are in %s)\n", json_array_size(c->messages), argument);
}

static void run_load(conversation *c, const char *argument) {
    json_t *messages = NULL;
    if (*argument == '\0') {
        complain(c, "/load: give the file, as in /load talk.json");
        return;
    }
    if (read_conversation(argument, &messages) != EXIT_RIGHT) {
        c->failed = c->failed || !is_edited(c->editor);
        return;
    }
    json_decref(c->messages);
    c->messages = messages;
    fprintf(stderr, "(%zu messages are from %s)\n", json_array_size(messages), argument);
    answer_open(c);
}

static void run_quit(conversation *c, const char *argument) {
    (void)argument;
    c->ended = true;
}

static const chat_command chat_commands[CHAT_COMMANDS + 1] = {
    {"help", "?", "", "Lists the commands", run_help},
    {"reset", "clear", "", "Forgets all messages but the system's", run_reset},
    {"undo", NULL, "", "Forgets the last message and its answer", run_undo},
    {"retry", NULL, "", "Answers the last message again, as the next request of the seed", run_retry},
    {"edit", NULL, " [TEXT]", "Says the last message in another way", run_edit},
    {"save", NULL, " FILE", "Writes the messages as JSON", run_save},
    {"load", NULL, " FILE", "Goes on with the messages of a file, in place of those that there are", run_load},
    {"quit", "exit", "", "Ends the conversation", run_quit},
    {0},
};

static void run_line(conversation *c, const char *line) {
    if (line[0] != '/' || line[1] == '/') {
        ask(c, line[0] == '/' ? line + 1 : line);
        return;
    }
    size_t name = strcspn(line + 1, " \t");
    const char *argument = line + 1 + name + strspn(line + 1 + name, " \t");
    for (const chat_command *command = chat_commands; command->name != NULL; command++) {
        bool is_it = strlen(command->name) == name && strncmp(line + 1, command->name, name) == 0;
        bool is_other =
            command->other != NULL && strlen(command->other) == name && strncmp(line + 1, command->other, name) == 0;
        if ((is_it || is_other) && *argument != '\0' && *command->argument == '\0') {
            complain(c, "the command takes nothing behind its name; /help lists the commands");
            return;
        }
        if (is_it || is_other) {
            command->run(c, argument);
            return;
        }
    }
    complain(c, "there is no such command; /help lists the commands, and // begins a message with /");
}

/* ---- reading ---- */

/* A message, of several lines where they end in a backslash. */
static line_state read_message(conversation *c, char **message) {
    char *whole = NULL, *line;
    *message = NULL;
    while (true) {
        line_state state = read_edited_line(c->editor, whole == NULL ? "> " : "… ", NULL, &line);
        if (state != LINE_READ) {
            free(whole);
            return state;
        }
        size_t before = whole != NULL ? strlen(whole) : 0, bytes = strlen(line);
        char *more = realloc(whole, before + bytes + 2);
        if (more == NULL) {
            free(line);
            free(whole);
            out_of_memory();
            return LINE_FAILED;
        }
        memcpy(more + before, line, bytes + 1);
        free(line);
        whole = more;
        if (bytes == 0 || whole[before + bytes - 1] != '\\')
            break;
        whole[before + bytes - 1] = '\n';
    }
    *message = whole;
    return LINE_READ;
}

static int read_messages(conversation *c) {
    char *message;
    while (!c->ended) {
        line_state state = read_message(c, &message);
        if (state == LINE_FAILED)
            return EXIT_FAILED;
        if (state == LINE_INTERRUPTED)
            fprintf(stderr, "(Ctrl-C again ends the program, as /quit does)\n");
        if (state == LINE_INTERRUPTED)
            continue;
        if (state == LINE_END)
            break;
        interrupts = 0;
        if (message[strspn(message, " \t\n")] != '\0')
            run_line(c, message);
        free(message);
    }
    return c->failed ? EXIT_FAILED : EXIT_RIGHT;
}

int converse(const arguments *arguments, sb_llm *llm, const sb_session_options *options, const sb_tokenizer *tokenizer,
             const stop_texts *stops, const sb_llm_generation *generation) {
    conversation c = {.arguments = arguments,
                      .request = generation->sampling.request,
                      .answering = {.tokenizer = tokenizer, .stops = stops, .generation = *generation}};
    sb_error error;
    int code = EXIT_RIGHT;
    c.answering.interrupted = &interrupts;
    code = read_chat_date(arguments, &c.answering.date) ? begin_chat(arguments, &c.messages) : EXIT_USAGE;
    if (code == EXIT_RIGHT && (sb_chat_template_load(arguments->positional[0], &c.answering.chat, &error) != SB_OK ||
                               sb_llm_session_create(llm, options, &c.answering.session, &error) != SB_OK))
        code = report(&error);
    listen_for_interrupts(interrupt);
    if (code == EXIT_RIGHT)
        code = (c.editor = open_line_editor(&interrupts)) != NULL ? EXIT_RIGHT : EXIT_FAILED;
    ends_at_once = code == EXIT_RIGHT && !is_edited(c.editor);
    if (code == EXIT_RIGHT && is_edited(c.editor))
        fprintf(stderr, "/help lists what there is beside messages\n");
    if (code == EXIT_RIGHT)
        answer_open(&c);
    if (code == EXIT_RIGHT)
        code = read_messages(&c);
    close_line_editor(c.editor);
    listen_for_interrupts(SIG_DFL);
    end_answering(&c.answering);
    json_decref(c.messages);
    return code;
}
