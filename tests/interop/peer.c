#include "peer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static char answer[1024];

const char *peer_error(const char *message)
{
    snprintf(answer, sizeof answer, "error %s", message);
    return answer;
}

const char *peer_number(int64_t number)
{
    snprintf(answer, sizeof answer, "%" PRId64, number);
    return answer;
}

int64_t peer_now_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

void peer_pause_ms(int ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000L}, NULL);
}

static peer_fn *find(const peer_command *commands, const char *word)
{
    while (commands->word && strcmp(commands->word, word) != 0)
        commands++;
    return commands->run;
}

/* Nothing protects the number in the file but the lock. */
static const char *increment(const char *path)
{
    long number;
    FILE *f = fopen(path, "r+");
    if (!f)
        return peer_error("no file");
    if (fscanf(f, "%ld", &number) != 1) {
        fclose(f);
        return peer_error("no number");
    }
    /* Who is not kept out shall have the time to come between. */
    peer_pause_ms(1);
    rewind(f);
    fprintf(f, "%ld", number + 1);
    return fclose(f) == 0 ? "ok" : peer_error("the file was not written");
}

static const char *count(const peer_command *commands, const char *name,
                         int64_t n)
{
    peer_fn *lock = find(commands, "lock");
    peer_fn *unlock = find(commands, "unlock");
    const char *result = "ok";
    while (n-- > 0 && strcmp(result, "ok") == 0) {
        result = lock(name, 60000, 30000);
        if (strcmp(result, "ok") != 0)
            return result;
        result = increment(name);
        if (strcmp(result, "ok") == 0)
            result = unlock(name, 0, 0);
    }
    return result;
}

int peer_run(const peer_command *commands)
{
    char line[1024], word[16], name[512];
    while (fgets(line, sizeof line, stdin)) {
        int64_t a = 0, b = 0;
        if (sscanf(line, "%15s %511s %" SCNd64 " %" SCNd64, word, name, &a,
                   &b) < 2)
            return 2;
        peer_fn *run = find(commands, word);
        const char *result;
        if (run)
            result = run(name, a, b);
        else if (strcmp(word, "count") == 0)
            result = count(commands, name, a);
        else
            result = peer_error("what?");
        printf("%s\n", result);
        fflush(stdout);
    }
    return 0;
}
