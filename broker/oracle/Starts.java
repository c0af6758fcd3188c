import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Properties;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

import kafka.server.KafkaConfig;
import kafka.server.KafkaRaftServer;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.internals.Exit;

/**
 * Starts brokers, one after the other, each by a server.properties that a line of stdin names, and stops them. Prints a line
 * "=== START FILE" before the log of each, and after it "=== RESULT started", "failed EXCEPTION", "exit STATUS" or "silent": it did
 * not start in a minute. What is left of a broker that does not start cannot be stopped, so that the program ends with it.
 */
public final class Starts {
    private static volatile CompletableFuture<String> result;

    public static void main(String[] args) throws Exception {
        Exit.setExitProcedure(Starts::exit);
        Exit.setHaltProcedure(Starts::exit);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String file = in.readLine(); file != null; file = in.readLine()) {
            Properties properties = new Properties();
            try (var reader = Files.newBufferedReader(Path.of(file))) {
                properties.load(reader);
            }
            System.out.println("=== START " + file);
            result = new CompletableFuture<>();
            CompletableFuture<KafkaRaftServer> server = new CompletableFuture<>();
            daemon(() -> start(properties, server));
            String what = "silent";
            try {
                what = result.get(60, TimeUnit.SECONDS);
            } catch (TimeoutException e) {
                // said
            }
            if (what.equals("started")) {
                Thread.sleep(500); // the last partitions become leaders
            }
            System.out.println("=== RESULT " + what.replace('\n', ' '));
            System.out.flush();
            boolean stopped = false;
            if (what.equals("started")) {
                Thread stop = daemon(() -> server.join().shutdown());
                stop.join(20000);
                stopped = !stop.isAlive();
            }
            if (!stopped) {
                Runtime.getRuntime().halt(0);
            }
        }
        Runtime.getRuntime().halt(0);
    }

    private static void start(Properties properties, CompletableFuture<KafkaRaftServer> server) {
        try {
            server.complete(new KafkaRaftServer(KafkaConfig.fromProps(properties, false), Time.SYSTEM));
            server.join().startup();
            result.complete("started");
        } catch (Throwable e) {
            result.complete("failed " + e);
        }
    }

    private static void exit(int status, String message) {
        result.complete("exit " + status);
        throw new IllegalStateException("exit");
    }

    private static Thread daemon(Runnable task) {
        Thread thread = new Thread(task);
        thread.setDaemon(true);
        thread.start();
        return thread;
    }
}
