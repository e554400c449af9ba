#include "wire/hash_slot.h"

#include <stdint.h>
#include <string.h>

#include "wire/keys.h"

/* CRC-16/XMODEM, which is what Redis takes: bit by bit, once for a handle. */
static uint16_t crc16(const unsigned char *at, size_t len)
{
    uint16_t crc = 0;
    for (; len > 0; len--, at++) {
        crc ^= (uint16_t)(*at << 8);
        for (int bit = 0; bit < 8; bit++)
            crc = (uint16_t)(crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1);
    }
    return crc;
}

unsigned rl_hash_slot(const void *key, size_t len)
{
    const unsigned char *at = key;
    const unsigned char *open = memchr(at, '{', len);
    if (open) {
        size_t left = len - (size_t)(++open - at);
        const unsigned char *close = memchr(open, '}', left);
        if (close && close > open) {
            at = open;
            len = (size_t)(close - open);
        }
    }
    return crc16(at, len) % RL_HASH_SLOTS;
}

bool rl_hash_slot_fits(const void *name, size_t len)
{
    static const char no_hold[RL_UUID_LEN + 1] =
        "00000000-0000-0000-0000-000000000000";
    unsigned slot = rl_hash_slot(name, len);
    const rl_key keys[] = {rl_key_token(name, len), rl_key_queue(name, len),
                           rl_key_tombstone(name, len, no_hold)};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (rl_hash_slot(keys[i].text, keys[i].len) != slot)
            return false;
    return true;
}
