/* The samebit command: finds the command and runs it. Everything it does goes through
 * the library's public interface. */
#include <string.h>

#include <samebit/samebit.h>

#include "commands.h"
#include "options.h"

static const command *find_command(const char *name) {
    for (const command *command = commands; command->name != NULL; command++) {
        if (strcmp(command->name, name) == 0)
            return command;
    }
    return NULL;
}

/* What is not a command: --version, --help, and the generators that the build calls. */
static int run_switch(int argc, char **argv) {
    if (strcmp(argv[1], "--version") == 0) {
        printf("samebit %s (numerics %d, %s)\n", sb_version(), sb_numerics_version(), sb_isa_name(sb_isa_detect()));
        return EXIT_RIGHT;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0) {
        print_help(stdout);
        return EXIT_RIGHT;
    }
    if (strcmp(argv[1], "--manual") == 0) {
        print_manual(stdout);
        return EXIT_RIGHT;
    }
    if (strcmp(argv[1], "--completion") == 0) {
        if (argc == 3 && print_completion(stdout, argv[2]))
            return EXIT_RIGHT;
        return usage_error("--completion takes bash, zsh or fish");
    }
    return usage_error("there is no command %s: see 'samebit --help'", argv[1]);
}

int main(int argc, char **argv) {
    if (argc < 2) {
        print_help(stderr);
        return EXIT_USAGE;
    }
    const command *command = find_command(argv[1]);
    if (command == NULL)
        return run_switch(argc, argv);
    arguments arguments;
    int code = EXIT_USAGE;
    if (parse_arguments(command, argc - 1, argv + 1, &arguments)) {
        if (has_option(&arguments, "help")) {
            print_command_help(stdout, command);
            code = EXIT_RIGHT;
        } else {
            code = command->run(&arguments);
        }
    }
    free_arguments(&arguments);
    return code;
}
