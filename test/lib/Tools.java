import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Base64;

import org.apache.kafka.common.utils.internals.Exit;

/** Runs Apache Kafka's tools one after the other in one JVM: a line "class TAB argument TAB ..." in, its exit code and output (base64) out. */
public class Tools {
    /** What ends a tool that wants to exit. Some catch it and exit once more: the first code is the tool's. */
    static class Ended extends Error {
    }

    static Integer code;

    static int run(String[] words) throws Exception {
        code = null;
        try {
            Class.forName(words[0]).getMethod("main", String[].class).invoke(null, (Object) Arrays.copyOfRange(words, 1, words.length));
        } catch (java.lang.reflect.InvocationTargetException wrapped) {
            if (code == null) {
                wrapped.getCause().printStackTrace();
                return 1;
            }
        }
        return code == null ? 0 : code;
    }

    public static void main(String[] unused) throws Exception {
        Exit.setExitProcedure((status, message) -> {
            if (code == null)
                code = status;
            throw new Ended();
        });
        PrintStream out = System.out, err = System.err;
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ByteArrayOutputStream said = new ByteArrayOutputStream();
            System.setOut(new PrintStream(said, true));
            System.setErr(System.out);
            int code = run(line.split("\t", -1));
            System.out.flush();
            System.setOut(out);
            System.setErr(err);
            out.println(code + " " + Base64.getEncoder().encodeToString(said.toByteArray()));
            out.flush();
        }
    }
}
