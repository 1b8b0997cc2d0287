import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;

/** A Kafka server of its own for a test class: {@code new Dohle("words:3")}, and close() at the end. */
public final class Dohle implements AutoCloseable {
    private final Process process;
    public final String bootstrap;

    public Dohle(String... topics) throws IOException {
        String program = System.getenv().getOrDefault("DOHLE", "dohle");
        List<String> command = new ArrayList<>(List.of(program, "start", "--test", "--log-level", "warn"));
        for (String topic : topics) command.addAll(List.of("--topic", topic));
        process = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        String ready = new BufferedReader(new InputStreamReader(process.getInputStream())).readLine();
        if (ready == null) throw new IOException("dohle did not start");
        bootstrap = ready.replaceFirst(".*\"bootstrap\":\"([^\"]+)\".*", "$1");
    }

    @Override
    public void close() throws IOException, InterruptedException {
        process.getOutputStream().close(); // It ends with its standard input.
        process.waitFor();
    }
}
