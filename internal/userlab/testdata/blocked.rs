// Threads that wait in the ways of the standard library, and one that runs.
use std::io::Write;
use std::sync::{mpsc, Arc, Barrier, Mutex};
use std::thread;
use std::time::Duration;

trait Way: Send {
    fn wait(&mut self) -> u64;
}

struct Channel(mpsc::Receiver<u64>);
struct Locked(Arc<Mutex<u64>>);
struct Asleep;
struct Parked;
struct Spinning;

impl Way for Channel {
    fn wait(&mut self) -> u64 {
        self.0.recv().unwrap_or(1)
    }
}
impl Way for Locked {
    fn wait(&mut self) -> u64 {
        *self.0.lock().unwrap()
    }
}
impl Way for Asleep {
    fn wait(&mut self) -> u64 {
        thread::sleep(Duration::from_secs(1_000_000));
        2
    }
}
impl Way for Parked {
    fn wait(&mut self) -> u64 {
        thread::park();
        3
    }
}
impl Way for Spinning {
    fn wait(&mut self) -> u64 {
        let mut n = 1u64;
        loop {
            n = std::hint::black_box(n.wrapping_mul(3));
        }
    }
}

#[inline(never)]
fn deeper<W: Way + ?Sized>(depth: u64, way: &mut W) -> u64 {
    let got = if depth > 0 { deeper(depth - 1, way) } else { way.wait() };
    std::hint::black_box(got + depth)
}

fn main() {
    let (_keep, from) = mpsc::channel();
    let lock = Arc::new(Mutex::new(7));
    let _held = lock.lock().unwrap();
    let ways: Vec<Box<dyn Way>> = vec![
        Box::new(Channel(from)),
        Box::new(Locked(lock.clone())),
        Box::new(Asleep),
        Box::new(Parked),
        Box::new(Spinning),
    ];
    let made = Arc::new(Barrier::new(ways.len() + 1));
    let all: Vec<_> = ways
        .into_iter()
        .map(|mut w| {
            let made = made.clone();
            thread::spawn(move || {
                made.wait();
                deeper(4, &mut *w)
            })
        })
        .collect();
    made.wait();
    println!("ready");
    std::io::stdout().flush().unwrap();
    for t in all {
        t.join().unwrap();
    }
}
