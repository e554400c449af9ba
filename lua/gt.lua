-- Brings GT: what makes PEXPIRE leave a key alone that ends later, or never. It came with
-- Redis 7.0, as did the number of the server's version; nil before.
local GT = redis.REDIS_VERSION_NUM and 'GT'
