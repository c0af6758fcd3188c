import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

import org.apache.kafka.common.utils.internals.Exit;
import org.apache.kafka.tools.DumpLogSegments;

/** What DumpLogSegments says of every file below args[0], into files below args[1] that are named as those of testdata/golden. */
public final class Golden {
    private static final class Ended extends RuntimeException {
        private final int code;

        private Ended(int code) {
            this.code = code;
        }
    }

    public static void main(String[] args) throws Exception {
        Exit.setExitProcedure((code, message) -> {
            throw new Ended(code);
        });
        Exit.setHaltProcedure((code, message) -> {
            throw new Ended(code);
        });
        Path from = Path.of(args[0]);
        List<Path> files;
        try (var all = Files.walk(from)) {
            files = all.filter(p -> p.toString().matches(".*\\.(log|index|timeindex|txnindex|snapshot|checkpoint)")).sorted().toList();
        }
        PrintStream stdout = System.out;
        for (Path file : files) {
            Path to = Path.of(args[1]).resolve(from.relativize(file));
            Files.createDirectories(to.getParent());
            boolean log = file.toString().matches(".*\\.(log|checkpoint)");
            dump(to + ".dump.txt", file, log ? List.of("--deep-iteration", "--print-data-log") : List.of());
            if (file.toString().matches(".*\\.(index|timeindex)"))
                dump(to + ".sanity.txt", file, List.of("--index-sanity-check"));
            String decoder = decoder(file.getParent().getFileName().toString());
            if (log && decoder != null)
                dump(to + ".decoded.txt", file, List.of("--deep-iteration", decoder));
        }
        System.setOut(stdout);
        System.out.println(files.size() + " files");
    }

    private static String decoder(String partition) {
        if (partition.startsWith("__cluster_metadata-"))
            return "--cluster-metadata-decoder";
        if (partition.startsWith("__consumer_offsets-"))
            return "--offsets-decoder";
        if (partition.startsWith("__transaction_state-"))
            return "--transaction-log-decoder";
        return null;
    }

    private static void dump(String to, Path file, List<String> flags) throws Exception {
        List<String> args = new ArrayList<>(List.of("--files", file.toString()));
        args.addAll(flags);
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        ByteArrayOutputStream errs = new ByteArrayOutputStream();
        PrintStream before = System.err;
        System.setOut(new PrintStream(out, true));
        System.setErr(new PrintStream(errs, true));
        int code = 0;
        try {
            DumpLogSegments.main(args.toArray(new String[0]));
        } catch (Ended e) {
            code = e.code;
        } catch (Throwable e) {
            code = 1;
            e.printStackTrace();
        } finally {
            System.setErr(before);
        }
        Files.write(Path.of(to), out.toByteArray());
        if (code != 0 || errs.size() > 0)
            Files.writeString(Path.of(to.replace(".dump.txt", ".exit").replace(".txt", ".exit")), "exit: " + code + "\n" + errs);
    }
}
