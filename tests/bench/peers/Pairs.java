import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/** Pairs PORT; see peers.c. Redisson is as it comes, with all its defaults. */
public class Pairs
{
    private static RedissonClient client;

    public static void main(String[] args) throws Exception
    {
        Config config = new Config();
        config.useSingleServer().setAddress("redis://127.0.0.1:" + args[0]);
        client = Redisson.create(config);
        ExecutorService others = Executors.newCachedThreadPool();

        BufferedReader in =
            new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null;) {
            String[] words = line.split(" ");
            System.out.println(block(others, Integer.parseInt(words[0]),
                                     Integer.parseInt(words[1])));
        }
        others.shutdown();
        client.shutdown();
    }

    /** Microseconds; this thread is the first one. */
    private static long block(ExecutorService others, int threads, int pairs)
        throws Exception
    {
        AtomicInteger left = new AtomicInteger(pairs);
        List<Future<?>> running = new ArrayList<>();
        long began = System.nanoTime();
        for (int i = 1; i < threads; i++) {
            String name = "redisson:" + i;
            running.add(others.submit(() -> work(name, left)));
        }
        work("redisson:0", left);
        for (Future<?> other : running) {
            other.get();
        }
        return (System.nanoTime() - began) / 1000;
    }

    private static void work(String name, AtomicInteger left)
    {
        RLock lock = client.getLock(name);
        while (left.getAndDecrement() > 0) {
            lock.lock();
            lock.unlock();
        }
    }
}
