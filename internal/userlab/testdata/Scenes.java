// Monitors, in a service that hangs or rests: Scenes hang|rest
import java.net.ServerSocket;
import java.util.concurrent.CyclicBarrier;

public class Scenes {
    static final Object orders = new Object(), stock = new Object(), pool = new Object(), queue = new Object();

    interface Work { void run() throws Exception; }

    static void start(String name, Work w) {
        new Thread(() -> {
            try {
                w.run();
            } catch (Exception e) {
                throw new RuntimeException(e);
            }
        }, name).start();
    }

    static void both(Object first, Object second, CyclicBarrier held) throws Exception {
        synchronized (first) {
            held.await();
            synchronized (second) { }
        }
    }

    public static void main(String[] args) throws Exception {
        if (args[0].equals("hang")) { // two threads, each in the monitor that the other wants, and 20 behind one of them
            CyclicBarrier held = new CyclicBarrier(3);
            start("order-writer", () -> both(orders, stock, held));
            start("stock-writer", () -> both(stock, orders, held));
            held.await();
            for (int i = 0; i < 20; i++) start("http-" + i, () -> { synchronized (orders) { } });
        } else { // one waits for a connection in the monitor, the others for the monitor; and some to be notified
            ServerSocket s = new ServerSocket(0);
            for (int i = 0; i < 6; i++) start("acceptor-" + i, () -> { synchronized (pool) { s.accept(); } });
            for (int i = 0; i < 8; i++) start("worker-" + i, () -> { synchronized (queue) { queue.wait(); } });
        }
        System.out.println("ready");
        Thread.sleep(1L << 40);
    }
}
