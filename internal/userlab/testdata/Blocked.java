// Compiled recursion, then one thread in each of: sleep, park, monitor, read,
// user mode.
import java.nio.ByteBuffer;
import java.nio.channels.Pipe;
import java.util.concurrent.locks.LockSupport;

public class Blocked {
    interface Way { void go(boolean really) throws Exception; }

    static volatile long after;
    static final Object monitor = new Object();
    static volatile int arrived;

    static void spin(boolean really) { while (really) after++; }

    static void lock(boolean really) {
        if (really) synchronized (monitor) { after++; }
    }

    static int recurseA(int depth, Way way, boolean really) throws Exception {
        if (depth <= 1) { way.go(really); return 1; }
        int n = recurseB(depth - 1, way, really);
        after += n;
        return n + 1;
    }

    static int recurseB(int depth, Way way, boolean really) throws Exception {
        if (depth <= 1) { way.go(really); return 1; }
        int n = recurseA(depth - 1, way, really);
        after += n;
        return n + 1;
    }

    static void start(String name, Way way) {
        Thread t = new Thread(() -> {
            try {
                for (int i = 0; i < 30000; i++) recurseA(12, way, false);
                synchronized (Blocked.class) { arrived++; }
                for (;;) recurseA(12, way, true);
            } catch (Exception e) {
                e.printStackTrace();
            }
        }, name);
        t.start();
    }

    public static void main(String[] args) throws Exception {
        Pipe empty = Pipe.open();
        synchronized (monitor) {
            start("sleeper", r -> { if (r) Thread.sleep(1000000000L); });
            start("parker", r -> { if (r) LockSupport.park(); });
            start("locker", Blocked::lock);
            start("reader", r -> { if (r) empty.source().read(ByteBuffer.allocate(1)); });
            start("spinner", Blocked::spin);
            while (arrived < 5) Thread.sleep(5);
            Thread.sleep(300);
            System.out.println("ready");
            System.out.flush();
            Thread.sleep(1000000000L);
        }
    }
}
