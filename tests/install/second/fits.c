/* fits yes|no: is that what the library says of the hiredis linked here? */
#include "net/hiredis_abi.h"

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    const char *why;
    bool fits = rl_hiredis_abi_fits(&why);
    printf("%s\n", fits ? "fits" : why ? why : "out of memory");
    return argc == 2 && strcmp(argv[1], fits ? "yes" : "no") == 0 &&
                   !fits == !!why
               ? 0
               : 1;
}
