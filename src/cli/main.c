/* rlock [options] VERB ...: locks on Redis, from the command line. */
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

const cli_verb *const cli_verbs[] = {
    &cli_run,   &cli_ls,       &cli_who,      &cli_show,  &cli_wait,
    &cli_waits, &cli_watch,    &cli_top,      &cli_break, &cli_doctor,
    &cli_bench, &cli_exporter, &cli_complete, NULL};

enum {
    URI_FILE = 256,
    ASKPASS,
    TLS_CA_FILE,
    TLS_CA_DIR,
    TLS_CERT_FILE,
    TLS_KEY_FILE,
    TLS_SERVER_NAME,
    TLS_VERIFY,
    MIN_REPLICAS
};

static const cli_option options[] = {
    {'u', "uri", "URI",
     "a server; several: a Red lock on all of them.\n"
     "Default: $RLOCK_URI (blanks between several),\n"
     "or redis://127.0.0.1:6379/0"},
    {URI_FILE, "uri-file", "FILE", "a file that has the URIs, one a line"},
    {ASKPASS, "askpass", NULL, "ask for the password on the terminal"},
    {TLS_CA_FILE, "tls-ca-file", "FILE", "for rediss://, as those below"},
    {TLS_CA_DIR, "tls-ca-dir", "DIR", "a folder of such files"},
    {TLS_CERT_FILE, "tls-cert-file", "FILE", "of the client"},
    {TLS_KEY_FILE, "tls-key-file", "FILE", "its key; by default there, too"},
    {TLS_SERVER_NAME, "tls-server-name", "NAME", "instead of the URI's host"},
    {TLS_VERIFY, "tls-verify", "full|ca|none",
     "what of the server's certificate is checked"},
    {MIN_REPLICAS, "min-replicas", "N",
     "replicas that have to have what is granted"},
    {0},
};

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
                       cli_printable_word(shown, sizeof shown, text));
}

static int take_replicas(cli_options *o, const char *text)
{
    long n = 0;
    char shown[60];
    if (!cli_number(text, 0, 16, &n))
        return cli_misused(NULL, "--min-replicas is 0 to 16, and not '%s'",
                           cli_printable_word(shown, sizeof shown, text));
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

int cli_take_before_verb(void *arg, int c)
{
    cli_options *o = arg;
    switch (c) {
    case 'u':
        return cli_add_uri(o, optarg) ? 0 : CLI_FAILED;
    case URI_FILE:
        return cli_add_uri_file(o, optarg) ? 0 : CLI_FAILED;
    case ASKPASS:
        o->askpass = true;
        return 0;
    case TLS_VERIFY:
        return take_verify(o, optarg);
    case MIN_REPLICAS:
        return take_replicas(o, optarg);
    default:
        return take_tls(o, c, optarg);
    }
}

const cli_verb cli_itself = {
    .usage = "[options] VERB ...",
    .options = options,
    .help = "Everybody can see a command line: give passwords by --uri-file, "
            "$RLOCK_URI,\nor --askpass.",
    .prints = true,
};

static int run_verb(cli_options *o, int argc, char **argv)
{
    char shown[60];
    if (argc == 0)
        return cli_misused(NULL, "no verb");
    for (size_t i = 0; cli_verbs[i]; i++) {
        if (strcmp(argv[0], cli_verbs[i]->name) == 0)
            return cli_verbs[i]->run(o, argc, argv);
    }
    return cli_misused(NULL, "'%s' is no verb",
                       cli_printable_word(shown, sizeof shown, argv[0]));
}

/* A descriptor of ours must not become COMMAND's stdin because that was closed;
   for COMMAND it is closed again. What is printed there fails. */
static void fill_standard_descriptors(void)
{
    for (int fd = 0; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0)
            (void)!open("/dev/null",
                        (fd == STDOUT_FILENO ? O_RDONLY : O_RDWR) | O_CLOEXEC);
    }
}

int main(int argc, char **argv)
{
    cli_options o = {.client = RLOCK_OPTIONS_INIT};
    int status;
    fill_standard_descriptors();
    opterr = 0;
    if (cli_take_options(&cli_itself, &o, argc, argv, cli_take_before_verb, &o,
                         &status))
        status = run_verb(&o, argc - optind, argv + optind);
    for (size_t i = 0; i < o.uris; i++)
        free(o.uri[i]);
    return status;
}
