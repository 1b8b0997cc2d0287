import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.util.Arrays;
import java.util.Base64;
import org.apache.kafka.common.utils.internals.Exit;

/**
 * Runs Kafka's tools one after the other in one process, which saves a start of Java for each. A line of input: the main
 * class, its standard input and its arguments, each in base64, with spaces between. A line of output: the exit code and
 * what it printed, on standard output and on standard error, in base64.
 */
public class Tools {
    static class Left extends RuntimeException {
        final int code;

        Left(int code) {
            super("exit " + code, null, false, false);
            this.code = code;
        }
    }

    /** The code of the first exit: tools catch what ends them, and exit again. */
    static Integer first;

    static void leave(int code) {
        if (first == null) first = code;
        throw new Left(code);
    }

    static String text(String word) {
        return new String(Base64.getDecoder().decode(word));
    }

    public static void main(String[] unused) throws Exception {
        PrintStream out = System.out;
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        Exit.setExitProcedure((code, message) -> leave(code));
        Exit.setHaltProcedure((code, message) -> leave(code));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ", -1);
            ByteArrayOutputStream said = new ByteArrayOutputStream();
            ByteArrayOutputStream complained = new ByteArrayOutputStream();
            PrintStream errors = new PrintStream(complained, true);
            System.setOut(new PrintStream(said, true));
            System.setErr(errors);
            System.setIn(new ByteArrayInputStream(Base64.getDecoder().decode(words[1])));
            String[] arguments = Arrays.stream(words).skip(2).map(Tools::text).toArray(String[]::new);
            int code = 0;
            first = null;
            try {
                Class.forName(text(words[0])).getMethod("main", String[].class).invoke(null, (Object) arguments);
            } catch (InvocationTargetException e) {
                if (e.getCause() instanceof Left) {
                    code = ((Left) e.getCause()).code;
                } else {
                    code = 255;
                    e.getCause().printStackTrace(errors);
                }
            }
            System.out.flush();
            Base64.Encoder base64 = Base64.getEncoder();
            out.println((first == null ? code : first) + " " + base64.encodeToString(said.toByteArray()) + " "
                    + base64.encodeToString(complained.toByteArray()));
            out.flush();
        }
    }
}
