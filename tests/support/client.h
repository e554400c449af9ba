/*
 * Clients that are to come about, or not: by their options and addresses. What
 * is said about it never has the password.
 */
#ifndef TEST_SUPPORT_CLIENT_H
#define TEST_SUPPORT_CLIENT_H

#include "scene.h"

/* The password of all addresses. */
#define SECRET "s3cr3t"

/* Of the last error. */
const char *message(void);
void expect_no_secret(void);
/* No client comes of these options; its message is left in place. */
void expect_refused(const rlock_options *opts, rlock_status wanted);
void expect_uri_refused(const char *uri, rlock_status wanted);
/* A client of this address locks; the lock is in database db of the server. */
void expect_uri_works(server *sv, const char *uri, int db);
/* A server with a user alice who may do everything. */
server *server_of_alice(void);
/* For test_spawn(): locks, waiting for SOON at most, and unlocks. */
intptr_t wait_and_unlock(void *lk);

#endif
