// peer.js PORT...; see checks.py.
'use strict';

const fs = require('fs');
const readline = require('readline');
const Redis = require('ioredis');
const Redlock = require('redlock');

const delay = 10;
const clients = process.argv.slice(2).map((port) => new Redis(port));
const redlock = new Redlock(clients, {
    retryCount: 0, retryDelay: delay, retryJitter: delay
});
const locks = new Map();

const commands = {
    async lock(name, wait, lease) {
        // It counts tries, not time.
        const retryCount = Math.ceil(wait / (delay * 1.5));
        locks.set(name, await redlock.lockWithOptions(
            name, lease, { retryCount }));
        return 'ok';
    },
    async unlock(name) {
        await locks.get(name).unlock();
        return 'ok';
    },
    async extend(name, lease) {
        await locks.get(name).extend(lease);
        return 'ok';
    },
    async force(name) {
        const freed = await Promise.all(clients.map((c) => c.del(name)));
        return freed.includes(1) ? 'ok' : 'free';
    },
    async ttl(name) {
        return Math.max(...await Promise.all(clients.map((c) => c.pttl(name))));
    },
    async count(name, n) {
        for (let i = 0; i < n; i++) {
            await commands.lock(name, 60000, 30000);
            const number = Number(fs.readFileSync(name));
            fs.writeFileSync(name, String(number + 1));
            await commands.unlock(name);
        }
        return 'ok';
    }
};

async function answer(line) {
    const [command, name, ...numbers] = line.split(' ');
    try {
        return await commands[command](name, ...numbers.map(Number));
    } catch (e) {
        if (e instanceof Redlock.LockError) {
            return command === 'lock' ? 'busy' : 'lost';
        }
        return `error ${e}`;
    }
}

(async () => {
    const input = readline.createInterface({ input: process.stdin });
    for await (const line of input) {
        console.log(await answer(line));
    }
    clients.forEach((c) => c.disconnect());
})();
