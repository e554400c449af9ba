/* rlock [options] VERB ...: locks on Redis, from the command line. */
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

static const cli_verb *const verbs[] = {
    &cli_run,   &cli_ls,  &cli_who,   &cli_show,   &cli_wait, &cli_waits,
    &cli_watch, &cli_top, &cli_break, &cli_doctor, &cli_bench};

enum { VERBS = sizeof verbs / sizeof *verbs };

enum {
    URI_FILE = 256,
    ASKPASS,
    JSON,
    HELP,
    VERSION,
    TLS_CA_FILE,
    TLS_CA_DIR,
    TLS_CERT_FILE,
    TLS_KEY_FILE,
    TLS_SERVER_NAME,
    TLS_VERIFY,
    MIN_REPLICAS
};

static const struct option long_options[] = {
    {"uri", required_argument, NULL, 'u'},
    {"uri-file", required_argument, NULL, URI_FILE},
    {"askpass", no_argument, NULL, ASKPASS},
    {"json", no_argument, NULL, JSON},
    {"help", no_argument, NULL, HELP},
    {"version", no_argument, NULL, VERSION},
    {"tls-ca-file", required_argument, NULL, TLS_CA_FILE},
    {"tls-ca-dir", required_argument, NULL, TLS_CA_DIR},
    {"tls-cert-file", required_argument, NULL, TLS_CERT_FILE},
    {"tls-key-file", required_argument, NULL, TLS_KEY_FILE},
    {"tls-server-name", required_argument, NULL, TLS_SERVER_NAME},
    {"tls-verify", required_argument, NULL, TLS_VERIFY},
    {"min-replicas", required_argument, NULL, MIN_REPLICAS},
    {0},
};

static int help(void)
{
    printf("usage: rlock [options] VERB ...\n\n");
    for (size_t i = 0; i < VERBS; i++)
        cli_help(verbs[i]);
    printf(
        "Options before the verb:\n"
        "  -u, --uri URI        a server; several: a Red lock on all of them."
        "\n                       Default: $RLOCK_URI (blanks between "
        "several),\n                       or redis://127.0.0.1:6379/0\n"
        "      --uri-file FILE  a file that has the URIs, one a line\n"
        "      --askpass        ask for the password on the terminal\n"
        "      --tls-ca-file FILE, --tls-ca-dir DIR, --tls-cert-file FILE,\n"
        "      --tls-key-file FILE, --tls-server-name NAME,\n"
        "      --tls-verify full|ca|none\n"
        "                       for rediss://\n"
        "      --min-replicas N replicas that have to have what is granted\n"
        "      --json           where something is printed: one object a line"
        "\n      --help, --version\n\n"
        "Everybody can see a command line: give passwords by --uri-file, "
        "$RLOCK_URI,\nor --askpass.\n");
    return fflush(stdout) == 0 ? 0 : CLI_FAILED;
}

static int take_verify(cli_options *o, const char *text)
{
    static const char *const words[] = {"full", "ca", "none"};
    char shown[60];
    for (int i = 0; i < 3; i++) {
        if (strcmp(text, words[i]) == 0) {
            o->client.tls_verify = (rlock_tls_verify)i;
            return 0;
        }
    }
    return cli_misused(NULL, "--tls-verify is full, ca or none, and not '%s'",
                       cli_printable(shown, sizeof shown, text));
}

static int take_replicas(cli_options *o, const char *text)
{
    long n = 0;
    char shown[60];
    if (!cli_number(text, 0, 16, &n))
        return cli_misused(NULL, "--min-replicas is 0 to 16, and not '%s'",
                           cli_printable(shown, sizeof shown, text));
    o->client.min_replicas = (unsigned)n;
    return 0;
}

static int take_tls(cli_options *o, int c, const char *text)
{
    const char **const members[] = {
        &o->client.tls_ca_file, &o->client.tls_ca_dir, &o->client.tls_cert_file,
        &o->client.tls_key_file, &o->client.tls_server_name};
    *members[c - TLS_CA_FILE] = text;
    return 0;
}

static int take(cli_options *o, int c, char **argv)
{
    switch (c) {
    case 'u':
        return cli_add_uri(o, optarg) ? 0 : CLI_FAILED;
    case URI_FILE:
        return cli_add_uri_file(o, optarg) ? 0 : CLI_FAILED;
    case ASKPASS:
        o->askpass = true;
        return 0;
    case JSON:
        o->json = true;
        return 0;
    case TLS_VERIFY:
        return take_verify(o, optarg);
    case MIN_REPLICAS:
        return take_replicas(o, optarg);
    case '?':
    case ':':
        return cli_bad_option(NULL, argv);
    default:
        return take_tls(o, c, optarg);
    }
}

static int run_verb(cli_options *o, int argc, char **argv)
{
    char shown[60];
    if (argc == 0)
        return cli_misused(NULL, "no verb");
    for (size_t i = 0; i < VERBS; i++) {
        if (strcmp(argv[0], verbs[i]->name) == 0)
            return verbs[i]->run(o, argc, argv);
    }
    return cli_misused(NULL, "'%s' is no verb",
                       cli_printable(shown, sizeof shown, argv[0]));
}

/* A descriptor of ours must not become COMMAND's stdin because that was closed;
   for COMMAND it is closed again. */
static void fill_standard_descriptors(void)
{
    for (int fd = 0; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0)
            (void)!open("/dev/null", O_RDWR | O_CLOEXEC);
    }
}

int main(int argc, char **argv)
{
    cli_options o = {.client = RLOCK_OPTIONS_INIT};
    int c, status = 0;
    fill_standard_descriptors();
    opterr = 0;
    while (status == 0 &&
           (c = getopt_long(argc, argv, "+:u:", long_options, NULL)) != -1) {
        if (c == HELP)
            return help();
        if (c == VERSION)
            return printf("rlock %s\n", rlock_version()) > 0 ? 0 : CLI_FAILED;
        status = take(&o, c, argv);
    }
    if (status == 0)
        status = run_verb(&o, argc - optind, argv + optind);
    for (size_t i = 0; i < o.uris; i++)
        free(o.uri[i]);
    return status;
}
