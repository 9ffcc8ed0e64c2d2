import java.io.*;
import java.nio.charset.StandardCharsets;
import java.util.*;
import org.apache.kafka.common.utils.internals.Exit;

/**
 * Runs main methods one after another in one JVM, because a JVM's start costs more than most tools do. Each line of the
 * input has the class and its arguments, joined by NUL, and the tool's input, both in base64; each line of the output has
 * the exit code, what the tool printed and what it complained of.
 */
public class ToolRunner {
    static final long LIMIT_MS = 90_000;

    /** Is thrown in place of ending the JVM. */
    static class Ended extends Error {
        Ended() { super(null, null, false, false); }
    }

    /** The code of the first exit that the running tool asked for. */
    static volatile Integer code;

    public static void main(String[] args) throws Exception {
        Exit.Procedure end = (status, message) -> {
            if (code == null) code = status;
            throw new Ended();
        };
        Exit.setExitProcedure(end);
        Exit.setHaltProcedure(end);
        PrintStream answers = System.out;
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line; (line = lines.readLine()) != null; ) {
            String[] parts = line.split(" ", -1);
            String[] command = new String(decode(parts[0]), StandardCharsets.UTF_8).split("\0", -1);
            ByteArrayOutputStream out = new ByteArrayOutputStream(), err = new ByteArrayOutputStream();
            int status = run(command, decode(parts[1]), out, err);
            answers.println(status + " " + encode(out) + " " + encode(err));
            answers.flush();
        }
        Runtime.getRuntime().halt(0); // tools leave threads behind
    }

    static int run(String[] command, byte[] input, ByteArrayOutputStream out, ByteArrayOutputStream err) throws Exception {
        code = null;
        PrintStream stdout = new PrintStream(out, true, StandardCharsets.UTF_8), stderr = new PrintStream(err, true, StandardCharsets.UTF_8);
        PrintStream outBefore = System.out, errBefore = System.err;
        System.setIn(new ByteArrayInputStream(input));
        System.setOut(stdout);
        System.setErr(stderr);
        Set<Thread> hooksBefore = new HashSet<>(shutdownHooks().keySet());
        int[] status = {0};
        Thread tool = new Thread(() -> {
            try {
                Class.forName(command[0]).getMethod("main", String[].class).invoke(null, (Object) Arrays.copyOfRange(command, 1, command.length));
            } catch (java.lang.reflect.InvocationTargetException e) {
                if (!(e.getCause() instanceof Ended)) {
                    e.getCause().printStackTrace(stderr);
                    status[0] = 1;
                }
            } catch (ReflectiveOperationException e) {
                e.printStackTrace(stderr);
                status[0] = 127;
            }
        }, "tool");
        tool.setDaemon(true);
        tool.start();
        tool.join(LIMIT_MS);
        if (tool.isAlive()) {
            for (StackTraceElement e : tool.getStackTrace()) stderr.println("  at " + e);
            stderr.println("not done after " + LIMIT_MS + " ms");
            status[0] = 124;
        }
        endLikeAJVM(hooksBefore);
        System.setOut(outBefore);
        System.setErr(errBefore);
        return code != null ? code : status[0];
    }

    /** Runs the shutdown hooks that the tool has added: some tools finish in one. */
    static void endLikeAJVM(Set<Thread> before) throws Exception {
        List<Thread> added = new ArrayList<>(shutdownHooks().keySet());
        added.removeAll(before);
        for (Thread hook : added) {
            Runtime.getRuntime().removeShutdownHook(hook);
            hook.start();
            hook.join(10_000);
        }
    }

    @SuppressWarnings("unchecked")
    static Map<Thread, Thread> shutdownHooks() throws ReflectiveOperationException {
        java.lang.reflect.Field hooks = Class.forName("java.lang.ApplicationShutdownHooks").getDeclaredField("hooks");
        hooks.setAccessible(true);
        return (Map<Thread, Thread>) hooks.get(null);
    }

    static byte[] decode(String s) { return Base64.getDecoder().decode(s); }

    static String encode(ByteArrayOutputStream b) { return Base64.getEncoder().encodeToString(b.toByteArray()); }
}
