/* What the tests' servers keep, and how they are made to lose it. */
#include "server.h"

TEST(support_data, a_server_that_forgot_comes_back_empty)
{
    server *sv = server_start(SERVER_DURABLE);
    server_cmd(sv, "SET k v");
    server_kill(sv);
    server_restart(sv); /* the control */
    EXPECT_STR(server_str(sv, "GET k"), "v");
    server_kill(sv);
    server_forget(sv);
    server_restart(sv);
    EXPECT_INT(server_int(sv, "DBSIZE"), 0);
    server_stop(sv);
}

TEST(support_data, a_server_whose_log_was_cut_lacks_what_came_last)
{
    server *sv = server_start(SERVER_DURABLE);
    server_cmd(sv, "SET first v");
    server_cmd(sv, "SET last v");
    server_kill(sv);
    EXPECT(!server_cut_log(sv, 1 << 20)); /* the control: it is not so long */
    server_restart(sv);
    EXPECT_INT(server_int(sv, "EXISTS first last"), 2);
    server_kill(sv);
    EXPECT(server_cut_log(sv, 5));
    server_restart(sv);
    EXPECT_STR(server_str(sv, "GET first"), "v");
    EXPECT_INT(server_int(sv, "EXISTS last"), 0);
    server_stop(sv);
}
