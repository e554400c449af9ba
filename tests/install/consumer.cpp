#include "consumer.c"

static_assert(RLOCK_VERSION_NUMBER == RLOCK_VERSION_MAJOR * 10000 +
                                          RLOCK_VERSION_MINOR * 100 +
                                          RLOCK_VERSION_PATCH,
              "one number for the version");

/* In C++ they initialise and assign, and what they leave out is zero. */
rlock_options client_options = RLOCK_OPTIONS_INIT;
rlock_lock_options lock_options = RLOCK_LOCK_OPTIONS_INIT;
rlock_red_options red_options = RLOCK_RED_OPTIONS_INIT;

bool options_are_right()
{
    client_options.pool_size = 7;
    client_options = RLOCK_OPTIONS_INIT;
    return client_options.size == sizeof(rlock_options) &&
           client_options.uri == nullptr && client_options.pool_size == 0 &&
           lock_options.size == sizeof(rlock_lock_options) &&
           lock_options.layout == RLOCK_LAYOUT_HASH &&
           red_options.size == sizeof(rlock_red_options) &&
           !red_options.check_uptime;
}
