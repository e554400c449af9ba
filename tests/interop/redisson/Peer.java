import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RCountDownLatch;
import org.redisson.api.RLock;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/** Peer [cluster] PORT; see checks.py. */
public class Peer {
    private static RedissonClient client;
    private static final Deque<String> taken = new ArrayDeque<>();

    public static void main(String[] args) throws Exception {
        Config config = new Config();
        config.setLockWatchdogTimeout(1500).setThreads(2).setNettyThreads(2);
        String address = "redis://127.0.0.1:" + args[args.length - 1];
        if (args[0].equals("cluster")) {
            config.useClusterServers()
                .addNodeAddress(address)
                .setMasterConnectionMinimumIdleSize(1)
                .setMasterConnectionPoolSize(2)
                .setSlaveConnectionMinimumIdleSize(1)
                .setSlaveConnectionPoolSize(2);
        } else {
            config.useSingleServer()
                .setAddress(address)
                .setConnectionMinimumIdleSize(1)
                .setConnectionPoolSize(2);
        }
        client = Redisson.create(config);

        BufferedReader in =
            new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null;) {
            String answer;
            try {
                answer = run(line.split(" "));
            } catch (IllegalMonitorStateException e) {
                answer = "lost";
            } catch (Exception e) {
                answer = "error " + e;
            }
            System.out.println(answer);
        }
        client.shutdown();
    }

    private static String run(String[] words) throws Exception {
        String name = words[1];
        RLock lock = lock(name);
        switch (words[0]) {
        case "lock":
            return lock(lock, Long.parseLong(words[2]),
                        Long.parseLong(words[3]));
        case "unlock":
            lock.unlock();
            return "ok";
        case "force":
            return lock.forceUnlock() ? "ok" : "free";
        case "ttl":
            return "" + lock.remainTimeToLive();
        case "count":
            return count(lock, Path.of(name), Integer.parseInt(words[2]));
        case "total":
        case "take":
        case "give":
        case "free":
            return semaphore(client.getPermitExpirableSemaphore(name), words);
        default:
            return latch(client.getCountDownLatch(name), words);
        }
    }

    private static RLock lock(String name) {
        if (name.startsWith("read-of-")) {
            return client.getReadWriteLock(name.substring(8)).readLock();
        }
        if (name.startsWith("write-of-")) {
            return client.getReadWriteLock(name.substring(9)).writeLock();
        }
        if (name.startsWith("fair-of-")) {
            return client.getFairLock(name);
        }
        return client.getLock(name);
    }

    private static String latch(RCountDownLatch latch, String[] words)
        throws InterruptedException {
        switch (words[0]) {
        case "set":
            return latch.trySetCount(Long.parseLong(words[2])) ? "ok" : "busy";
        case "down":
            latch.countDown();
            return "ok";
        case "await":
            return latch.await(Long.parseLong(words[2]), TimeUnit.MILLISECONDS)
                ? "ok"
                : "busy";
        case "left":
            return "" + latch.getCount();
        case "delete":
            return latch.delete() ? "ok" : "free";
        default:
            return "error what?";
        }
    }

    private static String semaphore(RPermitExpirableSemaphore semaphore,
                                    String[] words)
        throws InterruptedException {
        switch (words[0]) {
        case "total":
            return semaphore.trySetPermits(Integer.parseInt(words[2]))
                ? "ok"
                : "busy";
        case "take":
            long lease = Long.parseLong(words[3]);
            String id = semaphore.tryAcquire(Long.parseLong(words[2]),
                                             lease == 0 ? -1 : lease,
                                             TimeUnit.MILLISECONDS);
            if (id == null) {
                return "busy";
            }
            taken.push(id);
            return "ok";
        case "give":
            return semaphore.tryRelease(taken.pop()) ? "ok" : "lost";
        default:
            return "" + semaphore.availablePermits();
        }
    }

    private static String lock(RLock lock, long wait, long lease)
        throws InterruptedException {
        boolean taken = lock.tryLock(wait, lease == 0 ? -1 : lease,
                                     TimeUnit.MILLISECONDS);
        return taken ? "ok" : "busy";
    }

    private static String count(RLock lock, Path path, int n)
        throws InterruptedException, IOException {
        for (int i = 0; i < n; i++) {
            if (lock(lock, 60000, 30000).equals("busy")) {
                return "busy";
            }
            int number = Integer.parseInt(Files.readString(path));
            Files.writeString(path, "" + (number + 1));
            lock.unlock();
        }
        return "ok";
    }
}
